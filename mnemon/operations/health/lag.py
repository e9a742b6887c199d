"""State of the streams, and lag of the consumers with their rates."""

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo
from pydantic import BaseModel, ConfigDict

from mnemon_infra.broker.durable_progress import (
    APPLIED,
    STANDSTILL_SECONDS,
    compute_oldest_age,
    get_applied_position,
)
from mnemon_infra.broker.provisioning.topology import STREAMS
from mnemon_infra.broker.streams.stream_lists import list_consumers, list_streams
from mnemon_infra.durables import DURABLES

SAMPLE_INTERVAL: Final = 0.5
"""Seconds between two samples of durables that have waiting messages."""

UNREAD_SECONDS: Final = 2.0
"""Seconds for which pending messages may have no reader before the consumer counts as not read."""

MANY_MESSAGES: Final = 1000
"""Number of waiting messages below which a growing lag is not reported."""


class Lag(BaseModel):
    """Lag of a durable behind its stream, in messages, with its rates."""

    model_config = ConfigDict(frozen=True)

    stream: str
    pending: int
    """Messages that are not delivered yet."""
    in_work: int
    """Messages that are delivered and not acknowledged yet."""
    redelivered: int
    """Messages in work that were delivered more than once."""
    readers: int
    """Number of pull requests that wait at the server, from processes that run the consumer."""
    is_read: bool = True
    """False if messages are pending, but none is in work, and no process requested or received one during the
    samples of `mnemon status`."""
    applied_position: int = 0
    """Position in the stream up to which the consumer has handled every message."""
    standstill_seconds: float | None = None
    """Age of the oldest waiting message, in seconds; None unless the applied position stands still and the
    age is at least `STANDSTILL_SECONDS`."""
    paused_until: str | None = None
    """End of the pause of the durable, in ISO 8601; None if the durable is not paused."""
    is_paused_by_dead_letters: bool = False
    """True if too many dead letters caused the pause; False if an operator did, or if there is no pause."""
    per_second: float | None = None
    """Deliveries that end per second; None without two samples, or if no messages wait in either."""
    grows_per_second: float | None = None
    """Growth of the lag in messages per second, negative if it shrinks; None as for `per_second`."""
    seconds_left: float | None = None
    """Seconds until no message waits, at the current rate; None unless `grows_per_second` is negative."""

    @property
    def waiting(self) -> int:
        """Number of messages that are not acknowledged: pending or in work."""
        return self.pending + self.in_work


class DurableSample(NamedTuple):
    """State of the durables at one moment; `at` is in seconds of the monotonic clock of this machine."""

    at: float
    infos: Mapping[str, ConsumerInfo]


async def sample_durables(stream_context: JetStreamContext, streams: Collection[str]) -> DurableSample:
    """Read the state of the durables whose stream is in `streams`.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    infos = {
        info.name: info
        for stream in dict.fromkeys(durable.stream for durable in DURABLES.values())
        if stream in streams
        for info in await list_consumers(stream_context, stream)
        if info.name in DURABLES
    }
    return DurableSample(time.monotonic(), infos)


def list_lags(seen: DurableSample) -> dict[str, Lag]:
    """Return the lags of one sample, without rates."""
    return {name: _create_lag(info) for name, info in seen.infos.items()}


def compute_lags(before: DurableSample, now: DurableSample) -> dict[str, Lag]:
    """Return the lags of the second of two samples, with rates."""
    seconds = now.at - before.at
    return {
        name: _compute_lag(before.infos[name], info, seconds) if name in before.infos else _create_lag(info)
        for name, info in now.infos.items()
    }


async def measure_lags(stream_context: JetStreamContext, streams: Collection[str]) -> dict[str, Lag]:
    """Return the lag of each durable whose stream is in `streams`.

    If messages wait, take further samples every `SAMPLE_INTERVAL` seconds, for at most `UNREAD_SECONDS`
    seconds. Stop earlier if `is_read` has returned True for each durable, and the applied position of each
    durable with waiting messages has moved.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    before = await sample_durables(stream_context, streams)
    seen = list_lags(before)
    if not any(lag.waiting for lag in seen.values()):
        return seen
    unread = {name for name, info in before.infos.items() if not is_read(info, info)}
    still = {name for name in APPLIED & before.infos.keys() if seen[name].waiting}
    while True:
        await asyncio.sleep(SAMPLE_INTERVAL)
        now = await sample_durables(stream_context, streams)
        unread = {
            name for name in unread & now.infos.keys() if not is_read(before.infos[name], now.infos[name])
        }
        still = {
            name
            for name in still & now.infos.keys()
            if get_applied_position(before.infos[name]) == get_applied_position(now.infos[name])
        }
        # A busy process requests messages again when it is done: allow it `UNREAD_SECONDS` seconds.
        if not (unread or still) or now.at - before.at >= UNREAD_SECONDS:
            break
    found = seen | compute_lags(before, now)
    found |= {name: found[name].model_copy(update={"is_read": False}) for name in unread}
    for name in still:
        age = await compute_oldest_age(stream_context, now.infos[name])
        if age >= STANDSTILL_SECONDS and found[name].waiting:
            found[name] = found[name].model_copy(update={"standstill_seconds": age})
    return found


