"""Batching of concurrent lookups into one round trip."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from mnemon_infra.database.engine import ANSWER_WAIT, Database, Query, make_timeout_error

AT_ONCE = 64
"""Maximum number of lookups in one round trip: with 64, each costs a quarter of a separate query."""

ROUND_TRIPS = 2
"""Maximum number of round trips of one `QueryBatcher` at the same time.

While the database answers one round trip, the process parses the answers of the other round trip.
"""

LookupKey = TypeVar("LookupKey")
LookupResult = TypeVar("LookupResult")


async def yield_to_lookups() -> None:
    """Let tasks that begin lookups now send them, so that the database answers while the caller computes.

    A lookup begins its round trip in one iteration of the event loop, and sends it in the next. Lookups that
    wait for a connection or a log position are not sent by then.
    """
    for _ in range(2):
        await asyncio.sleep(0)


class QueryBatcher(Generic[LookupKey, LookupResult]):
    """Batcher of concurrent lookups of one kind, which it sends to the database in few round trips.

    Lookups that arrive while `ROUND_TRIPS` round trips run go into the next one together, at most `AT_ONCE`.
    No lookup waits for others to arrive.
    """

    def __init__(
        self, database: Database, query: Callable[[Sequence[LookupKey]], Query[list[LookupResult]]]
    ) -> None:
        self._database = database
        self.query = query
        self._waiting: deque[tuple[LookupKey, asyncio.Future[LookupResult]]] = deque()
        self._running = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def load(self, keys: LookupKey) -> LookupResult:
        """Return the answer to one lookup.

        Raises:
            DatabaseUnavailable: the database cannot answer now, or not within `ANSWER_WAIT` seconds.
            DatabaseRefused: the database refuses the values of this lookup, or of another one in the same
                round trip.
        """
        answer: asyncio.Future[LookupResult] = asyncio.get_running_loop().create_future()
        self._waiting.append((keys, answer))
        if self._running < ROUND_TRIPS:
            self._running += 1
            task = asyncio.create_task(self._run_round_trips())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            async with asyncio.timeout(ANSWER_WAIT):
                return await answer
        except TimeoutError as error:
            # Drop lookups whose callers have given up, so that a database that answers again does not run
            # them.
            while self._waiting and self._waiting[0][1].done():
                self._waiting.popleft()
            raise make_timeout_error() from error

    async def _run_round_trips(self) -> None:
        try:
            while self._waiting:
                await self._run_round_trip()
        finally:
            # At once: callers that have their answers may ask again before a callback of the task runs.
            self._running -= 1

    async def _run_round_trip(self) -> None:
        asked = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
        try:
            found = await self._database.run_query(self.query([wanted for wanted, _ in asked]))
        except Exception as error:
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), value in zip(asked, found, strict=True):
            if not answer.done():  # the caller may have given up
                answer.set_result(value)
