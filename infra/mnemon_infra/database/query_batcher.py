"""Asking together what is asked at the same time."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from mnemon_infra.database.engine import ANSWER_WAIT, Database, Query, too_late

AT_ONCE = 64
"""Questions of one round trip at most: by then starting it costs each of them next to nothing."""

ROUND_TRIPS = 2
"""At the same time: while the database answers one, the answers of the other are taken apart."""

LookupKey = TypeVar("LookupKey")
LookupResult = TypeVar("LookupResult")


class QueryBatcher(Generic[LookupKey, LookupResult]):
    """One kind of question to the database.

    What is asked while earlier questions are answered goes into the next round trip; nobody waits for others
    to ask.
    """

    def __init__(
        self, database: Database, query: Callable[[Sequence[LookupKey]], Query[list[LookupResult]]]
    ) -> None:
        self._database = database
        self.query = query
        self._waiting: deque[tuple[LookupKey, asyncio.Future[LookupResult]]] = deque()
        self._round_trips: set[asyncio.Task[None]] = set()

    async def ask(self, wanted: LookupKey) -> LookupResult:
        """The answer to one question.

        Raises:
            DatabaseUnavailable: the database cannot answer now, or not soon.
        """
        answer: asyncio.Future[LookupResult] = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, answer))
        if len(self._round_trips) < ROUND_TRIPS:
            task = asyncio.create_task(self._go())
            self._round_trips.add(task)
            task.add_done_callback(self._round_trips.discard)
        try:
            async with asyncio.timeout(ANSWER_WAIT):
                return await answer
        except TimeoutError as error:
            # Nobody waits for these any more: the database is not asked for them when it is back.
            while self._waiting and self._waiting[0][1].done():
                self._waiting.popleft()
            raise too_late() from error

    async def _go(self) -> None:
        while self._waiting:
            asked = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
            try:
                found = await self._database.read(self.query([wanted for wanted, _ in asked]))
            except Exception as error:
                for _, answer in asked:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for (_, answer), value in zip(asked, found, strict=True):
                if not answer.done():  # whoever asked may have gone
                    answer.set_result(value)