def is_read(first: ConsumerInfo, second: ConsumerInfo) -> bool:
    """Return whether a process reads a durable.

    Return False if the second sample has pending messages, but none in work and no open request for messages,
    and no message was delivered between the samples.
    """
    return bool(
        not second.num_pending
        or second.num_ack_pending
        or second.num_waiting
        or _count_deliveries(second) != _count_deliveries(first)
    )


def warn_of_growing_lags(consumers: Mapping[str, Lag]) -> Iterator[str]:
    """Yield a warning for each consumer with `MANY_MESSAGES` or more waiting messages whose lag grows."""
    for name, lag in consumers.items():
        if lag.waiting >= MANY_MESSAGES and lag.grows_per_second and lag.grows_per_second > 0:
            yield (
                f"{name} falls behind: {lag.waiting:,} messages wait, and their number grows by "
                f"{lag.grows_per_second:,.0f} per second. No message is lost; they are handled later. "
                "Run more processes if the consumer allows several: docs/scaling.md"
            )


def _create_lag(info: ConsumerInfo) -> Lag:
    return Lag(
        stream=info.stream_name,
        pending=info.num_pending or 0,
        in_work=info.num_ack_pending or 0,
        redelivered=info.num_redelivered or 0,
        readers=info.num_waiting or 0,
        applied_position=get_applied_position(info),
        paused_until=info.config.pause_until if info.paused and info.config else None,
    )


def _compute_lag(first: ConsumerInfo, second: ConsumerInfo, seconds: float) -> Lag:
    before, now = _create_lag(first), _create_lag(second)
    if not before.waiting and not now.waiting:
        return now
    grows = (now.waiting - before.waiting) / seconds
    return now.model_copy(
        update={
            "per_second": max(0.0, count_ended_deliveries(second) - count_ended_deliveries(first)) / seconds,
            "grows_per_second": grows,
            "seconds_left": now.waiting / -grows if grows < 0 else None,
        }
    )


def _count_deliveries(info: ConsumerInfo) -> int:
    return info.delivered.consumer_seq if info.delivered else 0


def count_ended_deliveries(info: ConsumerInfo) -> int:
    """Return the number of deliveries that have ended since the durable was created."""
    return _count_deliveries(info) - (info.num_ack_pending or 0)


class StreamState(BaseModel):
    """State of a stream: messages and bytes that it keeps, and the highest sequence number ever assigned."""

    model_config = ConfigDict(frozen=True)

    messages: int
    bytes: int
    last_seq: int


async def read_stream_states(stream_context: JetStreamContext) -> dict[str, StreamState]:
    """Return the state of each stream of mnemon that exists, by name.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    wanted = [str(config.name) for config in STREAMS]
    return {
        str(info.config.name): StreamState(
            messages=info.state.messages, bytes=info.state.bytes, last_seq=info.state.last_seq
        )
        for info in await list_streams(stream_context)
        if info.config.name in wanted
    }
