"""Runs consumers: any selection of them, in any number of processes."""

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import structlog
from nats.aio.client import Client

from mnemon_contracts.streams import LOG, WORK
from mnemon_contracts.subjects import work_subject
from mnemon_infra.broker.connection import BrokerUnreachable, connect
from mnemon_infra.broker.provisioning.presence import require_streams
from mnemon_infra.broker.provisioning.topology import begin_again
from mnemon_infra.broker.streams.applied_position import applied_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.migration import require_head
from mnemon_infra.health.log_identity import require_same_log
from mnemon_infra.health.missing_rows import replay_missing
from mnemon_infra.models.language.registry import language_models
from mnemon_infra.settings.store import read
from mnemon_infra.telemetry.metrics import RUNNING
from mnemon_infra.telemetry.tracing import traced

if TYPE_CHECKING:
    from mnemon_infra.health.probe import ProcessProbe
    from mnemon_infra.models.language.registry import LanguageModels
    from mnemon_infra.vectors.vector_index import VectorIndex

log = structlog.get_logger("app")

CONSUMERS: tuple[str, ...] = ("persist", "index", "dedupe", "compact", "extract", "maintain", "retrieve")
"""Names of consumers that `mnemon run` and `mnemon up --only` accept."""

WRITING: frozenset[str] = frozenset({"index", "dedupe"})
"""Consumers that write vectors. With the embedded engine they share one process with `retrieve`."""

FRONT: frozenset[str] = WRITING | {"retrieve"}
"""Consumers that bots wait for, with those that share their vectors. Others can run in another process."""

ASKING: frozenset[str] = frozenset({"compact", "extract"})
"""Consumers that may still wait for a model's answer when they are stopped."""


@asynccontextmanager
async def running(names: Sequence[str], deployment: Deployment) -> AsyncIterator[None]:
    """Run consumers until the block ends. On entry they are subscribed, and the server has confirmed it.

    A name that is given several times runs as many workers, each with a connection of its own. On exit each
    consumer finishes its current batch.

    Raises:
        BrokerUnreachable: no NATS server answers.
        DatabaseUnavailable: the database does not answer, or has to be migrated.
        mnemon_infra.database.migration.SchemaTooNew: a newer version has prepared the database.
        DatabaseNotConfigured: no address of a database is configured.
        mnemon_infra.broker.provisioning.presence.StreamsMissing: the streams do not exist.
        mnemon_infra.health.log_identity.LogLost: the rows come from another log, or from more
            events than the log has.
        mnemon_infra.settings.store.SettingsNotProvisioned: the bucket of settings does not exist.
        mnemon_infra.vectors.port.VectorsNotConfigured: no place for vectors is configured.
        mnemon_infra.telemetry.endpoint.MetricsPortTaken: metrics cannot be served at the configured port.
        Also every exception that `mnemon_infra.vectors.vector_index.opened` raises.
    """
    if deployment.nats_url is None:
        raise BrokerUnreachable("no NATS server is configured: set MNEMON_NATS_URL")
    async with AsyncExitStack() as ends:
        watch = await ends.enter_async_context(_watched(names, deployment))
        await ends.enter_async_context(traced(names))
        database = await ends.enter_async_context(Database(deployment, name=f"mnemon-{'-'.join(names)}"))
        await require_head(database, deployment.database_schema)
        async with await _connection(deployment) as connection:
            await require_streams(connection)
            await require_same_log(connection, database)
            await replay_missing(connection, database)
        finding = await ends.enter_async_context(_finding(names, database, deployment))
        models = await ends.enter_async_context(language_models(deployment))
        for name in names:
            if name not in ASKING:
                await ends.enter_async_context(_consuming(name, database, finding, models, deployment))
        asking = [_consuming(name, database, finding, models, deployment) for name in names if name in ASKING]
        await ends.enter_async_context(_ending_together(asking))
        if watch:
            connection = await ends.enter_async_context(await _connection(deployment, "mnemon-watch"))
            vectors = finding.vectors if finding else None
            await ends.enter_async_context(watch.begun(connection, database, vectors))
        # Objects loaded so far stay: each garbage collection over them would delay requests by 50 ms.
        gc.freeze()
        log.info("consumers started", consumers=list(names))
        yield


def _consuming(
    name: str,
    database: Database,
    finding: "VectorIndex | None",
    models: "LanguageModels",
    deployment: Deployment,
) -> AbstractAsyncContextManager[None]:
    """Return one consumer. A process imports only the consumers that it runs."""
    match name:
        case "persist":
            from mnemon_consumers.persist import handler as persist

            return persist.consuming(database, deployment)
        case "index":
            from mnemon_consumers.index import handler as index

            return index.consuming(database, _needed(finding), deployment)
        case "dedupe":
            from mnemon_consumers.dedupe import handler as dedupe

            return dedupe.consuming(database, _needed(finding), deployment)
        case "compact":
            from mnemon_consumers.compact import handler as compact

            return compact.consuming(models, deployment)
        case "extract":
            from mnemon_consumers.extract import handler as extract

            return extract.consuming(models, deployment)
        case "maintain":
            from mnemon_consumers.maintain import handler as maintain

            return maintain.consuming(database, deployment)
        case "retrieve":
            from mnemon_consumers.retrieve import handler as retrieve

            return retrieve.consuming(database, finding, deployment)
        case _:
            raise LookupError(name)


