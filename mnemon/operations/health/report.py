"""Examination of a deployment: asks its servers for their states, and reports problems and warnings."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext

from mnemon.operations.health.busy_tenants import (
    find_exceeded_rates,
    measure_event_rates,
    warn_of_busy_tenants,
)
from mnemon.operations.health.dead_letters import find_oldest_letter, warn_of_dead_letters
from mnemon.operations.health.lag import Lag, measure_lags, read_stream_states, warn_of_growing_lags
from mnemon.operations.health.language_models import examine_models
from mnemon.operations.health.problems import (
    MISSING,
    list_consumer_faults,
    list_folder_problems,
    list_problems,
)
from mnemon.operations.health.services import count_processes
from mnemon.operations.health.state import (
    BrokerState,
    ConsumerFault,
    DatabaseState,
    FolderState,
    Health,
    VectorsState,
)
from mnemon.operations.tenant_move.late_events import count_all_late_events, warn_of_late_events
from mnemon_contracts.streams import DEAD, LOG
from mnemon_infra.broker.connection import (
    MAX_PAYLOAD,
    MAX_PAYLOAD_STEP,
    BrokerUnreachable,
    connect_deployment,
)
from mnemon_infra.broker.dead_letters.limit import is_paused_by_dead_letters
from mnemon_infra.broker.provisioning.topology import list_drift
from mnemon_infra.broker.streams.log_format import LogTooNew, require_known_format
from mnemon_infra.broker.streams.restored_log import (
    RestoreUnfinished,
    describe_replay,
    require_finished_restore,
)
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.migration import find_head_revision, load_revision
from mnemon_infra.health.clock_skew import compare_clocks
from mnemon_infra.health.consistency import LogLost, find_first_missing, require_same_log
from mnemon_infra.health.fault import STORAGE_WAIT, measure_storage
from mnemon_infra.process.free_space import LEAST, read_disk_space
from mnemon_infra.settings.bucket import SettingsNotProvisioned
from mnemon_infra.vectors.port import VectorsUnavailable

_SERVER_TIMEOUT = 5.0
"""Seconds within which a server has to answer."""

ONE_PROCESS = ("index", "dedupe", "retrieve")
"""Consumers that must share one process with the embedded vector store, which only one process opens."""


async def examine_deployment(deployment: Deployment, data: Path | None = None) -> Health:
    """Examine the servers of a deployment. For a server that does not answer, the result has a problem.

    `data` is the folder of the servers if `mnemon up` runs them; otherwise None.
    """
    broker, database = await asyncio.gather(_examine_broker(deployment), _examine_database(deployment))
    # Not at the same time: the import of qdrant-client would delay the other answers beyond their timeout.
    vectors = await _examine_vectors(deployment)
    can_be_seen = not broker.error and not database.error and database.revision == database.head
    models = await examine_models(deployment) if can_be_seen else None
    folder = _examine_folder(data) if data else None
    of_log = await _list_log_problems(deployment) if can_be_seen else []
    faults = list_consumer_faults(broker)
    of_vectors = [vectors.error] if vectors.error else []
    problems = (*list_problems(broker, database, folder, models, faults), *of_vectors, *of_log)
    return Health(
        broker=broker,
        database=database,
        vectors=vectors,
        folder=folder,
        models=models,
        reachable=broker.error is None and database.error is None,
        healthy=not problems,
        problems=problems,
        warnings=(
            *warn_of_growing_lags(broker.consumers),
            *warn_of_busy_tenants(broker.events_per_second, broker.events_meant),
            *warn_of_dead_letters(broker.dead_letters, broker.oldest_dead_letter, datetime.now(UTC)),
            *warn_of_late_events(broker.late_events),
            *_warn_of_max_payload(broker.max_payload),
        ),
        faults=tuple(
            ConsumerFault(
                consumer=each.consumer, fault=each.kind, problem=each.problem, next_step=each.next_step
            )
            for each in faults
        ),
    )


def describe_silent_stack(data: Path, holder: str, schema: str) -> Health:
    """Describe a running stack whose folder has no addresses of servers, because not all servers answer.

    `holder` names the process that runs the stack.
    """
    folder, error = _examine_folder(data), f"the stack in {data} ({holder}) does not answer"
    server_logs = (
        f"{error}: it is starting, or one of its servers cannot start. See its log and {data / 'logs'}"
    )
    return Health(
        broker=BrokerState(error=error),
        database=DatabaseState(error=error, schema_name=schema, head=find_head_revision()),
        vectors=_describe_vectors(Deployment()),
        folder=folder,
        reachable=False,
        healthy=False,
        problems=(*list_folder_problems(folder), server_logs),
    )


async def _examine_broker(deployment: Deployment) -> BrokerState:
    try:
        connection = await connect_deployment(deployment, name="mnemon-status")
    except BrokerUnreachable as error:
        return BrokerState(error=str(error))
    try:
        async with connection, asyncio.timeout(_SERVER_TIMEOUT):
            return await _load_broker_state(connection, deployment.replicas)
    except (nats.errors.Error, TimeoutError) as error:
        problem = (
            f"the state of the NATS server cannot be read: {str(error) or 'timeout'}. Check that it runs"
        )
        return BrokerState(error=problem)


async def _load_broker_state(connection: Client, replicas: int) -> BrokerState:
    jetstream = connection.jetstream()
    streams = await read_stream_states(jetstream)
    version = connection.connected_server_version
    busy = await measure_event_rates(connection) if LOG in streams else {}
    return BrokerState(
        version=f"{version.major}.{version.minor}.{version.patch}",
        max_payload=connection.max_payload,
        streams=streams,
        consumers=await _mark_pause_causes(connection, await measure_lags(jetstream, streams)),
        services=await count_processes(connection),
        dead_letters=streams[DEAD].messages if DEAD in streams else 0,
        storage_used_ratio=await _measure_storage(jetstream),
        oldest_dead_letter=await find_oldest_letter(jetstream) if DEAD in streams else None,
        drift={
            change.what: change.detail or MISSING
            for change in await list_drift(connection, replicas)
            if change.action != "unchanged"
        },
        events_per_second=busy,
        events_meant=await _load_exceeded_rates(connection, busy),
        late_events=await _count_late_events(connection) if LOG in streams else {},
    )


def _warn_of_max_payload(max_payload: int | None) -> list[str]:
    if max_payload is None or max_payload >= MAX_PAYLOAD:
        return []
    effect = "larger events and replies are refused, and dead letters lack parts of larger messages"
    return [f"the NATS server accepts at most {max_payload:,} bytes: {effect}; {MAX_PAYLOAD_STEP}"]


async def _measure_storage(stream_context: JetStreamContext) -> float | None:
    with suppress(TimeoutError):
        async with asyncio.timeout(STORAGE_WAIT):
            return await measure_storage(stream_context)
    return None


async def _mark_pause_causes(connection: Client, consumers: dict[str, Lag]) -> dict[str, Lag]:
    """Mark the consumers that are paused because of too many dead letters, not by an operator."""
    return consumers | {
        name: lag.model_copy(update={"is_paused_by_dead_letters": True})
        for name, lag in consumers.items()
        if lag.paused_until
        and await is_paused_by_dead_letters(connection, name, datetime.fromisoformat(lag.paused_until))
    }


async def _count_late_events(connection: Client) -> dict[str, int]:
    try:
        return await count_all_late_events(connection)
    except SettingsNotProvisioned:  # the drift reports it
        return {}


async def _load_exceeded_rates(connection: Client, busy: dict[str, float]) -> dict[str, float]:
    try:
        return await find_exceeded_rates(connection, busy)
    except SettingsNotProvisioned:  # the drift reports it
        return {}


def _examine_folder(data: Path) -> FolderState:
    space = read_disk_space(data)
    return FolderState(
        path=str(data),
        free_bytes=space.free,
        is_full=space.free < LEAST,
        is_nearly_full=space.is_nearly_full,
    )


async def _examine_vectors(deployment: Deployment) -> VectorsState:
    state = _describe_vectors(deployment)
    if not deployment.qdrant_url:
        return state
    # Imported on use: qdrant-client takes a second.
    from mnemon_infra.vectors.server import read_version

    try:
        async with asyncio.timeout(_SERVER_TIMEOUT):
            return state.model_copy(update={"version": await read_version(deployment)})
    except VectorsUnavailable as error:
        return state.model_copy(update={"error": str(error)})
    except TimeoutError:
        silent = (
            f"Qdrant did not answer within {_SERVER_TIMEOUT:.0f} s. Start the server, or check "
            "MNEMON_QDRANT_URL"
        )
        return state.model_copy(update={"error": silent})


def _describe_vectors(deployment: Deployment) -> VectorsState:
    if deployment.qdrant_url:
        return VectorsState(engine="server")
    return VectorsState(engine="embedded", one_process=ONE_PROCESS)


async def _examine_database(deployment: Deployment) -> DatabaseState:
    url, schema, head = deployment.database_url, deployment.database_schema, find_head_revision()
    assert url, "the caller has checked that an address of the database is configured"
    try:
        async with asyncio.timeout(_SERVER_TIMEOUT):
            revision = await asyncio.to_thread(load_revision, url, schema)
            version = await _load_version(deployment) if revision else None
    except (DatabaseUnavailable, TimeoutError) as error:
        silent = f"it did not answer within {_SERVER_TIMEOUT:.0f} s; check PostgreSQL"
        return DatabaseState(error=str(error) or silent, schema_name=schema, head=head)
    return DatabaseState(version=version, schema_name=schema, revision=revision, head=head)


async def _list_log_problems(deployment: Deployment) -> list[str]:
    """Return problems of clocks, of a restore, of the log's format, and of missing rows or events.

    If a server does not answer, return an empty list.
    """
    # `list_problems` already reports servers that do not answer.
    with suppress(BrokerUnreachable, DatabaseUnavailable, nats.errors.Error, TimeoutError):
        async with (
            asyncio.timeout(_SERVER_TIMEOUT),
            await connect_deployment(deployment, name="mnemon-status") as connection,
            Database(deployment, name="mnemon-status") as database,
        ):
            clocks = (await compare_clocks(connection, database)).problem
            replay = await _describe_log_problem(connection)
            return [*filter(None, [clocks, replay, await _find_rows_problem(connection, database)])]
    return []


async def _describe_log_problem(connection: Client) -> str | None:
    """Describe an unfinished restore, a replay of restored events, or a log of a newer version; else None."""
    stream_context = connection.jetstream()
    log = await stream_context.stream_info(LOG)
    try:
        require_known_format(log)
    except LogTooNew as error:
        return str(error)
    with suppress(RestoreUnfinished):
        require_finished_restore(log)
        return describe_replay(log, await stream_context.consumer_info(LOG, "persist"))
    return str(RestoreUnfinished())


async def _find_rows_problem(connection: Client, database: Database) -> str | None:
    try:
        await require_same_log(connection, database)
    except LogLost as error:
        return str(error)
    missing = await find_first_missing(connection, database)
    if missing is None:
        return None
    return (
        f"the event at position {missing:,} of the log has no row, although persist has finished it: "
        "the database is older than the log. Restart mnemon to replay the log"
    )


async def _load_version(deployment: Deployment) -> str:
    async def read_server_version(connection: Any) -> str:
        return "{}.{}".format(*divmod(connection.info.server_version, 10_000))

    async with Database(deployment, name="mnemon-status") as database:
        return await database.run_query(read_server_version)
