"""Search of a user's facts, messages, documents and summaries."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any

import nats.errors
import structlog

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search.candidates import CandidateFinder, choose_breadth
from mnemon_consumers.retrieve.search.duplicates import describe_source, list_distinct_items
from mnemon_consumers.retrieve.search.hit_reranker import HitReranker
from mnemon_consumers.retrieve.search.hits import RankedHit, SearchResult, limit_scopes
from mnemon_consumers.retrieve.search.levels import NO_WINDOW, RecentWindow, resolve_parts
from mnemon_consumers.retrieve.search.query.query_embedder import EmbeddedQuery, QueryEmbedder
from mnemon_consumers.retrieve.search.scopes.documents import DocumentSearch
from mnemon_consumers.retrieve.search.scopes.facts import FactSearch
from mnemon_consumers.retrieve.search.scopes.inputs import ScopeAnswer, ScopeInputs
from mnemon_consumers.retrieve.search.scopes.messages import MessageSearch
from mnemon_consumers.retrieve.search.scopes.summaries import SummarySearch
from mnemon_consumers.retrieve.search.statistics import StatisticsCache
from mnemon_contracts.settings.groups import Retrieval
from mnemon_contracts.verbs.tools import FoundScope, SearchScope
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.messages.lookup import VisibleMessage
from mnemon_infra.database.query_batcher import yield_to_lookups
from mnemon_infra.vectors.port import VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex

log = structlog.get_logger("search")


class Search:
    """Search of a user's facts, messages, documents and summaries, by words and by meaning.

    Attributes:
        embed_query: returns a query with its vector, see `QueryEmbedder.embed_query`.
    """

    def __init__(
        self,
        database: Database,
        memory: Memory,
        vector_index: VectorIndex | None,
        reranker: HitReranker | None = None,
    ) -> None:
        """Create the search; without `vector_index`, it finds only messages of a period in the query."""
        vectors = vector_index.vectors if vector_index else None
        embedder = vector_index.embedder if vector_index else None
        thresholds = embedder.thresholds if embedder else None
        finder = CandidateFinder(vectors, thresholds)
        self._reranker = reranker
        self._statistics = StatisticsCache(database, embedder, memory.get_revision)
        self.embed_query = QueryEmbedder(embedder, self._statistics).embed_query
        self._facts = FactSearch(memory, finder, vectors)
        self._scopes: Mapping[FoundScope, Callable[[ScopeInputs], Coroutine[Any, Any, ScopeAnswer]]] = {
            "memories": self._facts.find_hits,
            "messages": MessageSearch(memory, finder, thresholds).find_hits,
            "documents": DocumentSearch(memory, finder).find_hits,
            "summaries": SummarySearch(memory, finder).find_hits,
        }

    def expire_caches(self) -> None:
        """Drop the cached frequent names, and make the word statistics due. Call this after a swap."""
        self._facts.expire_caches()
        self._statistics.expire_counts()

    async def find_hits(
        self,
        query: EmbeddedQuery,
        scopes: Sequence[SearchScope],
        limit: int,
        threshold: float | None,
        settings: Retrieval,
        min_seq: int | None = None,
        documents: Mapping[str, str] | None = None,
        window: RecentWindow = NO_WINDOW,
        until: float | None = None,
        *,
        explain: bool = False,
    ) -> SearchResult:
        """Return items that are relevant to a query.

        Args:
            query: the query, from `embed_query`.
            scopes: scopes to search, or levels of memory.
            limit: maximum number of hits of each scope.
            threshold: minimum score of a hit; None excludes messages that probably do not answer the query,
                and other items with less than `DOUBTFUL_SHARE` of the best score of their scope, unless a
                reranker has scored them. Candidates with neither a word or concept of the query nor a
                similarity above the noise of the embedding model are always excluded. Neighbours of other
                messages, messages of a period that the query names, and facts linked by a name, may be hits
                without either.
            settings: settings of the tenant.
            min_seq: log position that the hits have to reflect.
            documents: values of `collection` or `origin` that documents must have; None for all documents.
            window: the messages that are recent; only the levels `short` and `long` use it.
            until: time of the event loop at which the caller stops waiting; a reranker has until then.
            explain: whether hits have the parts of their scores.
        """
        reranker = self._reranker if settings.reranker else None
        pool = max(limit, settings.reranker_candidates) if reranker else limit
        inputs = ScopeInputs(
            query,
            pool,
            settings,
            min_seq,
            choose_breadth(pool),
            documents or {},
            resolve_parts(scopes),
            window,
            explain,
        )
        answers = await self._search_scopes(inputs)
        degraded = [*query.degraded]
        hits: list[RankedHit] = []
        candidates: list[RankedHit] = []
        seqs: list[int] = []
        for scope, answer in answers.items():
            if isinstance(answer, Exception):
                log.warning("scope search failed", tenant=query.owner[0], scope=scope, error=str(answer))
                degraded.append(scope)
                continue
            some, seq = answer
            distinct = list_distinct_items(some, _get_text, pool)
            hits += distinct[:limit]
            candidates += distinct
            seqs.append(seq)
        hits.sort(key=lambda hit: -hit.score)
        if reranker and candidates:
            candidates.sort(key=lambda hit: -hit.score)
            reranked = await _rerank_hits(reranker, query.intent.resolved_text, candidates, settings, until)
            if reranked is None:
                degraded.append("reranker")
            else:
                hits = limit_scopes(reranked, limit)
        hits = [hit for hit in hits if (not hit.is_doubtful if threshold is None else hit.score >= threshold)]
        if query.intent.antecedents:
            hits = [hit.add_part("preceding", query.intent.dependence) for hit in hits]
        return SearchResult(hits, tuple(degraded), min(seqs, default=0))

    async def _search_scopes(self, inputs: ScopeInputs) -> dict[FoundScope, ScopeAnswer | Exception]:
        """Return the answer of each scope, or the error because of which the scope cannot be searched now."""
        # Messages first: the others compute while PostgreSQL looks up messages.
        scopes = sorted(inputs.parts, key=lambda scope: scope != "messages")
        answers = await asyncio.gather(*(self._search_scope(scope, inputs) for scope in scopes))
        answer_of = dict(zip(scopes, answers, strict=True))
        return {scope: answer_of[scope] for scope in inputs.parts}

    async def _search_scope(self, scope: FoundScope, inputs: ScopeInputs) -> ScopeAnswer | Exception:
        if scope != "messages" and "messages" in inputs.parts:
            await yield_to_lookups()
        try:
            return await self._scopes[scope](inputs)
        except (VectorsUnavailable, DatabaseUnavailable, nats.errors.Error) as error:
            return error


async def _rerank_hits(
    reranker: HitReranker, query: str, hits: Sequence[RankedHit], settings: Retrieval, until: float | None
) -> list[RankedHit] | None:
    """Return the hits in the order of the reranker, and below them the hits that it did not score.

    Args:
        reranker: the model.
        query: the query.
        hits: hits of all scopes, best first.
        settings: settings of the tenant.
        until: time of the event loop at which the caller stops waiting.

    Returns:
        None if the reranker gave no scores: it is paused, failed or took too long.
    """
    # Some endpoints refuse a request with a blank text.
    places = [place for place, hit in enumerate(hits) if hit.text.strip()][: settings.reranker_candidates]
    if not places:
        return list(hits)
    scores = await reranker.score_texts(query, [hits[place].text for place in places], settings, until)
    if scores is None:
        return None
    ranked = sorted(zip(places, scores, strict=True), key=lambda each: -each[1])
    # Scores outside of 0 to 1 keep their order.
    best = [_replace_score(hits[place], min(1.0, max(0.0, score))) for place, score in ranked]
    read, lowest = frozenset(places), best[-1].score
    return best + [
        hit._replace(score=min(hit.score, lowest)) for place, hit in enumerate(hits) if place not in read
    ]


def _replace_score(hit: RankedHit, relevance: float) -> RankedHit:
    return hit.add_part("reranker", relevance)._replace(score=relevance, is_doubtful=False)


def _get_text(hit: RankedHit) -> tuple[Hashable, str]:
    return (describe_source(hit.source) if isinstance(hit.source, VisibleMessage) else None), hit.text