@asynccontextmanager
async def _watched(names: Sequence[str], deployment: Deployment) -> AsyncIterator["ProcessProbe | None"]:
    """Serve metrics and health of this process over HTTP, if a port is configured."""
    if deployment.metrics_port is None:
        yield None
        return
    # These imports take 50 ms: skip them where no port is configured.
    from mnemon_consumers import model_reports
    from mnemon_consumers.domain.spending import budget
    from mnemon_infra.health.probe import ProcessProbe
    from mnemon_infra.telemetry.endpoint import answering_http

    for name in names:
        RUNNING.set(1, name)

    def measure() -> None:
        budget.measure_spending()
        model_reports.measure_failing_models()

    watch = ProcessProbe(names, deployment, measure)
    async with answering_http(deployment.metrics_host, deployment.metrics_port, watch.look):
        yield watch


@asynccontextmanager
async def _ending_together(several: Sequence[AbstractAsyncContextManager[None]]) -> AsyncIterator[None]:
    """Enter each context manager; leave all of them at the same time, so that their waits overlap."""
    entered: list[AsyncExitStack] = []
    try:
        for each in several:
            stack = AsyncExitStack()
            await stack.enter_async_context(each)
            entered.append(stack)
        yield
    finally:
        ended = await asyncio.gather(*(stack.aclose() for stack in entered), return_exceptions=True)
        for error in filter(None, ended):
            raise error


def _needed(finding: "VectorIndex | None") -> "VectorIndex":
    assert finding is not None, "opened for those that write"
    return finding


@asynccontextmanager
async def _finding(
    names: Sequence[str], database: Database, deployment: Deployment
) -> AsyncIterator["VectorIndex | None"]:
    """Open the vector index if a consumer needs it. `retrieve` can run without and reports what it lacks."""
    has_vectors = deployment.qdrant_url or deployment.vectors_folder
    if not WRITING & set(names) and not ("retrieve" in names and has_vectors):
        yield None
        return
    from mnemon_infra.vectors.vector_index import opened

    async with await _connection(deployment) as connection:
        settings = await read(connection)
    async with opened(deployment, settings.embedding) as finding, await _connection(deployment) as connection:
        if "index" in names:
            await _fill_if_lost(connection, database, finding)
        async with _exchangeable(connection, finding, deployment):
            yield finding


@asynccontextmanager
async def _exchangeable(
    connection: Client, finding: "VectorIndex", deployment: Deployment
) -> AsyncIterator[None]:
    """Let other vectors replace these while consumers write and search them."""
    from mnemon_infra.vectors.edge_owner import answering_for, hearing_of_exchanges
    from mnemon_infra.vectors.recovery import recovering

    folder = deployment.vectors_folder
    if deployment.qdrant_url:
        async with hearing_of_exchanges(connection, finding.gate):
            yield
    elif folder:
        async with (
            answering_for(connection, finding.vectors, folder, finding.gate),
            recovering(finding.vectors, folder, finding.gate, lambda: begin_again(connection, LOG, "index")),
        ):
            yield
    else:
        yield


async def _connection(deployment: Deployment, name: str = "mnemon-start") -> Client:
    return await connect(str(deployment.nats_url), name=name)


async def _fill_if_lost(connection: Client, database: Database, finding: "VectorIndex") -> None:
    """Index the log once more from its start if vectors are lost, such as with their folder.

    This includes collections that a former version did not have. Where rows suffice to fill the lost
    collections, publish a trigger for each of their users instead; the log is not read again.
    """
    from mnemon_infra.health.missing_points import FROM_ROWS, lost_collections, owners_to_look_through
    from mnemon_infra.vectors.port import Collection

    position = await applied_position(connection.jetstream(), "index")
    if not position:
        return
    lost = await lost_collections(database, finding.vectors)
    has_points = any([await finding.vectors.count(each) for each in Collection])
    if lost and has_points and FROM_ROWS.issuperset(lost):
        owners = await owners_to_look_through(database, lost)
        for owner in owners:
            trigger = work_subject("index", *owner)
            await connection.jetstream().publish(trigger, str(position).encode(), stream=WORK)
        log.warning("vectors missing, indexing them from the rows", collections=lost, users=len(owners))
    elif lost or not has_points:
        events = await begin_again(connection, LOG, "index")
        log.warning("vectors lost, indexing the log from its start", collections=lost, events=events)
