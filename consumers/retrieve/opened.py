"""Generations as of former positions that are open to be asked."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self

from consumers.retrieve.memory import Memory
from consumers.retrieve.search.service import Search
from infra.config import Deployment
from infra.database.engine import Database
from infra.database.generations import name_of
from infra.settings.store import LiveSettings

KEPT: Final = 4
"""Generations that stay open, those asked last."""

UNUSED: Final = 300.0
"""Seconds after which one that nobody asks is closed, at the latest after twice as long."""

CONNECTIONS: Final = 2
"""To the database, per generation; while nobody asks there is none."""

AT_HAND: Final = 1
"""Users whose rows are at hand in each: what one request reads twice."""


@dataclass(slots=True)
class _Open:
    """An open generation. `holders` are those who ask it, and the one who keeps it open."""

    memory: Memory
    search: Search
    ends: AsyncExitStack
    asked_at: float = 0.0
    holders: int = 1

    async def leave(self) -> None:
        self.holders -= 1
        if not self.holders:
            await self.ends.aclose()


class Opened:
    """Opens generations when they are asked, and closes them when they are not asked any more."""

    def __init__(self, deployment: Deployment, settings: LiveSettings) -> None:
        self._deployment = deployment
        self._settings = settings
        self._open: dict[int, _Open] = {}
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[Self]:
        """Close what nobody asks, as long as the block lasts; on exit all."""
        closing = asyncio.create_task(self._close_unused())
        try:
            yield self
        finally:
            closing.cancel()
            await self.keep(())

    @asynccontextmanager
    async def at(self, position: int) -> AsyncIterator[tuple[Memory, Search]]:
        """The memory as of a position, of which there is a generation, and what searches it.

        Raises:
            DatabaseUnavailable: it cannot be opened now, or has gone.
        """
        async with self._opening:
            found = self._open.pop(position, None) or await self._opened(position)
            self._open[position] = found  # the last in order is the one that was asked last
            found.asked_at = asyncio.get_running_loop().time()
            found.holders += 1
            await self.keep([*self._open][-KEPT:])
        try:
            yield found.memory, found.search
        finally:
            await found.leave()

    async def keep(self, positions: Iterable[int]) -> None:
        """Close all but these. Who is asking one asks to the end."""
        for position in self._open.keys() - set(positions):
            if found := self._open.pop(position, None):
                await found.leave()

    async def _opened(self, position: int) -> _Open:
        schema = name_of(self._deployment.database_schema, "as of", position)
        own = {"database_schema": schema, "pg_pool_min": 0, "pg_pool_max": CONNECTIONS}
        async with AsyncExitStack() as ends:
            database = await ends.enter_async_context(
                Database(self._deployment.model_copy(update=own), name="mnemon-as-of")
            )
            memory = Memory(database, self._settings, AT_HAND)
            memory.stand_at(position)
            search = Search(database, memory, None)
            return _Open(memory, search, ends.pop_all())

    async def _close_unused(self) -> None:
        while True:
            await asyncio.sleep(UNUSED)
            asked_after = asyncio.get_running_loop().time() - UNUSED
            await self.keep([place for place, each in self._open.items() if each.asked_at > asked_after])
