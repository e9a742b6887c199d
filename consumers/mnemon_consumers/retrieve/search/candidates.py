"""Candidates of a search, found in the vector store."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mnemon_consumers.retrieve.search.fusion import FusedCandidate, fuse_rankings
from mnemon_contracts.subjects import Owner
from mnemon_infra.models.embedding import Dense, Sparse, Thresholds
from mnemon_infra.vectors.port import Collection, IdFilter, VectorStore


class Breadth(NamedTuple):
    """Numbers of items that a search considers, so that the best items are among them.

    Attributes:
        candidates: maximum number of candidates found by words, and by meaning.
        reranked: maximum number of candidates that are looked up and reranked, in a search of messages.
        anchors: maximum number of reranked messages whose neighbours are reranked too, and may be hits.
        facts: maximum number of candidates that are looked up and ranked, in a search of facts.
    """

    candidates: int
    reranked: int
    anchors: int
    facts: int


def choose_breadth(limit: int) -> Breadth:
    """Return the breadth for a number of hits. More candidates take longer and hardly improve the hits."""
    return Breadth(candidates=max(32, limit), reranked=max(64, limit), anchors=12, facts=max(16, 2 * limit))


async def find_candidates(
    vectors: VectorStore,
    collection: Collection,
    owner: Owner,
    words: Sparse,
    meaning: Dense | None,
    limit: int,
    where: Mapping[str, str] | None,
    ids: IdFilter | None = None,
) -> list[FusedCandidate]:
    """Return the best candidates that have the payload fields `where` and pass the filter `ids`, best first.

    Words find up to `limit` candidates, and the vector `meaning` as many. Without a vector only words are
    used. If `where` or `ids` is None, it excludes no candidate.

    Raises:
        VectorsUnavailable: the vector store does not answer.
    """
    if ids is not None and not ids.ids and not ids.is_excluded:
        return []
    queries: list[Dense | Sparse] = [words] if meaning is None else [words, meaning]
    by_words, *by_meaning = await vectors.search(collection, owner, queries, limit, where, ids)
    return fuse_rankings(by_words, by_meaning[0] if by_meaning else None, limit)


def select_relevant(
    candidates: Sequence[FusedCandidate], query: str, thresholds: Thresholds | None
) -> list[FusedCandidate]:
    """Return the candidates with a word or a concept of the query, or with enough similarity to be relevant.

    Each returned candidate has the `trust` that fits the script of the query. Without thresholds, all
    candidates are returned unchanged.

    Args:
        candidates: candidates, best first.
        query: the query; its script tells how far the similarities can be trusted.
        thresholds: the thresholds of the embedding model; None without a model.
    """
    if thresholds is None:
        return list(candidates)
    trust = thresholds.choose_trust(query)
    return [
        FusedCandidate(*each[:-1], trust)
        for each in candidates
        if each.overlap > 0 or trust * (each.similarity or 0.0) >= thresholds.relevant
    ]
