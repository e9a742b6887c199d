"""Health probe: checks the process and its servers, and updates gauges, on an HTTP request."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.batch_processor import measure_failures
from mnemon_infra.broker.broker import get_newest_received, list_lost_connections
from mnemon_infra.broker.durable_progress import (
    DurableProgress,
    compute_oldest_age,
    get_applied_position,
)
from mnemon_infra.broker.provisioning.presence import LOG_ABSENT_STEP
from mnemon_infra.broker.provisioning.topology import STREAMS
from mnemon_infra.broker.streams.log_comparison import LOG_CHANGE_STEP, LogReading, compare_log
from mnemon_infra.broker.streams.restored_log import describe_replay
from mnemon_infra.broker.streams.stream_lists import list_consumers, list_streams
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable, await_answer, list_pools
from mnemon_infra.database.generations.generation_repository import Generation, list_generations
from mnemon_infra.database.migration import SchemaTooNew, require_head_revision
from mnemon_infra.durables import DURABLES
from mnemon_infra.health.fault import (
    MOST_USED,
    STORAGE_WAIT,
    Fault,
    count_unhandled_messages,
    describe_disk,
    describe_failures,
    describe_missing,
    describe_pause,
    describe_stall,
    describe_standstill,
    describe_storage,
    measure_storage,
)
from mnemon_infra.process.free_space import read_disk_space
from mnemon_infra.telemetry import metrics
from mnemon_infra.vectors.port import Collection as Points
from mnemon_infra.vectors.port import VectorStore, VectorsUnavailable

CHECK_INTERVAL: Final = 1.0
"""Seconds for which the result of a check answers further requests."""

COUNT_INTERVAL: Final = 60.0
"""Seconds between slow measurements: numbers of points, and sizes of the generations."""

ANSWER_WAIT: Final = 4.0
"""Maximum seconds for the NATS server, and for the vector store, to answer."""

STORAGE_PAUSE: Final = 600.0
"""Seconds to wait before asking again for the used storage if the NATS server did not answer."""

_BROKER_GAUGES: Final = (
    *(metrics.PENDING, metrics.IN_WORK, metrics.READERS, metrics.PAUSED, metrics.OLDEST),
    *(metrics.STREAM_MESSAGES, metrics.STREAM_BYTES),
)

_POOLS: Final = {"mnemon-compact-models": "compact", "mnemon-extract-models": "extract"}


class ProcessProbe:
    """Health probe of this process: whether its consumers can work, and its gauges.

    Args:
        names: names of the consumers that the process runs.
        deployment: the servers of the process.
        measure: updates the gauges of other modules, and returns the faults that they know.
    """

    def __init__(
        self, names: Collection[str], deployment: Deployment, measure: Callable[[], Sequence[Fault]]
    ) -> None:
        self._deployment = deployment
        self._measure = measure
        self._answers_bots = "retrieve" in names
        self._durables = [each.name for each in DURABLES.values() if each.consumer in names]
        self._progress = DurableProgress()
        self._log: LogReading | None = None
        self._storage_paused_until = float("-inf")
        self._check_lock = asyncio.Lock()
        self._checked_at = self._counted_at = self._measured_at = float("-inf")
        self._reasons: Sequence[str] = ["the process is starting"]
        self._connection: Client | None = None
        self._database: Database | None = None
        self._vectors: VectorStore | None = None

    @asynccontextmanager
    async def report_running(
        self, connection: Client, database: Database, vectors: VectorStore | None
    ) -> AsyncIterator[None]:
        """Report the consumers of the process as running until the end of the block."""
        self._connection, self._database, self._vectors = connection, database, vectors
        self._checked_at = float("-inf")
        try:
            yield
        finally:
            self._connection = None
            self._reasons = ["the process is ending"]

    async def check(self) -> Sequence[str]:
        """Update the gauges. Return the reasons why the process cannot work; empty if there is none."""
        async with self._check_lock:
            connection, database = self._connection, self._database
            if connection is None or database is None:
                metrics.READY.set(0)
                return self._reasons
            if time.monotonic() - self._checked_at > CHECK_INTERVAL:
                found = await asyncio.gather(
                    self._check_broker(connection), self._check_schema(database), self._check_points()
                )
                faults = [
                    *(
                        Fault(
                            "server",
                            f"{name} is not connected to NATS",
                            "check the NATS server; the process then reconnects",
                        )
                        for name in list_lost_connections()
                    ),
                    *(fault for faults in found for fault in faults),
                    *self._check_disk(),
                    *self._check_batches(),
                    *self._measure_process(),
                ]
                self._reasons = [str(fault) for fault in faults]
                self._checked_at = time.monotonic()
                metrics.FAULTS.replace_series({(fault.kind, fault.consumer): 1 for fault in faults})
                metrics.READY.set(not faults)
            return self._reasons

    async def _check_broker(self, connection: Client) -> list[Fault]:
        try:
            async with asyncio.timeout(ANSWER_WAIT):
                return await self._check_streams(connection)
        except (nats.errors.Error, TimeoutError, OSError) as error:
            for gauge in _BROKER_GAUGES:  # remove outdated values
                gauge.replace({})
            problem = str(error) or f"no answer within {ANSWER_WAIT:g} s"
            return [
                Fault(
                    "server",
                    f"the NATS server does not answer ({problem})",
                    "check the server, and MNEMON_NATS_URL",
                )
            ]

    async def _check_streams(self, connection: Client) -> list[Fault]:
        stream_context = connection.jetstream()
        wanted = [str(config.name) for config in STREAMS]
        found = {str(info.config.name): info for info in await list_streams(stream_context)}
        states = {name: found[name].state for name in wanted if name in found}
        metrics.STREAM_MESSAGES.replace({name: state.messages for name, state in states.items()})
        metrics.STREAM_BYTES.replace({name: state.bytes for name, state in states.items()})
        if LOG in states:
            metrics.LOG_POSITION.set(states[LOG].last_seq)
        infos = {
            info.name: info
            for stream in dict.fromkeys(durable.stream for durable in DURABLES.values())
            if stream in states
            for info in await list_consumers(stream_context, stream)
            if info.name in DURABLES
        }
        await self._measure_lags(stream_context, infos)
        has_rows = not self._answers_bots or LOG not in found or "persist" not in infos
        replay = None if has_rows else describe_replay(found[LOG], infos["persist"])
        return [
            *([Fault("log", replay)] if replay else []),
            *await self._check_log(stream_context),
            *(
                Fault(
                    "server",
                    f"the stream {name} does not exist",
                    LOG_ABSENT_STEP if name == LOG else "run `mnemon provision`",
                )
                for name in wanted
                if name not in states
            ),
            *await self._check_durables(connection, infos),
            *await self._check_storage(stream_context),
        ]

    async def _check_log(self, stream_context: JetStreamContext) -> list[Fault]:
        """Return a fault if the log was replaced or cut short since this process last read it."""
        now, change = await compare_log(stream_context, self._log, get_newest_received())
        if now is None:
            return []  # a fault of its own
        if change:
            return [Fault("log", change, LOG_CHANGE_STEP)]
        self._log = now
        return []

    async def _check_durables(self, connection: Client, infos: Mapping[str, ConsumerInfo]) -> list[Fault]:
        self._progress.observe(infos.values())
        faults = [describe_missing(name) for name in self._durables if name not in infos]
        for info in (infos[name] for name in self._durables if name in infos):
            name, waiting = info.name, count_unhandled_messages(info)
            if info.paused and info.config and info.config.pause_until:
                faults.append(await describe_pause(connection, DURABLES[name], info.config.pause_until))
            elif stalled := self._progress.measure_stall(name):
                faults.append(describe_stall(name, waiting, stalled))
            elif still := self._progress.measure_standstill(name):
                faults.append(describe_standstill(name, get_applied_position(info), waiting, still))
        return faults

    async def _check_storage(self, stream_context: JetStreamContext) -> list[Fault]:
        if time.monotonic() < self._storage_paused_until:
            return []
        try:
            async with asyncio.timeout(STORAGE_WAIT):
                used = await measure_storage(stream_context)
        except TimeoutError:
            self._storage_paused_until = time.monotonic() + STORAGE_PAUSE
            return []
        if used is not None:
            metrics.STORAGE_USED.set(used)
        return [describe_storage(used)] if used is not None and used > MOST_USED else []

    def _check_disk(self) -> list[Fault]:
        """Return a fault if the disk with the folder of embedded vectors is nearly full.

        With a Qdrant server, `mnemon up` still sets `vectors_folder`, to a path in the data folder: then the
        disk of the data folder is checked.
        """
        folder = self._deployment.vectors_folder
        if folder is None or not folder.parent.exists():
            return []
        space = read_disk_space(folder.parent)
        metrics.DISK_FREE.set(space.free)
        return [describe_disk(folder.parent, space)] if space.is_nearly_full else []

    def _check_batches(self) -> list[Fault]:
        return [
            describe_failures(name, seconds)
            for name in self._durables
            for seconds in [measure_failures(name)]
            if seconds
        ]

    async def _measure_lags(
        self, stream_context: JetStreamContext, infos: Mapping[str, ConsumerInfo]
    ) -> None:
        metrics.PENDING.replace({name: info.num_pending or 0 for name, info in infos.items()})
        metrics.IN_WORK.replace({name: info.num_ack_pending or 0 for name, info in infos.items()})
        metrics.READERS.replace({name: info.num_waiting or 0 for name, info in infos.items()})
        metrics.PAUSED.replace({name: bool(info.paused) for name, info in infos.items()})
        ages = await asyncio.gather(*(compute_oldest_age(stream_context, info) for info in infos.values()))
        metrics.OLDEST.replace(dict(zip(infos, ages, strict=True)))

    async def _check_schema(self, database: Database) -> list[Fault]:
        schema = self._deployment.database_schema
        try:
            await await_answer(require_head_revision(database, schema))
        except DatabaseUnavailable as error:
            return [Fault("server", f"the database cannot be used: {error}")]
        except SchemaTooNew as error:
            return [Fault("server", str(error))]
        if time.monotonic() - self._measured_at > COUNT_INTERVAL:
            with suppress(DatabaseUnavailable):
                _measure_generations(await await_answer(database.run_query(list_generations(schema))))
                self._measured_at = time.monotonic()
        return []

    async def _check_points(self) -> list[Fault]:
        if self._vectors is None:
            return []
        try:
            async with asyncio.timeout(ANSWER_WAIT):
                await self._vectors.require_present()
                if time.monotonic() - self._counted_at < COUNT_INTERVAL:
                    return []
                counts = {str(each): await self._vectors.count(each) for each in Points}
        except (VectorsUnavailable, TimeoutError) as error:
            metrics.POINTS.replace({})
            if isinstance(error, TimeoutError):
                problem = f"the vector store did not answer within {ANSWER_WAIT:g} s"
                return [Fault("server", problem, "check the vector store")]
            return [Fault("server", f"the vectors cannot be searched: {error}")]
        metrics.POINTS.replace(counts)
        self._counted_at = time.monotonic()
        return []

    def _measure_process(self) -> Sequence[Fault]:
        """Update the gauges that need no server. Return the faults that other modules know."""
        connections, waiting = Counter[tuple[str, ...]](), Counter[str]()
        for pool in list_pools():
            name = _POOLS.get(pool.name, "consumers")
            connections[name, "idle"] += pool.idle
            connections[name, "used"] += pool.connections - pool.idle
            waiting[name] += pool.waiting
        metrics.POOL.replace_series(connections)
        metrics.POOL_WAITING.replace(waiting)
        return self._measure()


def _measure_generations(generations: Sequence[Generation]) -> None:
    """Set the gauges of the generations' sizes, and of the next generation's progress."""
    taken: dict[str, float] = {}
    for each in generations:
        taken[each.kind] = taken.get(each.kind, 0) + each.bytes
    metrics.DATABASE_BYTES.replace(taken)
    reached = next(
        ((each.reached, each.vectors) for each in generations if each.kind == "next"), (None, None)
    )
    parts = zip(("rows", "vectors"), reached, strict=True)
    metrics.REBUILT.replace({part: position for part, position in parts if position is not None})
