"""Calls of a client that wait for an answer; closing the client waits for them and allows no new calls."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

CLOSED: Final = "the client was closed; connect again"


class CallsInFlight:
    """Counter of a client's calls that wait for an answer."""

    def __init__(self) -> None:
        self._count = 0
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._is_closing = asyncio.Event()

    @property
    def is_closing(self) -> bool:
        """Whether `close` was called. Callers then begin no call and make no further attempt."""
        return self._is_closing.is_set()

    @contextmanager
    def count(self) -> Iterator[None]:
        """Count the block as a call in flight."""
        self._count += 1
        self._is_empty.clear()
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._is_empty.set()

    async def pause(self, seconds: float) -> None:
        """Wait for `seconds`, or until `close` is called."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_closing.wait()

    async def close(self) -> None:
        """Set `is_closing`, and wait until no call is in flight."""
        self._is_closing.set()
        await self._is_empty.wait()
