"""Candidates of a follow-up question, found in the vector store by weighted terms."""

from collections.abc import Mapping

from mnemon_consumers.retrieve.search.fusion import FusedCandidate, fuse_rankings
from mnemon_contracts.subjects import Owner
from mnemon_infra.models.embedding import Dense, Sparse
from mnemon_infra.vectors.port import Collection, IdFilter, VectorStore


async def find_follow_up_candidates(
    vectors: VectorStore,
    collection: Collection,
    owner: Owner,
    weights: Mapping[int, float],
    meaning: Dense | None,
    limit: int,
    where: Mapping[str, str] | None,
    ids: IdFilter | None = None,
) -> list[FusedCandidate]:
    """Return candidates as `find_candidates` does, by terms that have weights.

    Raises:
        VectorsUnavailable: the engine does not answer.
    """
    if ids is not None and not ids.ids and not ids.is_excluded:
        return []
    words = Sparse(list(weights), list(weights.values()))
    queries: list[Dense | Sparse] = [words] if meaning is None else [words, meaning]
    by_words, *by_meaning = await vectors.search(collection, owner, queries, limit, where, ids)
    return fuse_rankings(by_words, by_meaning[0] if by_meaning else None, limit)
