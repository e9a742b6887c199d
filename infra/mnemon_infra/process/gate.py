"""Gate for a kind of work: while the gate is closed, no new work begins; running work may finish."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Gate:
    """Barrier for pieces of work, which can begin only while the gate is open. A new gate is open.

    Attributes:
        exchanges: number of times that the object of the work, such as the live vectors, was replaced by
            another; replacements that this process does not know of are not counted.
    """

    def __init__(self) -> None:
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._inside = 0
        self.exchanges = 0

    @property
    def is_open(self) -> bool:
        return self._is_open.is_set()

    def count_exchange(self) -> None:
        """Count a replacement of the object. Values kept from the former object become invalid."""
        self.exchanges += 1

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        """Wait until the gate is open, then run the block as a piece of work.

        Do not enter a gate within its own block: if `close` is called in between, the two calls wait for each
        other.
        """
        while not self._is_open.is_set():
            await self._is_open.wait()
        self._inside += 1
        self._is_empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._is_empty.set()

    async def close(self) -> None:
        """Close the gate, and return when no work is running any more."""
        self._is_open.clear()
        await self._is_empty.wait()

    def open(self) -> None:
        """Open the gate: waiting work begins."""
        self._is_open.set()
