"""Turns of users: a turn decides on a share of a user's proposals; then other users have their turns.

The log holds the proposals of all users in one sequence. So the consumer puts off the deliveries of a user
who has more than one turn of work. The broker then delivers the messages of other users at once, and the
user's further turns run without deliveries.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from mnemon_consumers.dedupe.state.user import TURN
from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.outcomes import ACK, DeliveryOutcome, Retry

FAILED: Final = 0
"""Log position that `run_turn` returns after a failed turn, so that every delivery of the user waits."""

FIRST_POSITION: Final = 1
"""Log position that `run_turn` returns before the first turn, so that every delivery of the user waits."""

PUT_OFF_SECONDS: Final = 0.2
"""Minimum delay, in seconds, before the broker delivers a put-off message again."""

PUT_OFF_RATE: Final = 500
"""Maximum number of put-off deliveries of one user that the broker delivers again per second."""

TurnFunction = Callable[[Owner], Awaitable[int | None]]
"""Function that decides on a share of a user's proposals. The function returns the log position from which
the user's proposals wait for another turn, None if no proposal waits, or `FAILED`, and raises no error.
"""


IsDecided = Callable[[Owner, int], bool]
"""Function that returns whether, as far as this process knows, a user's proposals up to a log position are
decided."""


class Turns:
    """Scheduled and running turns of users. Turns of one user run one after the other.

    Args:
        turn: function that runs one turn, and limits the number of turns that run at the same time.
        is_decided: function that tells whether a turn is unnecessary, because all proposals are decided.
    """

    def __init__(self, turn: TurnFunction, is_decided: IsDecided) -> None:
        self._turn = turn
        self._is_decided = is_decided
        self._waiting: dict[Owner, int] = {}
        self._put_off: dict[Owner, int] = {}
        self._running: dict[Owner, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_open = True

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Run scheduled turns until the block ends; then wait for running turns, and start no others."""
        try:
            yield
        finally:
            self._is_open = False
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def run_turn(self, owner: Owner, deliveries: Sequence[int]) -> int | None:
        """Run one turn of a user, and schedule further turns if proposals still wait.

        Args:
            owner: the user.
            deliveries: log positions of the user's deliveries. If there are too many for one turn, the call
                schedules all turns and waits for none. If an earlier turn has decided all of these positions,
                or further turns are scheduled already, the call runs no turn.

        Returns:
            The log position from which the user's proposals wait; `FIRST_POSITION` before the first turn;
            None if no proposal waits; `FAILED` after an error.
        """
        # The first turn tells whether proposals are left. A second call would only wait for the same turn.
        while owner in self._running:
            await self._running[owner].wait()
        if owner not in self._waiting:
            if self._is_decided(owner, max(deliveries)):
                return None
            waits = FIRST_POSITION if len(deliveries) > TURN else await self._run_first_turn(owner)
            if not waits or not self._is_open:
                return waits
            self._schedule_further_turns(owner, waits)
        return self._waiting[owner]

    async def _run_first_turn(self, owner: Owner) -> int | None:
        taken = self._running[owner] = asyncio.Event()
        try:
            return await self._turn(owner)
        finally:
            del self._running[owner]
            taken.set()

    def _schedule_further_turns(self, owner: Owner, waits: int) -> None:
        self._waiting[owner] = waits
        self._put_off[owner] = 0
        task = asyncio.create_task(self._run_further_turns(owner))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def choose_outcome(self, owner: Owner, waits: int | None, seq: int) -> DeliveryOutcome:
        """Return the outcome of a delivery at log position `seq`.

        `waits` is the result of `run_turn`: the log position from which the user's proposals wait, None, or
        `FAILED`.
        """
        if waits is None or seq < waits:
            return ACK
        if waits == FAILED:
            return Retry()
        if owner in self._waiting:
            self._put_off[owner] += 1
        return Retry(PUT_OFF_SECONDS + self._put_off.get(owner, 0) / PUT_OFF_RATE)

    async def _run_further_turns(self, owner: Owner) -> None:
        try:
            while self._is_open and (waits := await self._turn(owner)):
                self._waiting[owner] = waits
        finally:
            del self._waiting[owner]
            del self._put_off[owner]
