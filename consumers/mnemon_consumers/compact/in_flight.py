"""Compactions in progress: a limit for each user, and a time limit when the process stops."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.outcomes import DeliveryOutcome, Retry

ENDING_SECONDS: Final = 8.0
"""Seconds from the stop of the process until work in progress is cancelled, to be retried.

The time is less than `mnemon_infra.durables.GRACEFUL_TIMEOUT`, which the consumer has to finish its batch.
"""


class InFlightWork:
    """Compactions in progress.

    `ending_seconds` is the time to wait, when the process stops, before current work is cancelled.
    """

    def __init__(self, ending_seconds: float = ENDING_SECONDS) -> None:
        self._ending_seconds = ending_seconds
        self._tasks: set[asyncio.Task[DeliveryOutcome]] = set()
        self._is_ending = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Accept work until the block ends; then refuse new work, and cancel work after `ending_seconds`."""
        try:
            yield
        finally:
            self._is_ending = True
            if self._tasks:
                _, late = await asyncio.wait(self._tasks, timeout=self._ending_seconds)
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
    """Limit of one user's compactions in progress: half of the capacity, and at least one conversation.

    `capacity` is the maximum number of conversations that the process compacts at the same time.
    """

    def __init__(self, capacity: int) -> None:
        self._limit = max(1, capacity // 2)
        self._held: Counter[Owner] = Counter()

    @contextmanager
    def reserve(self, owner: Owner) -> Iterator[bool]:
        """Yield whether the user may have one more conversation in progress; if so, count it.

        The conversation counts until the block ends.
        """
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
