"""Construction and start of the consumers that one process runs, for any selection of consumers."""

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import structlog
from nats.aio.client import Client

from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.connection import (
    MAX_PAYLOAD,
    MAX_PAYLOAD_STEP,
    connect_deployment,
    require_servers,
)
from mnemon_infra.broker.provisioning.presence import require_streams
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.migration import require_head_revision
from mnemon_infra.durables import CONSUMERS
from mnemon_infra.health.consistency import replay_missing_rows, require_same_log
from mnemon_infra.models.language.registry import LanguageModels, open_language_models
from mnemon_infra.telemetry.metrics import RUNNING
from mnemon_infra.telemetry.tracing import trace_process

if TYPE_CHECKING:
    from mnemon_infra.health.fault import Fault
    from mnemon_infra.health.probe import ProcessProbe
    from mnemon_infra.vectors.vector_index import VectorIndex

log = structlog.get_logger("app")

VECTOR_WRITERS: frozenset[str] = frozenset({"index", "dedupe"})
"""Consumers that need the vector index. With the embedded engine they share one process with `retrieve`."""

FOREGROUND: frozenset[str] = VECTOR_WRITERS | {"retrieve"}
"""Consumers of the process that answers bots: `retrieve`, and those that share its vectors. All other
consumers can run in another process.
"""

MODEL_CALLERS: frozenset[str] = frozenset({"compact", "extract"})
"""Consumers that may still wait for a model's answer when they are stopped."""


