"""Keeps snapshots open while requests use them."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Self

import structlog

from mnemon_consumers.retrieve.memory import Memory
from mnemon_consumers.retrieve.search.service import Search
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations.vector_progress import owed, reached
from mnemon_infra.generation_names import name_of
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.vectors.port import VectorsInUse, VectorsNotMade, VectorsOutdated, VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex, opened_as_of

log = structlog.get_logger("retrieve")

KEPT: Final = 4
"""Snapshots that stay open, the most recently requested ones."""

UNUSED: Final = 300.0
"""Seconds without requests after which a snapshot is closed, at the latest after twice as long."""

CONNECTIONS: Final = 2
"""Most database connections of a snapshot; without requests it has none."""

AT_HAND: Final = 1
"""Users whose rows a snapshot caches, for the rows that one request reads twice."""

_NOT_NOW: Final = (VectorsNotMade, VectorsInUse, VectorsOutdated, VectorsUnavailable)


@dataclass(slots=True)
class _Open:
    """An open snapshot. `holders` counts the requests that use it, plus one while the pool keeps it."""

    schema: str
    database: Database
    memory: Memory
    search: Search
    has_vectors: bool = False
    ends: AsyncExitStack = field(default_factory=AsyncExitStack)
    asked_at: float = 0.0
    holders: int = 1

    async def leave(self) -> None:
        self.holders -= 1
        if not self.holders:
            await self.ends.aclose()


class SnapshotPool:
    """Opens snapshots on request and closes those without requests."""

    def __init__(self, deployment: Deployment, settings: LiveSettings, finding: VectorIndex | None) -> None:
        """`finding` is the live vector index; without it snapshots have no search either."""
        self._deployment = deployment
        self._settings = settings
        self._finding = finding
        self._open: dict[int, _Open] = {}
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[Self]:
        """Close snapshots without requests until the block ends, then close all of them."""
        closing = asyncio.create_task(self._close_unused())
        try:
            yield self
        finally:
            closing.cancel()
            await self.keep(())

    @asynccontextmanager
    async def at(self, position: int) -> AsyncIterator[tuple[Memory, Search]]:
        """Yield the memory and the search of the snapshot at a position.

        Raises:
            DatabaseUnavailable: the snapshot cannot be opened now, or was dropped.
        """
        async with self._opening:
            found = self._open.pop(position, None) or await self._opened(position)
            self._open[position] = found  # the last in order is the most recently requested one
            found.asked_at = asyncio.get_running_loop().time()
            found.holders += 1
            await self.keep([*self._open][-KEPT:])
        try:
            if self._finding and not found.has_vectors:
                await self._find_in(found, position, self._finding)
            yield found.memory, found.search
        finally:
            await found.leave()

    async def keep(self, positions: Iterable[int]) -> None:
        """Close all snapshots but these. Requests in progress finish first."""
        for position in self._open.keys() - set(positions):
            if found := self._open.pop(position, None):
                await found.leave()

    async def _opened(self, position: int) -> _Open:
        schema = name_of(self._deployment.database_schema, "as of", position)
        own = {"database_schema": schema, "pg_pool_min": 0, "pg_pool_max": CONNECTIONS}
        database = Database(self._deployment.model_copy(update=own), name="mnemon-as-of")
        memory = Memory(database, self._settings, AT_HAND)
        memory.fix_position(position)
        found = _Open(schema, database, memory, Search(database, memory, None))
        await found.ends.enter_async_context(database)
        return found

    async def _find_in(self, found: _Open, position: int, live: VectorIndex) -> None:
        """Open the vectors of a snapshot if they are complete; otherwise the next request tries again."""
        async with self._opening:
            if found.has_vectors or not await _are_complete(found.database, found.schema, position):
                return
            try:
                finding = await found.ends.enter_async_context(opened_as_of(self._deployment, position, live))
            except _NOT_NOW as error:
                log.warning("snapshot search unavailable", position=position, error=str(error))
                return
            found.search = Search(found.database, found.memory, finding)
            found.has_vectors = True

    async def _close_unused(self) -> None:
        while True:
            await asyncio.sleep(UNUSED)
            asked_after = asyncio.get_running_loop().time() - UNUSED
            await self.keep([place for place, each in self._open.items() if each.asked_at > asked_after])


async def _are_complete(database: Database, schema: str, position: int) -> bool:
    """Return whether the vectors are complete; before that, the process that writes them has them open."""
    return await reached(database, schema) == position and not await owed(database, schema)
