"""Limit on dead letters within a minute: a consumer beyond the limit is probably at fault, and is paused."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from mnemon_contracts.streams import DEAD
from mnemon_contracts.subjects import build_dead_letter_filter
from mnemon_infra.broker.outcomes import Dead, DeliveryOutcome, Retry

log = structlog.get_logger("broker")

WINDOW: Final = 60.0
"""Seconds within which dead letters are counted together."""

PAUSE: Final = 300.0
"""Seconds of a consumer's pause. Then the server resumes the consumer without an operator."""


class DeadLimit:
    """Limit on the dead letters of a consumer within a minute, counted in this process.

    Beyond the limit, a message is retried instead, so that it stays in its stream.

    Args:
        stream: the stream that the consumer reads.
        consumer: name of the consumer.
        letters: maximum number of dead letters within `WINDOW` seconds.
    """

    def __init__(self, stream: str, consumer: str, letters: int) -> None:
        self._stream = stream
        self._consumer = consumer
        self._letters = letters
        self._recent: deque[tuple[float, str]] = deque()
        self._paused_until = 0.0

    async def apply(
        self, connection: Client, outcomes: Sequence[DeliveryOutcome]
    ) -> Sequence[DeliveryOutcome]:
        """Replace dead letters beyond the limit by `Retry`, and pause the consumer if any are replaced.

        The server pauses the consumer for all processes: the other processes of the consumer would reach the
        limit later.
        """
        if Dead not in map(type, outcomes):
            return outcomes
        now = asyncio.get_running_loop().time()
        while self._recent and self._recent[0][0] <= now - WINDOW:
            self._recent.popleft()
        limited = [self._limit_outcome(outcome, now) for outcome in outcomes]
        if limited != list(outcomes) and now >= self._paused_until:
            await self._pause_consumer(connection, now)
        return limited

    def _limit_outcome(self, outcome: DeliveryOutcome, now: float) -> DeliveryOutcome:
        if not isinstance(outcome, Dead):
            return outcome
        if len(self._recent) >= self._letters:
            return Retry()
        self._recent.append((now, outcome.reason))
        return outcome

    async def _pause_consumer(self, connection: Client, now: float) -> None:
        until = f"{datetime.now(UTC) + timedelta(seconds=PAUSE):%Y-%m-%dT%H:%M:%SZ}"
        try:
            await connection.jetstream().pause_consumer(self._stream, self._consumer, until)
        except nats.errors.Error as error:
            log.warning("consumer pause failed, retrying", consumer=self._consumer, error=repr(error))
            return
        self._paused_until = now + PAUSE
        ((reason, count),) = Counter(reason for _, reason in self._recent).most_common(1)
        log.error(
            "consumer paused, too many dead letters",
            consumer=self._consumer,
            dead_letters=len(self._recent),
            within_seconds=WINDOW,
            commonest_reason=reason,
            dead_letters_of_this_reason=count,
            resumes_at=until,
            next_step=f"mnemon dead list --consumer {self._consumer}",
        )


async def is_paused_by_dead_letters(connection: Client, consumer: str, until: datetime) -> bool:
    """Return whether `DeadLimit` caused a consumer's pause that ends at `until`.

    The server keeps no reason for a pause, but `DeadLimit` pauses a consumer soon after its newest letter. So
    the result is True if the pause, of `PAUSE` seconds, began within `WINDOW` seconds of that letter.
    """
    try:
        newest = await connection.jetstream().get_last_msg(DEAD, build_dead_letter_filter(consumer))
    except NotFoundError:
        return False
    begun = until - timedelta(seconds=PAUSE)
    return newest.time is not None and abs(newest.time - begun) <= timedelta(seconds=WINDOW)
