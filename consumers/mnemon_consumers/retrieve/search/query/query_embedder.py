"""Embedding of a query, within a time limit, with a pause after a failure."""

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

import structlog

from mnemon_consumers.retrieve.search.query.follow_up import mix_vectors
from mnemon_consumers.retrieve.search.query.intent import LOOKED_AT, QueryIntent
from mnemon_consumers.retrieve.search.statistics import StatisticsCache, WordStatistics
from mnemon_contracts.subjects import Owner
from mnemon_infra.models.embedding import CorpusStatistics, Dense, Embedder, EmbeddingUnavailable

log = structlog.get_logger("search")

EMBEDDING_WAIT: Final = 0.8
"""Maximum wait of a search for the query's vector, in seconds: a remote endpoint takes 0.2 s to 0.5 s."""

EMBEDDED_ANTECEDENTS: Final = 2
"""Maximum number of preceding messages to embed, each with a request of its own at an endpoint."""

EMBEDDING_PAUSE: Final = 5.0
"""Seconds after a failure during which searches use words only, so that turns do not wait for a failing
embedder."""


class EmbeddedQuery(NamedTuple):
    """A query of a user, and its vector.

    Attributes:
        owner: the user whose memory is searched.
        intent: the query, with the messages before it.
        meaning: the vector; None if the search uses words only.
        degraded: the item `embedding` if the query could not be embedded; else empty.
        statistics: statistics of the tenant's words.
        now: the moment of the search; facts that expire at or before it count as expired.
    """

    owner: Owner
    intent: QueryIntent
    meaning: Dense | None
    degraded: tuple[str, ...]
    statistics: WordStatistics
    now: datetime


class QueryEmbedder:
    """Embeds the queries of all tenants with one model, with a pause of `EMBEDDING_PAUSE` after a failure."""

    def __init__(self, embedder: Embedder | None, statistics: StatisticsCache) -> None:
        """Create the embedder; without a model, queries have no vector."""
        self._embedder = embedder
        self._statistics = statistics
        self._resumes_at = 0.0

    async def embed_query(
        self,
        owner: Owner,
        query: str,
        now: datetime,
        preceding: Sequence[str] = (),
        reference_time: datetime | None = None,
    ) -> EmbeddedQuery:
        """Return a query with its vector, or without one if the embedding model fails.

        Args:
            owner: the user whose memory is searched.
            query: a sentence, a question or some words; the first `LOOKED_AT` characters count.
            now: the moment of the search; facts that expire at or before it count as expired.
            preceding: the messages before the query, oldest first; a query that stands alone ignores them.
            reference_time: the moment to which "yesterday" in the query is relative, in its own time zone;
                default `now`.
        """
        intent = QueryIntent(query[:LOOKED_AT], reference_time or now, tuple(preceding))
        statistics = self._statistics.get_statistics(owner[0])
        meaning, degraded = await self._embed_intent(intent, statistics.tokens)
        return EmbeddedQuery(owner, intent, meaning, degraded, statistics, now)

    async def _embed_intent(
        self, intent: QueryIntent, statistics: CorpusStatistics | None
    ) -> tuple[Dense | None, tuple[str, ...]]:
        if self._embedder is None:
            return None, ()
        antecedents = intent.antecedents[:EMBEDDED_ANTECEDENTS]
        texts = (intent.text, *(each.text for each in antecedents))
        if time.monotonic() >= self._resumes_at:
            try:
                async with asyncio.timeout(EMBEDDING_WAIT):
                    query, *vectors = await asyncio.gather(
                        *(self._embedder.embed_query(text, statistics) for text in texts)
                    )
                weights = [each.weight for each in antecedents]
                return mix_vectors(query, list(zip(vectors, weights, strict=True))), ()
            except (EmbeddingUnavailable, TimeoutError) as error:
                if self._embedder.is_loading:
                    log.info("embedding model still loading, searching by words only")
                    return None, ("embedding",)
                self._resumes_at = time.monotonic() + EMBEDDING_PAUSE
                log.warning(
                    "embedding failed, searching by words only", error=str(error) or "no answer in time"
                )
        return None, ("embedding",)
