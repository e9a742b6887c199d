"""Candidates of a search, found in the vector store."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mnemon_consumers.retrieve.search.fusion import FusedCandidate, fuse_rankings
from mnemon_consumers.retrieve.search.query.query_embedder import EmbeddedQuery
from mnemon_infra.models.embedding import Dense, Sparse, Thresholds
from mnemon_infra.vectors.port import Collection, IdFilter, VectorStore, VectorsUnavailable

VECTORS_WAIT: Final = 2.0
"""Maximum wait for the candidates of one scope, in seconds; bots wait three seconds for the reply."""

_SAMPLED_COLLECTIONS: Final = frozenset({Collection.MESSAGES, Collection.MEMORIES})
"""Collections from whose texts `StatisticsCache` takes its sample."""


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


class CandidateFinder:
    """Finds the candidates of a query by words, and by meaning if the query has a vector."""

    def __init__(self, vectors: VectorStore | None, thresholds: Thresholds | None) -> None:
        """Create the finder.

        Args:
            vectors: the vector store; None if there is none, so that no candidate can be found.
            thresholds: the thresholds of the embedding model; None without a model.
        """
        self._vectors = vectors
        self._thresholds = thresholds
        self._fact_thresholds = thresholds.for_facts() if thresholds else None

    async def find_candidates(
        self,
        collection: Collection,
        query: EmbeddedQuery,
        limit: int,
        *,
        where: Mapping[str, str] | None = None,
        ids: IdFilter | None = None,
    ) -> list[FusedCandidate]:
        """Return the relevant candidates that have the payload fields `where` and pass the filter `ids`.

        Words find up to `limit` candidates, and the vector of the query as many. The best candidate comes
        first. If `where` or `ids` is None, it excludes no candidate.

        Raises:
            VectorsUnavailable: there is no vector store, or it does not answer within `VECTORS_WAIT` seconds.
        """
        if self._vectors is None:
            raise VectorsUnavailable(
                "no vector index is open. Set MNEMON_QDRANT_URL or MNEMON_VECTORS_FOLDER; for `as_of`, "
                "repeat the request when `mnemon rebuild --until` has ended"
            )
        if ids is not None and not ids.ids and not ids.is_excluded:
            return []
        words = query.intent.words
        if collection in _SAMPLED_COLLECTIONS:
            words = query.statistics.terms.weigh_query(words)
        queries: list[Dense | Sparse] = [words] if query.meaning is None else [words, query.meaning]
        try:
            async with asyncio.timeout(VECTORS_WAIT):
                by_words, *by_meaning = await self._vectors.search(
                    collection, query.owner, queries, limit, where, ids
                )
        except TimeoutError as error:
            raise VectorsUnavailable(
                f"the vector store did not answer within {VECTORS_WAIT:g} s. Check the Qdrant server or, "
                "with the embedded engine, the load of this machine"
            ) from error
        fused = fuse_rankings(by_words, by_meaning[0] if by_meaning else None, limit)
        thresholds = self._fact_thresholds if collection is Collection.MEMORIES else self._thresholds
        return select_relevant(fused, query.intent.resolved_text, thresholds)


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
