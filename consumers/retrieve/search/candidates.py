"""Asks the vectors."""

from typing import Final

from consumers.retrieve.search.fusion import Candidate, fused
from infra.models import bm25
from infra.vectors.port import Collection, Dense, Owner, Sparse, Vectors

EACH_WAY: Final = 64
"""How many are found by words, and how many by meaning."""


async def candidates(
    vectors: Vectors, collection: Collection, owner: Owner, query: str, meaning: Dense | None
) -> list[Candidate]:
    """What may be relevant, best first; by words only where there is no vector.

    Raises:
        VectorsUnavailable: the engine does not answer.
    """
    words = bm25.query(query)
    queries: list[Dense | Sparse] = [words] if meaning is None else [words, meaning]
    by_words, *by_meaning = await vectors.search(collection, owner, queries, EACH_WAY)
    return fused(by_words, by_meaning[0] if by_meaning else None)
