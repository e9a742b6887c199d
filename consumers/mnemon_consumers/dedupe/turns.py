"""Users take turns: of whom much was proposed, a share of it is decided on at a time, and then others come.

The log has all proposals in one line. So the deliveries of a user who has more than a turn are put off, those
behind them come at once, and the user goes on turn by turn without deliveries.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from mnemon_consumers.dedupe.state.user import TURN
from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.outcomes import ACK, DeliveryOutcome, Retry

FAILED: Final = 0
"""The log position from which on all waits where a turn failed."""

ALL: Final = 1
"""The same where none was taken yet."""

LATER: Final = 0.2
"""Seconds after which a delivery that was put off comes again, at least."""

A_SECOND: Final = 500
"""Of a user's deliveries that were put off, how many come again in a second."""

TurnFunction = Callable[[Owner], Awaitable[int | None]]
"""Decides on a share of what a user has. Gives the log position from which on the user's proposals wait for
another turn, None when none does, or `FAILED`; it raises nothing."""


IsDecided = Callable[[Owner, int], bool]
"""Whether all that a user proposed up to a log position is known to be decided."""


class Turns:
    """Gives users their turns; how many at the same time is the turn's own business."""

    def __init__(self, turn: TurnFunction, is_decided: IsDecided) -> None:
        self._turn = turn
        self._is_decided = is_decided
        self._waiting: dict[Owner, int] = {}
        self._put_off: dict[Owner, int] = {}
        self._taking: dict[Owner, asyncio.Event] = {}
        self._going_on: set[asyncio.Task[None]] = set()
        self._is_open = True

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """On exit the turns in hand are finished, and no other begins."""
        try:
            yield
        finally:
            self._is_open = False
            if self._going_on:
                await asyncio.wait(self._going_on)

    async def take(self, owner: Owner, deliveries: Sequence[int]) -> int | None:
        """Take one turn of a user and schedule the rest; returns what `TurnFunction` returns.

        Args:
            owner: the user.
            deliveries: their log positions. For more than a turn nothing is waited for, and there is none for
                what an earlier one has decided.
        """
        # What a first turn leaves is seen then, and a second would only wait for it.
        while owner in self._taking:
            await self._taking[owner].wait()
        if owner not in self._waiting:
            if self._is_decided(owner, max(deliveries)):
                return None
            waits = ALL if len(deliveries) > TURN else await self._first(owner)
            if not waits or not self._is_open:
                return waits
            self._begin(owner, waits)
        return self._waiting[owner]

    async def _first(self, owner: Owner) -> int | None:
        taken = self._taking[owner] = asyncio.Event()
        try:
            return await self._turn(owner)
        finally:
            del self._taking[owner]
            taken.set()

    def _begin(self, owner: Owner, waits: int) -> None:
        self._waiting[owner] = waits
        self._put_off[owner] = 0
        task = asyncio.create_task(self._go_on(owner))
        self._going_on.add(task)
        task.add_done_callback(self._going_on.discard)

    def end(self, owner: Owner, waits: int | None, seq: int) -> DeliveryOutcome:
        """How the user's delivery of a log position ends, after `take` gave from where on all waits."""
        if waits is None or seq < waits:
            return ACK
        if waits == FAILED:
            return Retry()
        if owner in self._waiting:
            self._put_off[owner] += 1
        return Retry(LATER + self._put_off.get(owner, 0) / A_SECOND)

    async def _go_on(self, owner: Owner) -> None:
        try:
            while self._is_open and (waits := await self._turn(owner)):
                self._waiting[owner] = waits
        finally:
            del self._waiting[owner]
            del self._put_off[owner]
