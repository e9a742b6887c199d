"""Compactions in progress: the limit on the share of one user, and the end with the process."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.outcomes import DeliveryOutcome, Retry

ENDING_SECONDS: Final = 8.0
"""Seconds that work has to end when the process stops: less than a consumer has. Work that has not ended by
then is cancelled and retried.
"""


class InFlightWork:
    """Work in progress. The end of the block refuses new work, waits for the current work, then cancels it.

    Args:
        last_word: seconds that the work has at the end of the block.
    """

    def __init__(self, last_word: float = ENDING_SECONDS) -> None:
        self._last_word = last_word
        self._tasks: set[asyncio.Task[DeliveryOutcome]] = set()
        self._is_ending = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_ending = True
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=self._last_word)
            for task in late:
                task.cancel()

    async def await_outcome(self, work: Coroutine[Any, Any, DeliveryOutcome]) -> DeliveryOutcome:
        """Return the outcome of the work, or a retry if it is cancelled or was not started."""
        if self._is_ending:
            work.close()
            return Retry()
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        return Retry(0) if task.cancelled() else task.result()


class FairShare:
    """Gives one user at most half of the capacity, and at least one conversation.

    Args:
        room: maximum number of conversations that the process compacts at the same time.
    """

    def __init__(self, room: int) -> None:
        self._limit = max(1, room // 2)
        self._held: Counter[Owner] = Counter()

    @contextmanager
    def reserve(self, owner: Owner) -> Iterator[bool]:
        """Yield whether the user may have one more conversation in progress, until the block ends."""
        if self._held[owner] >= self._limit:
            yield False
            return
        self._held[owner] += 1
        try:
            yield True
        finally:
            self._held[owner] -= 1
            if not self._held[owner]:
                del self._held[owner]
