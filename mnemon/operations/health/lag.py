"""How far the consumers are behind, how fast they are, and who falls behind."""

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo
from pydantic import BaseModel, ConfigDict

from mnemon_infra.broker.provisioning.topology import CONSUMERS

LOOK: Final = 0.5
"""Seconds between two looks at consumers for which something waits."""

UNREAD: Final = 2.0
"""Seconds for which nobody may read what waits, before that is told."""

MANY: Final = 1000
"""Messages that may wait for a moment without a word."""


class Lag(BaseModel):
    """How far a durable consumer is behind its stream, in messages."""

    model_config = ConfigDict(frozen=True)

    stream: str
    pending: int
    """Not delivered yet."""
    in_work: int
    """Delivered, and not acknowledged yet."""
    redelivered: int
    """Of those in work, delivered before."""
    readers: int
    """Requests for messages that wait at the server."""
    is_read: bool = True
    """Whether anything was asked for or in work, at any of several looks."""
    paused_until: str | None = None
    """While it takes nothing."""
    is_paused_by_dead_letters: bool = False
    """Whether too many dead letters were the cause; else somebody has paused it."""
    per_second: float | None = None
    """Deliveries that it ends in a second; None where nothing waits."""
    grows_per_second: float | None = None
    """By how much more waits after a second; below 0 it gets less."""
    seconds_left: float | None = None
    """Until nothing waits any more, if all goes on as it does; None where it does not get less."""

    @property
    def waiting(self) -> int:
        """Messages that are not ended."""
        return self.pending + self.in_work


class ConsumerSample(NamedTuple):
    """The consumers at a moment, in seconds of this machine's clock that only goes forward."""

    at: float
    infos: Mapping[str, ConsumerInfo]


async def look(stream_context: JetStreamContext, streams: Collection[str]) -> ConsumerSample:
    """Look at each consumer of these streams.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    infos = {
        info.name: info
        for stream, configs in CONSUMERS.items()
        if stream in streams
        for info in await stream_context.consumers_info(stream)
        if info.name in [config.durable_name for config in configs]
    }
    return ConsumerSample(time.monotonic(), infos)


def standing(seen: ConsumerSample) -> dict[str, Lag]:
    """What one look says: nothing of how fast it goes."""
    return {name: _lag(info) for name, info in seen.infos.items()}


def moving(before: ConsumerSample, now: ConsumerSample) -> dict[str, Lag]:
    """What the second of two looks says."""
    seconds = now.at - before.at
    return {
        name: _moving(before.infos[name], info, seconds) if name in before.infos else _lag(info)
        for name, info in now.infos.items()
    }


async def lags(stream_context: JetStreamContext, streams: Collection[str]) -> dict[str, Lag]:
    """Each consumer of these streams; where something waits they are looked at again, `LOOK` apart.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    before = await look(stream_context, streams)
    seen = standing(before)
    if not any(lag.waiting for lag in seen.values()):
        return seen
    unread = {name for name, info in before.infos.items() if not is_read(info, info)}
    while True:
        await asyncio.sleep(LOOK)
        now = await look(stream_context, streams)
        unread = {
            name for name in unread & now.infos.keys() if not is_read(before.infos[name], now.infos[name])
        }
        # A process that is busy asks again when it comes to it.
        if not unread or now.at - before.at >= UNREAD:
            break
    found = seen | moving(before, now)
    return found | {name: found[name].model_copy(update={"is_read": False}) for name in unread}


def is_read(first: ConsumerInfo, second: ConsumerInfo) -> bool:
    """Whether anybody reads what waits for a consumer, by two looks at it."""
    return bool(
        not second.num_pending
        or second.num_ack_pending
        or second.num_waiting
        or _delivered(second) != _delivered(first)
    )


def falling_behind(consumers: Mapping[str, Lag]) -> Iterator[str]:
    """In words, for which consumers more waits from moment to moment."""
    for name, lag in consumers.items():
        if lag.waiting >= MANY and lag.grows_per_second and lag.grows_per_second > 0:
            yield (
                f"{name} falls behind: {lag.waiting:,} messages are pending, and their number grows by "
                f"{lag.grows_per_second:,.0f} per second. No message is lost; they are handled later. "
                "Run more processes if the consumer allows several: docs/scaling.md"
            )


def _lag(info: ConsumerInfo) -> Lag:
    return Lag(
        stream=info.stream_name,
        pending=info.num_pending or 0,
        in_work=info.num_ack_pending or 0,
        redelivered=info.num_redelivered or 0,
        readers=info.num_waiting or 0,
        paused_until=info.config.pause_until if info.paused and info.config else None,
    )


def _moving(first: ConsumerInfo, second: ConsumerInfo, seconds: float) -> Lag:
    before, now = _lag(first), _lag(second)
    if not before.waiting and not now.waiting:
        return now
    grows = (now.waiting - before.waiting) / seconds
    return now.model_copy(
        update={
            "per_second": max(0.0, ended(second) - ended(first)) / seconds,
            "grows_per_second": grows,
            "seconds_left": now.waiting / -grows if grows < 0 else None,
        }
    )


def _delivered(info: ConsumerInfo) -> int:
    return info.delivered.consumer_seq if info.delivered else 0


def ended(info: ConsumerInfo) -> int:
    """How many deliveries have been ended, ever."""
    return _delivered(info) - (info.num_ack_pending or 0)
