"""Snapshot pool, which opens snapshots on request and keeps the most recently requested ones open."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Self

import structlog

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search.hit_reranker import HitReranker
from mnemon_consumers.retrieve.search.service import Search
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations.progress import VECTORS
from mnemon_infra.generation_names import name_generation
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.vectors.port import VectorsInUse, VectorsNotMade, VectorsOutdated, VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex, open_index_as_of

log = structlog.get_logger("retrieve")

MOST_OPEN: Final = 4
"""Maximum number of snapshots that stay open; the most recently requested snapshots stay."""

UNUSED_SECONDS: Final = 300.0
"""Seconds between two checks that close the snapshots which had no request since the check before."""

CONNECTIONS: Final = 2
"""Maximum number of database connections of a snapshot, which are opened on demand."""

CACHED_USERS: Final = 1
"""Maximum number of users whose rows a snapshot caches: a request may read the same rows twice."""

_VECTOR_ERRORS: Final = (VectorsNotMade, VectorsInUse, VectorsOutdated, VectorsUnavailable)


@dataclass(slots=True)
class _OpenSnapshot:
    """An open snapshot.

    Attributes:
        has_vectors: whether `search` has the vectors of the snapshot.
        ends: closes the database and the vectors.
        asked_at: time of the event loop at the last request.
        holders: number of requests that use the snapshot, plus one while the pool keeps it.
    """

    schema: str
    database: Database
    memory: Memory
    search: Search
    has_vectors: bool = False
    ends: AsyncExitStack = field(default_factory=AsyncExitStack)
    asked_at: float = 0.0
    holders: int = 1

    async def release(self) -> None:
        self.holders -= 1
        if not self.holders:
            await self.ends.aclose()


class SnapshotPool:
    """The open snapshots of a `retrieve` process, opened on request.

    A check every `UNUSED_SECONDS` closes those without a request since the last check. Above `MOST_OPEN`, the
    least recently requested snapshot is closed.
    """

    def __init__(
        self,
        deployment: Deployment,
        settings: LiveSettings,
        vector_index: VectorIndex | None,
        reranker: HitReranker | None = None,
    ) -> None:
        """Create the pool with the live vector index, without which snapshots have no vectors."""
        self._deployment = deployment
        self._settings = settings
        self._vector_index = vector_index
        self._reranker = reranker
        self._open: dict[int, _OpenSnapshot] = {}
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Yield the pool, which closes snapshots without requests, and all snapshots when the block ends."""
        closing = asyncio.create_task(self._close_unused_snapshots())
        try:
            yield self
        finally:
            closing.cancel()
            await self.retain_snapshots(())

    @asynccontextmanager
    async def open_snapshot(self, position: int) -> AsyncIterator[tuple[Memory, Search]]:
        """Yield the memory and the search of the snapshot at a position.

        Raises:
            DatabaseUnavailable: the snapshot cannot be opened now, or was dropped.
        """
        async with self._opening:
            found = self._open.pop(position, None) or await self._open_database(position)
            self._open[position] = found  # the last snapshot is the most recently requested snapshot
            found.asked_at = asyncio.get_running_loop().time()
            found.holders += 1
            await self.retain_snapshots([*self._open][-MOST_OPEN:])
        try:
            if self._vector_index and not found.has_vectors:
                await self._open_vectors(found, position, self._vector_index)
            yield found.memory, found.search
        finally:
            await found.release()

    async def retain_snapshots(self, positions: Iterable[int]) -> None:
        """Keep the snapshots at `positions`; close all others, each once no request uses it."""
        for position in self._open.keys() - set(positions):
            if found := self._open.pop(position, None):
                await found.release()

    async def _open_database(self, position: int) -> _OpenSnapshot:
        schema = name_generation(self._deployment.database_schema, "as of", position)
        own = {"database_schema": schema, "pg_pool_min": 0, "pg_pool_max": CONNECTIONS}
        database = Database(self._deployment.model_copy(update=own), name="mnemon-as-of")
        memory = Memory(database, self._settings, CACHED_USERS)
        memory.fix_position(position)
        found = _OpenSnapshot(schema, database, memory, Search(database, memory, None))
        await found.ends.enter_async_context(database)
        return found

    async def _open_vectors(self, snapshot: _OpenSnapshot, position: int, live: VectorIndex) -> None:
        """Open the vectors of a snapshot if they are complete; otherwise the next request tries again."""
        async with self._opening:
            if snapshot.has_vectors or not await _are_vectors_complete(
                snapshot.database, snapshot.schema, position
            ):
                return
            try:
                vector_index = await snapshot.ends.enter_async_context(
                    open_index_as_of(self._deployment, position, live)
                )
            except _VECTOR_ERRORS as error:
                log.warning("snapshot vectors not opened", position=position, error=str(error))
                return
            snapshot.search = Search(snapshot.database, snapshot.memory, vector_index, self._reranker)
            snapshot.has_vectors = True

    async def _close_unused_snapshots(self) -> None:
        while True:
            await asyncio.sleep(UNUSED_SECONDS)
            asked_after = asyncio.get_running_loop().time() - UNUSED_SECONDS
            await self.retain_snapshots(
                [place for place, each in self._open.items() if each.asked_at > asked_after]
            )


async def _are_vectors_complete(database: Database, schema: str, position: int) -> bool:
    """Return whether the vectors are complete; until then, the process that fills them has them open."""
    return await VECTORS.load_position(
        database, schema
    ) == position and not await VECTORS.list_owners_to_sweep(database, schema)
