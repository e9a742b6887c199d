"""Points of facts that a verb has changed, written before `index` sees the change."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from mnemon_contracts.identity import derive_point_id
from mnemon_contracts.subjects import Owner
from mnemon_infra.models.embedding import EmbeddingUnavailable
from mnemon_infra.vectors.port import Collection, Point, VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex, build_fact_item, build_points

EMBEDDING_TIMEOUT: Final = 1.0
"""Maximum wait for the vector of a changed fact, in seconds; without the vector, `index` writes the point."""


class FactPoints:
    """Points of facts. Without a vector index, or while it does not answer, `index` makes the changes."""

    def __init__(self, vector_index: VectorIndex | None) -> None:
        self._vector_index = vector_index

    async def build_points(self, owner: Owner, fact_id: str, event_id: str, text: str) -> Sequence[Point]:
        """Return the point of a fact; no point if its text is not embedded in time."""
        if self._vector_index is not None:
            with suppress(EmbeddingUnavailable, TimeoutError):
                async with asyncio.timeout(EMBEDDING_TIMEOUT):
                    return await build_points(
                        self._vector_index, [build_fact_item(owner, fact_id, event_id, text)]
                    )
        return ()

    async def write_points(self, points: Sequence[Point]) -> None:
        """Write points; if the vector store does not answer, `index` writes them later."""
        if self._vector_index is not None and points:
            with suppress(VectorsUnavailable):
                async with self._vector_index.gate.enter():
                    await self._vector_index.vectors.upsert(Collection.MEMORIES, points)

    async def delete_point(self, owner: Owner, fact_id: str) -> None:
        """Delete the point of a fact; if the vector store does not answer, `index` deletes it later."""
        if self._vector_index is not None:
            with suppress(VectorsUnavailable):
                async with self._vector_index.gate.enter():
                    await self._vector_index.vectors.delete(
                        Collection.MEMORIES, owner, [derive_point_id(*owner, "fact", fact_id)]
                    )
