"""Progress of durables, from their states on the server: stalled readers, and positions that stand still."""

import asyncio
import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, ConsumerInfo
from nats.js.errors import NotFoundError

from mnemon_contracts.streams import LOG
from mnemon_infra.durables import ACK_WAIT

STALL_SECONDS: Final = 10.0
"""Seconds without a delivery after which readers count as stalled while messages wait.

A reader requests messages at least every 4 seconds: the sum of `IDLE_WAIT`, `STATUS_WAIT` and twice the
longest linger, which is 1 second unless configured longer.
"""

STANDSTILL_SECONDS: Final = 3 * ACK_WAIT
"""Seconds after which an applied position counts as standing still: the messages of a process that was killed
are delivered again after `ACK_WAIT`, and retries wait up to 30 seconds.
"""

APPLIED: Final = frozenset({"persist", "index"})
"""Durables whose standstill is measured. Requests wait for the applied positions of these durables.

Other durables may retry the messages of some users for long, which holds back the applied position.
"""


class _Mark(NamedTuple):
    position: int
    since: float


class DurableProgress:
    """Times for which durables have had waiting messages and made no progress."""

    def __init__(self) -> None:
        self._delivered: dict[str, _Mark] = {}
        self._applied: dict[str, _Mark] = {}

    def observe(self, infos: Iterable[ConsumerInfo], now: float | None = None) -> None:
        """Record the states of all durables, as the server reports them.

        A durable that is absent, paused or without waiting messages is forgotten, so that its times start
        again at 0. A durable with unacknowledged messages starts again at 0 for `measure_stall` only.

        `now` is a time of the monotonic clock, in seconds; None reads the clock.
        """
        at = time.monotonic() if now is None else now
        readable = [info for info in infos if not info.paused]
        self._delivered = {
            info.name: _keep_mark(self._delivered.get(info.name), delivered, at)
            for info in readable
            if info.num_pending and not info.num_ack_pending
            for delivered in [info.delivered.consumer_seq if info.delivered else 0]
        }
        self._applied = {
            info.name: _keep_mark(self._applied.get(info.name), get_applied_position(info), at)
            for info in readable
            if info.stream_name == LOG and info.name in APPLIED
            if info.num_pending or info.num_ack_pending
        }

    def measure_stall(self, name: str, now: float | None = None) -> float:
        """Return the seconds for which the durable `name` has delivered nothing while messages waited.

        Return 0 below `STALL_SECONDS`.

        A durable with unacknowledged messages has not stalled: its readers have work. `now` is a time as in
        `observe`.
        """
        return _measure_seconds(self._delivered.get(name), now, STALL_SECONDS)

    def measure_standstill(self, name: str, now: float | None = None) -> float:
        """Return the seconds for which a durable's applied position has stood still while messages waited.

        Return 0 below `STANDSTILL_SECONDS`, and for durables that are not in `APPLIED`. `now` is a time as in
        `observe`.
        """
        return _measure_seconds(self._applied.get(name), now, STANDSTILL_SECONDS)


def get_applied_position(info: ConsumerInfo) -> int:
    """Return the stream position up to which a durable has handled every message; 0 if it handled none."""
    return info.ack_floor.stream_seq if info.ack_floor else 0


async def compute_oldest_age(stream_context: JetStreamContext, info: ConsumerInfo) -> float:
    """Return the age in seconds of the oldest message that a consumer has not handled; 0 if there is none."""
    if not (info.num_pending or info.num_ack_pending):
        return 0.0
    config = info.config or ConsumerConfig()
    patterns = config.filter_subjects or [config.filter_subject or ">"]
    first = get_applied_position(info) + 1
    stored_at = await asyncio.gather(
        *(_load_stored_time(stream_context, info.stream_name, first, each) for each in patterns)
    )
    return max((time.time() - each for each in stored_at if each is not None), default=0.0)


async def _load_stored_time(
    stream_context: JetStreamContext, stream: str, position: int, pattern: str
) -> float | None:
    """Return the time at which the server stored the first message of `pattern` at `position` or beyond.

    The time is in seconds since 1970; None if there is no such message.
    """
    try:
        found = await stream_context.get_msg(stream, position, pattern, next=True)
    except NotFoundError:
        return None
    assert found.time is not None
    return found.time.timestamp()


def _keep_mark(former: _Mark | None, position: int, now: float) -> _Mark:
    return former if former is not None and former.position == position else _Mark(position, now)


def _measure_seconds(mark: _Mark | None, now: float | None, least: float) -> float:
    if mark is None:
        return 0.0
    seconds = (time.monotonic() if now is None else now) - mark.since
    return seconds if seconds >= least else 0.0
