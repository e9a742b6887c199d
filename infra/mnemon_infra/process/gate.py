"""A gate in front of some work: closed, nothing new begins, and what is under way comes to its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Gate:
    """Open at first.

    Attributes:
        exchanges: how often what the work is about was exchanged for something else, as far as is known here.
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

    def exchanged(self) -> None:
        """Whoever remembers something of before has to look again."""
        self.exchanges += 1

    @asynccontextmanager
    async def passed(self) -> AsyncIterator[None]:
        """Do a piece of work once the gate is open; it is not to be passed again within."""
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
        """Return when nothing is under way any more."""
        self._is_open.clear()
        await self._is_empty.wait()

    def open(self) -> None:
        """Let everybody go on."""
        self._is_open.set()
