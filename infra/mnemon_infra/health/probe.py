"""Health probe: checks the process and its servers, and updates gauges, on an HTTP request."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import nats.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, ConsumerInfo
from nats.js.errors import NotFoundError

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.broker import list_disconnected
from mnemon_infra.broker.provisioning.topology import STREAMS
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable, answer_in_time, list_pools
from mnemon_infra.database.generations.generation_repository import Generation, list_generations
from mnemon_infra.database.migration import SchemaTooNew, require_head_revision
from mnemon_infra.durables import DURABLES
from mnemon_infra.telemetry import metrics
from mnemon_infra.vectors.port import Collection as Points
from mnemon_infra.vectors.port import VectorStore, VectorsUnavailable

CHECK_INTERVAL: Final = 1.0
"""Seconds for which one check serves all clients."""

COUNT_INTERVAL: Final = 60.0
"""Seconds between slow measurements: numbers of vectors, and sizes on the disk."""

ANSWER_WAIT: Final = 4.0
"""Maximum seconds for the servers to answer."""

_BROKER_GAUGES: Final = (
    *(metrics.PENDING, metrics.IN_WORK, metrics.READERS, metrics.PAUSED, metrics.OLDEST),
    *(metrics.STREAM_MESSAGES, metrics.STREAM_BYTES),
)

_POOLS: Final = {"mnemon-compact-models": "compact", "mnemon-extract-models": "extract"}


class ProcessProbe:
    """Checks this process.

    Args:
        names: names of the consumers that the process runs.
        deployment: the servers of the process.
        measure: updates the gauges of other modules.
    """

    def __init__(self, names: Collection[str], deployment: Deployment, measure: Callable[[], None]) -> None:
        self._deployment = deployment
        self._measure = measure
        self._durables = [each.name for each in DURABLES.values() if each.consumer in names]
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
        """Update the gauges. Return the reasons why the process cannot work; empty if it can."""
        async with self._check_lock:
            connection, database = self._connection, self._database
            if connection is None or database is None:
                metrics.READY.set(0)
                return self._reasons
            if time.monotonic() - self._checked_at > CHECK_INTERVAL:
                found = await asyncio.gather(
                    self._check_broker(connection), self._check_schema(database), self._check_points()
                )
                self._reasons = [
                    *(f"{name} is not connected to NATS" for name in list_disconnected()),
                    *(reason for reasons in found for reason in reasons),
                ]
                self._measure_process()
                self._checked_at = time.monotonic()
                metrics.READY.set(not self._reasons)
            return self._reasons

    async def _check_broker(self, connection: Client) -> list[str]:
        try:
            async with asyncio.timeout(ANSWER_WAIT):
                return await self._check_streams(connection.jetstream())
        except (nats.errors.Error, TimeoutError, OSError) as error:
            for gauge in _BROKER_GAUGES:  # remove outdated values
                gauge.replace({})
            return [f"the NATS server does not answer: {error!r}"]

    async def _check_streams(self, stream_context: JetStreamContext) -> list[str]:
        wanted = [str(config.name) for config in STREAMS]
        streams = {str(info.config.name): info.state for info in await stream_context.streams_info()}
        there = {name: streams[name] for name in wanted if name in streams}
        metrics.STREAM_MESSAGES.replace({name: state.messages for name, state in there.items()})
        metrics.STREAM_BYTES.replace({name: state.bytes for name, state in there.items()})
        if LOG in there:
            metrics.LOG_POSITION.set(there[LOG].last_seq)
        infos = {
            info.name: info
            for stream in dict.fromkeys(durable.stream for durable in DURABLES.values())
            if stream in there
            for info in await stream_context.consumers_info(stream)
            if info.name in DURABLES
        }
        await self._measure_lags(stream_context, infos)
        return [
            *(f"the stream {name} does not exist" for name in wanted if name not in there),
            *(f"the consumer {name} does not exist" for name in self._durables if name not in infos),
            *(f"{name} is paused: see `mnemon status`" for name in self._durables if _is_paused(infos, name)),
        ]

    async def _measure_lags(
        self, stream_context: JetStreamContext, infos: Mapping[str, ConsumerInfo]
    ) -> None:
        metrics.PENDING.replace({name: info.num_pending or 0 for name, info in infos.items()})
        metrics.IN_WORK.replace({name: info.num_ack_pending or 0 for name, info in infos.items()})
        metrics.READERS.replace({name: info.num_waiting or 0 for name, info in infos.items()})
        metrics.PAUSED.replace({name: _is_paused(infos, name) for name in infos})
        ages = await asyncio.gather(*(_compute_oldest_age(stream_context, info) for info in infos.values()))
        metrics.OLDEST.replace(dict(zip(infos, ages, strict=True)))

    async def _check_schema(self, database: Database) -> list[str]:
        schema = self._deployment.database_schema
        try:
            await answer_in_time(require_head_revision(database, schema))
        except DatabaseUnavailable as error:
            return [f"the database cannot be used: {error}"]
        except SchemaTooNew as error:
            return [str(error)]
        if time.monotonic() - self._measured_at > COUNT_INTERVAL:
            with suppress(DatabaseUnavailable):
                _measure_generations(await answer_in_time(database.run_query(list_generations(schema))))
                self._measured_at = time.monotonic()
        return []

    async def _check_points(self) -> list[str]:
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
            return [f"the vectors cannot be searched: {error or 'time out'}"]
        metrics.POINTS.replace(counts)
        self._counted_at = time.monotonic()
        return []

    def _measure_process(self) -> None:
        """Update the gauges that need no server."""
        for pool in list_pools():
            name = _POOLS.get(pool.name, "consumers")
            metrics.POOL.set(pool.idle, name, "idle")
            metrics.POOL.set(pool.connections - pool.idle, name, "used")
            metrics.POOL_WAITING.set(pool.waiting, name)
        self._measure()


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


def _is_paused(infos: Mapping[str, ConsumerInfo], name: str) -> bool:
    return name in infos and bool(infos[name].paused)


async def _compute_oldest_age(stream_context: JetStreamContext, info: ConsumerInfo) -> float:
    """Return the age in seconds of the oldest message that a consumer has not ended."""
    if not (info.num_pending or info.num_ack_pending):
        return 0.0
    floor = info.ack_floor.stream_seq if info.ack_floor else 0
    config = info.config or ConsumerConfig()
    patterns = config.filter_subjects or [config.filter_subject or ">"]
    stored_at = [
        await _load_stored_time(stream_context, info.stream_name, floor + 1, each) for each in patterns
    ]
    return max((time.time() - each for each in stored_at if each is not None), default=0.0)


async def _load_stored_time(
    stream_context: JetStreamContext, stream: str, position: int, pattern: str
) -> float | None:
    """Return the time of a stream's first message on a pattern from a position on; None if absent."""
    try:
        found = await stream_context.get_msg(stream, position, pattern, next=True)
    except NotFoundError:
        return None
    assert found.time is not None
    return found.time.timestamp()
