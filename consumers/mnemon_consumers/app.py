"""Runs consumers: any of them, in any number of processes."""

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
"""The names that `mnemon run` and `mnemon up --only` take."""

WRITING: frozenset[str] = frozenset({"index", "dedupe"})
"""Those that write vectors. With the embedded engine they run in one process, and `retrieve` with them."""

FRONT: frozenset[str] = WRITING | {"retrieve"}
"""Those that bots wait for, with those that must share their vectors. All others can run beside them."""

ASKING: frozenset[str] = frozenset({"compact", "extract"})
"""Those that may wait for a model's answer when they are to end."""


@asynccontextmanager
async def running(names: Sequence[str], deployment: Deployment) -> AsyncIterator[None]:
    """Run consumers as long as the block lasts. On enter they are subscribed, and the server knows it.

    A name that is given several times runs as many workers, each with a connection of its own. On exit each
    finishes its current batch.

    Raises:
        BrokerUnreachable: no NATS server answers.
        DatabaseUnavailable: the database does not answer, or is to be migrated.
        mnemon_infra.database.migration.SchemaTooNew: a newer version has prepared it.
        DatabaseNotConfigured: there is no address of a database.
        mnemon_infra.broker.provisioning.presence.StreamsMissing: the streams are not there.
        mnemon_infra.health.log_identity.LogLost: the rows are of another log, or of more than is there.
        mnemon_infra.settings.store.SettingsNotProvisioned: the bucket of settings is not there.
        mnemon_infra.vectors.port.VectorsNotConfigured: there is nowhere to keep vectors.
        mnemon_infra.telemetry.endpoint.PortTaken: metrics cannot be shown at the port that is named for them.
        And what else `mnemon_infra.vectors.vector_index.opened` raises.
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
        # What is loaded by now stays: each search through it for garbage would hold up requests for 50 ms.
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
    """One of them. A process imports what it runs, and nothing of the others."""
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
    """How this process fares is shown over HTTP, where a port is named for it."""
    if deployment.metrics_port is None:
        yield None
        return
    # They take 50 ms to import: not where nobody looks.
    from mnemon_consumers import model_reports
    from mnemon_consumers.domain.spending import budget
    from mnemon_infra.health.probe import ProcessProbe
    from mnemon_infra.telemetry.endpoint import answering_http

    for name in names:
        RUNNING.set(1, name)

    def measure() -> None:
        budget.measure()
        model_reports.measure()

    watch = ProcessProbe(names, deployment, measure)
    async with answering_http(deployment.metrics_host, deployment.metrics_port, watch.look):
        yield watch


@asynccontextmanager
async def _ending_together(several: Sequence[AbstractAsyncContextManager[None]]) -> AsyncIterator[None]:
    """Enter each; leave all at the same time, so that who ends waits once, and not once for each."""
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
    """The vectors, where they are needed; `retrieve` alone goes without, and names what it cannot search."""
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
    """Other vectors may take the place of these, while they are written and searched."""
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
    """Vectors that are gone, such as with their folder, are made anew from the log.

    So are those of a collection that a former version did not have; where the rows are all that it takes,
    the users are looked through instead, and the log is not read again.
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
