"""What is in hand when a process ends: models that were asked may still answer, for a little while."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self

from mnemon_infra.broker.outcomes import DeliveryOutcome, Retry

LAST_WORD: Final = 8.0
"""Seconds, less than a consumer has to end. What a model says is paid for; after that somebody else asks."""


class Working:
    """Work that is awaited at the end of the block, and then broken off; none is begun any more by then."""

    def __init__(self, last_word: float = LAST_WORD) -> None:
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

    async def ended(self, work: Coroutine[Any, Any, DeliveryOutcome]) -> DeliveryOutcome:
        """How the work ends; to be tried again where it is broken off."""
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