class Consumer(Protocol):
    """A process role, which subscribes when it is built, and handles batches or requests while it runs."""

    @property
    def broker(self) -> Broker:
        """Return the connection and the subscriptions of the consumer."""
        ...

    def run(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that runs the consumer until its block ends."""
        ...


@asynccontextmanager
async def run_consumers(names: Sequence[str], deployment: Deployment) -> AsyncIterator[None]:
    """Run consumers until the block ends. The block begins when the server has confirmed all subscriptions.

    A name that is given several times runs as many workers, each with a connection of its own. On exit each
    consumer has `mnemon_infra.durables.GRACEFUL_TIMEOUT` seconds to finish its current batch; unfinished work
    is delivered again later.

    Raises:
        LookupError: a name is not in `CONSUMERS`.
        BrokerUnreachable: no server is configured, or no server that mnemon can use answers.
        nats.errors.Error: NATS answers the first connection, but not a later request.
        DatabaseUnavailable: the database does not answer, or needs a migration.
        mnemon_infra.database.migration.SchemaTooNew: a newer version has prepared the database.
        DatabaseNotConfigured: no address of a database is configured.
        mnemon_infra.broker.provisioning.presence.StreamsMissing: the streams do not exist.
        mnemon_infra.broker.streams.log_format.LogTooNew: a newer version has marked the log.
        mnemon_infra.broker.streams.restored_log.RestoreUnfinished: a restore into the log has not ended.
        mnemon_infra.broker.provisioning.topology.TooFewServers: there are fewer NATS servers than copies.
        mnemon_infra.health.consistency.LogLost: the database has an event beyond the end of the log.
        mnemon_infra.settings.bucket.SettingsNotProvisioned: the bucket of settings does not exist.
        mnemon_infra.vectors.port.VectorsNotConfigured: neither a Qdrant server nor a folder is set.
        mnemon_infra.storage.object_store.StoreUnavailable: the place of the erasure register cannot be used.
        ModuleNotFoundError: the package `obstore`, which an erasure register in a bucket needs, is missing.
        mnemon_infra.telemetry.endpoint.MetricsPortTaken: metrics cannot be served at the configured port.
        Also every exception that `mnemon_infra.vectors.vector_index.open_index` raises.
    """
    require_servers(deployment)
    async with AsyncExitStack() as ends:
        probe = await ends.enter_async_context(_serve_probe(names, deployment))
        await ends.enter_async_context(trace_process(names))
        database = await ends.enter_async_context(Database(deployment, name=f"mnemon-{'-'.join(names)}"))
        await require_head_revision(database, deployment.database_schema)
        async with await connect_deployment(deployment, name="mnemon-start") as connection:
            _warn_of_max_payload(connection)
            await require_streams(connection)
            await require_same_log(connection, database)
            await replay_missing_rows(connection, database)
        vector_index = await ends.enter_async_context(_open_vector_index(names, database, deployment))
        models = await ends.enter_async_context(open_language_models(deployment))
        for name in names:
            if name not in MODEL_CALLERS:
                consumer = build_consumer(name, database, vector_index, models, deployment)
                await ends.enter_async_context(consumer.run())
        model_callers = [
            build_consumer(name, database, vector_index, models, deployment).run()
            for name in names
            if name in MODEL_CALLERS
        ]
        await ends.enter_async_context(_enter_contexts(model_callers))
        if probe:
            connection = await ends.enter_async_context(
                await connect_deployment(deployment, name="mnemon-watch")
            )
            vectors = vector_index.vectors if vector_index else None
            await ends.enter_async_context(probe.report_running(connection, database, vectors))
        # Objects loaded so far stay: each garbage collection over them would delay requests by 50 ms.
        gc.freeze()
        log.info("consumers started", consumers=list(names))
        yield


def _warn_of_max_payload(connection: Client) -> None:
    if connection.max_payload < MAX_PAYLOAD:
        log.warning(
            "low max_payload found",
            max_payload=connection.max_payload,
            needed=MAX_PAYLOAD,
            next_step=MAX_PAYLOAD_STEP,
        )


def build_consumer(
    name: str,
    database: Database,
    vector_index: "VectorIndex | None",
    models: LanguageModels,
    deployment: Deployment,
) -> Consumer:
    """Return the consumer `name`. A process imports only the consumers that it runs.

    Raises:
        LookupError: the name is not in `CONSUMERS`.
    """
    match name:
        case "persist":
            from mnemon_consumers.persist.handler import PersistConsumer

            return PersistConsumer(database, deployment)
        case "index":
            from mnemon_consumers.index.handler import IndexConsumer

            return IndexConsumer(database, _require_vector_index(vector_index), deployment)
        case "dedupe":
            from mnemon_consumers.dedupe.handler import DedupeConsumer

            return DedupeConsumer(database, _require_vector_index(vector_index), deployment)
        case "compact":
            from mnemon_consumers.compact.handler import CompactConsumer

            return CompactConsumer(models, deployment)
        case "extract":
            from mnemon_consumers.extract.handler import ExtractConsumer

            return ExtractConsumer(models, deployment)
        case "maintain":
            from mnemon_consumers.maintain.handler import MaintainConsumer

            return MaintainConsumer(database, deployment)
        case "retrieve":
            from mnemon_consumers.retrieve.handler import RetrieveConsumer

            return RetrieveConsumer(database, vector_index, deployment)
        case _:
            raise LookupError(f"there is no consumer {name!r}; name one of {', '.join(CONSUMERS)}")


@asynccontextmanager
async def _serve_probe(names: Sequence[str], deployment: Deployment) -> AsyncIterator["ProcessProbe | None"]:
    """Serve metrics and health of this process over HTTP; yield the probe, None if no port is set."""
    if deployment.metrics_port is None:
        yield None
        return
    # These imports take 50 ms: skip them where no port is configured.
    from mnemon_consumers import model_reports
    from mnemon_consumers.domain.spending import budget
    from mnemon_infra.health.probe import ProcessProbe
    from mnemon_infra.telemetry.endpoint import serve_http

    for name in names:
        RUNNING.set(1, name)

    def measure_models() -> "list[Fault]":
        """Set the metrics of spending and of failing models.

        Returns:
            A fault for each model that cannot be used before an operator corrects the cause.
        """
        budget.measure_spending()
        model_reports.measure_failing_models()
        return model_reports.list_refusals()

    probe = ProcessProbe(names, deployment, measure_models)
    async with serve_http(deployment.metrics_host, deployment.metrics_port, probe.check):
        yield probe


@asynccontextmanager
async def _enter_contexts(contexts: Sequence[AbstractAsyncContextManager[None]]) -> AsyncIterator[None]:
    """Enter the context managers in order; exit them concurrently, so that their waits overlap."""
    entered: list[AsyncExitStack] = []
    try:
        for each in contexts:
            stack = AsyncExitStack()
            await stack.enter_async_context(each)
            entered.append(stack)
        yield
    finally:
        results = await asyncio.gather(*(stack.aclose() for stack in entered), return_exceptions=True)
        for error in filter(None, results):
            raise error


def _require_vector_index(vector_index: "VectorIndex | None") -> "VectorIndex":
    assert vector_index is not None, "consumers that write vectors open the vector index"
    return vector_index


@asynccontextmanager
async def _open_vector_index(
    names: Sequence[str], database: Database, deployment: Deployment
) -> AsyncIterator["VectorIndex | None"]:
    """Open the vector index; yield None if no consumer needs it.

    If neither a Qdrant server nor a folder is set, and neither `index` nor `dedupe` is among the consumers,
    `retrieve` runs in degraded mode, without the vector index.
    """
    has_vectors = deployment.qdrant_url or deployment.vectors_folder
    if not VECTOR_WRITERS & set(names) and not ("retrieve" in names and has_vectors):
        yield None
        return
    # The import loads the vector store, which only these processes need.
    from mnemon_consumers.vector_index_lifecycle import run_vector_index

    async with run_vector_index(database, deployment, has_index_consumer="index" in names) as vector_index:
        yield vector_index
