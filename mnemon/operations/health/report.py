"""Health report of a deployment: state of its servers, problems and warnings."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from pydantic import BaseModel, ConfigDict

from mnemon.operations.health import failing_models
from mnemon.operations.health.busy_tenants import (
    find_exceeded_rates,
    measure_event_rates,
    warn_of_busy_tenants,
)
from mnemon.operations.health.dead_letters import find_oldest_letter, warn_of_dead_letters
from mnemon.operations.health.lag import (
    Lag,
    StreamState,
    measure_lags,
    read_stream_states,
    warn_of_growing_lags,
)
from mnemon.operations.health.models import ModelsState, examine_models
from mnemon.operations.health.services import count_processes
from mnemon.operations.tenant_move.late_events import count_all_late_events, warn_of_late_events
from mnemon_contracts.streams import DEAD, LOG
from mnemon_infra.broker.connection import BrokerUnreachable, connect_deployment
from mnemon_infra.broker.dead_letters.limit import is_paused_by_dead_letters
from mnemon_infra.broker.provisioning.presence import StreamsMissing
from mnemon_infra.broker.provisioning.topology import list_drift
from mnemon_infra.broker.streams.log_format import LogTooNew, require_known_format
from mnemon_infra.broker.streams.restored_log import (
    RestoreUnfinished,
    describe_replay,
    require_finished_restore,
)
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.migration import SchemaTooNew, find_head_revision, is_known_revision, load_revision
from mnemon_infra.durables import DURABLES
from mnemon_infra.health.clock_skew import compare_clocks
from mnemon_infra.health.consistency import LogLost, find_first_missing, require_same_log
from mnemon_infra.health.fault import (
    MOST_USED,
    STORAGE_WAIT,
    Fault,
    FaultKind,
    describe_disk,
    describe_known_pause,
    describe_missing,
    describe_standstill,
    describe_storage,
    describe_unread,
    measure_storage,
)
from mnemon_infra.process.free_space import LEAST, format_megabytes, read_disk_space
from mnemon_infra.settings.bucket import SettingsNotProvisioned
from mnemon_infra.vectors.port import VectorsUnavailable

_MISSING: Final = "is missing"

_SERVER_TIMEOUT = 5.0
"""Seconds within which a server has to answer."""

ONE_PROCESS = ("index", "dedupe", "retrieve")
"""Consumers that must share one process with the embedded vector store, which only one process opens."""


class _FrozenState(BaseModel):
    model_config = ConfigDict(frozen=True)


class BrokerState(_FrozenState):
    """State of the broker; `error` is set, and the rest empty, if the broker does not answer."""

    error: str | None = None
    version: str | None = None
    streams: dict[str, StreamState] = {}
    consumers: dict[str, Lag] = {}
    services: dict[str, int] = {}
    """Numbers of processes that answer requests, by name of the service."""
    dead_letters: int = 0
    storage_used_ratio: float | None = None
    """Used share of JetStream's storage, from 0 to 1.

    None if the account has no limit, the login lacks the permission, or the server does not answer in time.
    """
    oldest_dead_letter: datetime | None = None
    """Time at which the oldest dead letter was stored; None if there are no dead letters."""
    drift: dict[str, str] = {}
    """Parts of the server that `mnemon provision` would change, each with the difference."""
    events_per_second: dict[str, float] = {}
    """Current rate of chat events, in events per second, by tenant."""
    events_meant: dict[str, float] = {}
    """The setting `rates.events_per_second` of each tenant whose bots exceed it, in events per second."""
    late_events: dict[str, int] = {}
    """Number of late events that are not forwarded, by tenant.

    A late event is one that this deployment has received since its tenant moved to another deployment.
    """


class DatabaseState(_FrozenState):
    """State of the database; `error` is set if it does not answer.

    `revision` is that of the schema, and `head` the one that this version of mnemon needs. `revision` and
    `version` are None without an answer, or if no migration has created the schema.
    """

    error: str | None = None
    version: str | None = None
    schema_name: str
    revision: str | None = None
    head: str


class VectorsState(_FrozenState):
    """The vector store, and the consumers that must run in one process because of it (`one_process`).

    `version` and `error` concern a Qdrant server; both are None for the embedded engine.
    """

    engine: Literal["server", "embedded"]
    one_process: tuple[str, ...] = ()
    version: str | None = None
    error: str | None = None


class FolderState(_FrozenState):
    """The folder of a stack that `mnemon up` runs, and the free space of its disk."""

    path: str
    free_bytes: int
    is_full: bool
    """True if the free space is below the limit at which a disk counts as full: writes may fail."""
    is_nearly_full: bool = False
    """True if the free space is below the limit at which processes report that they are not ready."""


class ConsumerFault(_FrozenState):
    """A fault of a durable, with the next step.

    `Health.problems` has the problem and the next step as one sentence.
    """

    consumer: str
    fault: FaultKind
    problem: str
    next_step: str


class Health(_FrozenState):
    """Health of a deployment. `problems` describes in sentences what an operator has to fix."""

    broker: BrokerState
    database: DatabaseState
    vectors: VectorsState
    folder: FolderState | None = None
    """The folder of the stack; None if `mnemon up` does not run the servers."""
    models: ModelsState | None = None
    """The work for language models; None if a server does not answer or the schema has another version."""
    reachable: bool
    healthy: bool
    problems: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """Sentences about conditions that may become problems."""
    faults: tuple[ConsumerFault, ...] = ()
    """The durables that are missing, paused, not read, or at a standstill."""


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
    faults = _list_consumer_faults(broker)
    of_vectors = [vectors.error] if vectors.error else []
    problems = (*_list_problems(broker, database, folder, models, faults), *of_vectors, *of_log)
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
        problems=(*_list_folder_problems(folder), server_logs),
    )


def _list_folder_problems(folder: FolderState | None) -> list[str]:
    if folder is None or not folder.is_nearly_full:
        return []
    if not folder.is_full:
        return [str(describe_disk(folder.path, read_disk_space(Path(folder.path))))]
    problem = (
        f"the disk of {folder.path} is full: only {format_megabytes(folder.free_bytes)} are free. Messages of"
        " bots are refused with an error. Free space on the disk; mnemon then continues automatically"
    )
    return [problem]


def _list_problems(
    broker: BrokerState,
    database: DatabaseState,
    folder: FolderState | None,
    models: ModelsState | None,
    faults: Sequence[Fault],
) -> list[str]:
    found = _list_folder_problems(folder)
    if broker.error:
        found.append(broker.error)
    if database.error:
        found.append(f"the database cannot be used: {database.error}")
    elif database.revision and not is_known_revision(database.revision):
        found.append(str(SchemaTooNew(database.schema_name, database.revision)))
    elif database.revision != database.head:
        at = f"at revision {database.revision}" if database.revision else "missing"
        found.append(
            f"schema {database.schema_name} is {at}, but this version needs {database.head}: run `mnemon"
            " migrate`"
        )
    if models and models.error:
        found.append(f"the work of language models cannot be read: {models.error}")
    if models:
        found += failing_models.describe_problems(models.failing, models.given_up)
    if broker.error is None and LOG not in broker.streams:
        # Leave out the rest of the drift: `mnemon provision` would also create a new log.
        found.append(str(StreamsMissing([LOG])))
    else:
        found += [
            f"{what} {how}: run `mnemon provision`"
            for what, how in broker.drift.items()
            if what not in _list_missing(broker)
        ]
    if broker.storage_used_ratio is not None and broker.storage_used_ratio > MOST_USED:
        found.append(str(describe_storage(broker.storage_used_ratio)))
    return [*found, *map(str, faults)]


def _list_missing(broker: BrokerState) -> dict[str, str]:
    """Return the names of the missing durables whose streams exist, by key of `broker.drift`."""
    of_durables = {f"consumer {each.name} of {each.stream}": each for each in DURABLES.values()}
    return {
        what: of_durables[what].name
        for what, how in broker.drift.items()
        if how == _MISSING and what in of_durables and of_durables[what].stream in broker.streams
    }


def _list_consumer_faults(broker: BrokerState) -> list[Fault]:
    faults = [] if LOG not in broker.streams else [*map(describe_missing, _list_missing(broker).values())]
    for name, lag in broker.consumers.items():
        if lag.paused_until:
            by_dead_letters = lag.is_paused_by_dead_letters
            faults.append(
                describe_known_pause(lag.stream, name, lag.paused_until, by_dead_letters=by_dead_letters)
            )
        elif not lag.is_read:
            faults.append(describe_unread(name, DURABLES[name].consumer, lag.pending))
        elif lag.standstill_seconds:
            seconds = lag.standstill_seconds
            faults.append(describe_standstill(name, lag.applied_position, lag.waiting, seconds))
    return faults


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
        streams=streams,
        consumers=await _mark_pause_causes(connection, await measure_lags(jetstream, streams)),
        services=await count_processes(connection),
        dead_letters=streams[DEAD].messages if DEAD in streams else 0,
        storage_used_ratio=await _measure_storage(jetstream),
        oldest_dead_letter=await find_oldest_letter(jetstream) if DEAD in streams else None,
        drift={
            change.what: change.detail or _MISSING
            for change in await list_drift(connection, replicas)
            if change.action != "unchanged"
        },
        events_per_second=busy,
        events_meant=await _load_exceeded_rates(connection, busy),
        late_events=await _count_late_events(connection) if LOG in streams else {},
    )


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
        silent = "Qdrant does not answer in time. Start the server, or check MNEMON_QDRANT_URL"
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
    # `_list_problems` already reports servers that do not answer.
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
