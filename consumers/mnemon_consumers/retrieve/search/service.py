"""Search of a user's facts, messages, documents and summaries."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import nats.errors
import structlog
from cachetools import TTLCache

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search import facts
from mnemon_consumers.retrieve.search.candidates import (
    Breadth,
    choose_breadth,
    find_candidates,
    select_relevant,
)
from mnemon_consumers.retrieve.search.duplicates import describe_source, list_distinct_items
from mnemon_consumers.retrieve.search.fact_links import (
    MOST_FACTS_PER_NAME,
    LeadingFact,
    NameSpellings,
    find_leading_facts,
    list_spellings,
    score_links,
)
from mnemon_consumers.retrieve.search.fusion import (
    FusedCandidate,
    QueryWords,
    compute_relevance,
    measure_best_share,
)
from mnemon_consumers.retrieve.search.hit_reranker import HitReranker
from mnemon_consumers.retrieve.search.levels import (
    NO_WINDOW,
    WHOLE,
    RecentWindow,
    ScopeParts,
    filter_messages,
    resolve_parts,
)
from mnemon_consumers.retrieve.search.messages.answerability import Judgement, judge_messages
from mnemon_consumers.retrieve.search.messages.message_features import measure_informativeness
from mnemon_consumers.retrieve.search.messages.rerank import (
    explain_score,
    list_best_messages,
    score_messages,
)
from mnemon_consumers.retrieve.search.persons import find_query_person
from mnemon_consumers.retrieve.search.query.follow_up import mix_vectors
from mnemon_consumers.retrieve.search.query.intent import LOOKED_AT, QueryIntent
from mnemon_consumers.retrieve.search.statistics import StatisticsCache, WordStatistics
from mnemon_consumers.retrieve.search.term_statistics import TermStatistics
from mnemon_contracts.identity import derive_point_id
from mnemon_contracts.settings.groups import Retrieval
from mnemon_contracts.subjects import Owner
from mnemon_contracts.verbs.tools import FoundScope, SearchScope
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.database.memory.documents import StoredDocument
from mnemon_infra.database.memory.summaries import ConversationSummary
from mnemon_infra.database.messages.lookup import MessageLookup, PeriodLookup, VisibleMessage
from mnemon_infra.database.query_batcher import yield_to_lookups
from mnemon_infra.models.embedders.wordllama import find_wordllama
from mnemon_infra.models.embedding import CorpusStatistics, Dense, EmbeddingUnavailable, Sparse
from mnemon_infra.models.words import bm25
from mnemon_infra.vectors.port import Collection, IdFilter, VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex

log = structlog.get_logger("search")

VECTORS_WAIT: Final = 2.0
"""Maximum wait for the candidates of one scope, in seconds; bots wait three seconds for the reply."""

LINKS_WAIT: Final = 0.2
"""Maximum wait for the facts that share a name with facts found, in seconds, besides `VECTORS_WAIT`."""

FREQUENT_NAME_SECONDS: Final = 60.0
"""Seconds for which searches leave out a name that more than `MOST_FACTS_PER_NAME` facts of the user have."""

FREQUENT_NAMES: Final = 100_000
"""Maximum number of cached frequent names of all users; each takes up to about 1 KB."""

EMBEDDING_WAIT: Final = 0.8
"""Maximum wait of a search for the query's vector, in seconds: a remote endpoint takes 0.2 s to 0.5 s."""

SCORE_SPREAD: Final = 5.0
"""Difference of two messages' ranking scores at which the lower one has 1/e of the relevance of the other."""

DOUBTFUL_SHARE: Final = 0.25
"""Share of the best score below which a fact, a summary or a chunk of a document is doubtful.

Among the first ten hits of questions with one topic, hits below this share have none of the answers, and are
one of seven of the other hits; of questions with two topics, they have 3 % of the answers. A link gives a
fact 0.3 of the relevance of another fact, which is more than this share.
"""

_SAMPLED_COLLECTIONS: Final = frozenset({Collection.MESSAGES, Collection.MEMORIES})
"""Collections from whose texts `StatisticsCache` takes its sample."""

EMBEDDED_ANTECEDENTS: Final = 2
"""Maximum number of preceding messages to embed, each with a request of its own at an endpoint."""

EMBEDDING_PAUSE: Final = 5.0
"""Seconds after a failure during which searches use words only, so that turns do not wait for a failing
embedder."""

MAX_PERIODS: Final = 4
"""Maximum number of periods of a query; with more, no messages are loaded by their time."""

MAX_PERIOD_LENGTH: Final = timedelta(days=100)
"""Maximum length of a period whose messages are loaded: a season. A month with 60,000 messages in 2,000
conversations takes 0.1 s."""

MIN_PERIOD_RELEVANCE: Final = 0.5
"""Minimum relevance of the best hit for a query about all that happened in a period."""


class RankedHit(NamedTuple):
    """A hit of a search with its score.

    Attributes:
        parts: components of the score; None unless the search explains its scores.
        source: the whole item that was found.
        is_doubtful: whether the memory probably does not answer the query; a search without a threshold
            leaves such hits out. False for a hit that a reranker has scored.
        start: position in a document of the first character of `text`.
    """

    id: str
    scope: FoundScope
    text: str
    score: float
    at: datetime | None
    parts: Mapping[str, float] | None
    source: FactRecord | VisibleMessage | StoredDocument | ConversationSummary
    start: int = 0
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits of a search, best first.

    Attributes:
        hits: the hits; their scores are comparable across scopes, see `compute_relevance`.
        degraded: the scopes that could not be searched; also `embedding` if the query could not be embedded,
            so that the search used words only, and `reranker` if a model should have reranked the hits but
            did not.
        seq: the log position that the hits reflect; 0 if nothing could be read.
    """

    hits: Sequence[RankedHit]
    degraded: tuple[str, ...]
    seq: int


class EmbeddedQuery(NamedTuple):
    """A query of a user, and its vector.

    Attributes:
        owner: the user whose memory is searched.
        intent: the query, with the messages before it.
        meaning: the vector; None if the search uses words only.
        degraded: `embedding` if the query could not be embedded.
        statistics: statistics of the tenant's words.
        now: the moment of the search; facts that expire at or before it count as expired.
    """

    owner: Owner
    intent: QueryIntent
    meaning: Dense | None
    degraded: tuple[str, ...]
    statistics: WordStatistics
    now: datetime


class MemorySearch(NamedTuple):
    """A request to search one user's memory. `meaning` is None if the search uses words only."""

    owner: Owner
    intent: QueryIntent
    meaning: Dense | None
    statistics: WordStatistics
    limit: int
    settings: Retrieval
    now: datetime
    min_seq: int | None
    breadth: Breadth
    documents: Mapping[str, str]
    parts: Mapping[FoundScope, ScopeParts]
    window: RecentWindow
    explain: bool


_Answer: TypeAlias = tuple[list[RankedHit], int]


class Search:
    """Finds facts, messages, documents and summaries of a user, by words and by meaning."""

    def __init__(
        self,
        database: Database,
        memory: Memory,
        vector_index: VectorIndex | None,
        reranker: HitReranker | None = None,
    ) -> None:
        """Create the search; without `vector_index` no scope can be searched."""
        self._reranker = reranker
        self._memory = memory
        self._vectors = vector_index.vectors if vector_index else None
        self._embedder = vector_index.embedder if vector_index else None
        self._thresholds = self._embedder.thresholds if self._embedder else None
        self._fact_thresholds = self._thresholds.for_facts() if self._thresholds else None
        self._token_model = find_wordllama()
        self._statistics = StatisticsCache(database, self._embedder, memory.get_revision)
        self._embeds_again_at = 0.0
        self._frequent_names: TTLCache[tuple[Owner, NameSpellings], bool] = TTLCache(
            FREQUENT_NAMES, FREQUENT_NAME_SECONDS
        )
        self._scopes: Mapping[FoundScope, Callable[[MemorySearch], Coroutine[Any, Any, _Answer]]] = {
            "memories": self._search_facts,
            "messages": self._search_messages,
            "documents": self._search_documents,
            "summaries": self._search_summaries,
        }

    def expire_caches(self) -> None:
        """Drop the cached frequent names and expire the word counts of all tenants, after a swap."""
        self._frequent_names.clear()
        self._statistics.expire_counts()

    async def embed_query(
        self, owner: Owner, query: str, now: datetime, preceding: Sequence[str] = ()
    ) -> EmbeddedQuery:
        """Return a query with its vector, or without one if the embedding model fails.

        Args:
            owner: the user whose memory is searched.
            query: a sentence, a question or some words.
            now: the moment of the search; "yesterday" in the query is the day before, in the time zone of
                this moment.
            preceding: the messages before the query, oldest first; a query that stands alone ignores them.
        """
        intent = QueryIntent(query[:LOOKED_AT], now, tuple(preceding))
        statistics = self._statistics.get_statistics(owner[0])
        meaning, degraded = await self._embed_intent(intent, statistics.tokens)
        return EmbeddedQuery(owner, intent, meaning, degraded, statistics, now)

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
                reranker has scored them. Candidates with neither a word of the query nor a similarity above
                the noise of the embedding model are always excluded. Neighbours of other messages, and facts
                linked by a name, may be hits without either.
            settings: settings of the tenant.
            min_seq: log position that the hits have to reflect.
            documents: values of `collection` or `origin` that documents must have; None for all documents.
            window: the messages that are recent; only the levels `short` and `long` use it.
            until: time of the event loop at which the caller stops waiting; a reranker has until then.
            explain: whether hits have the parts of their scores.
        """
        owner, intent = query.owner, query.intent
        parts = resolve_parts(scopes)
        reranker = self._reranker if settings.reranker else None
        pool = max(limit, settings.reranker_candidates) if reranker else limit
        question = MemorySearch(
            owner,
            intent,
            query.meaning,
            query.statistics,
            pool,
            settings,
            query.now,
            min_seq,
            choose_breadth(pool),
            documents or {},
            parts,
            window,
            explain,
        )
        # Messages first: the others compute while PostgreSQL looks up messages.
        searched = sorted(parts, key=lambda scope: scope != "messages")
        answers = await asyncio.gather(
            *(self._search_scope(scope, question) for scope in searched), return_exceptions=True
        )
        degraded = [*query.degraded]
        hits: list[RankedHit] = []
        candidates: list[RankedHit] = []
        seqs: list[int] = []
        answer_of = dict(zip(searched, answers, strict=True))
        for scope in parts:
            answer = answer_of[scope]
            match answer:
                case VectorsUnavailable() | DatabaseUnavailable() | nats.errors.Error():
                    log.warning("scope search failed", tenant=owner[0], scope=scope, error=str(answer))
                    degraded.append(scope)
                case BaseException():
                    raise answer
                case some, seq:
                    distinct = list_distinct_items(some, _get_text, pool)
                    hits += distinct[:limit]
                    candidates += distinct
                    seqs.append(seq)
        hits.sort(key=lambda hit: -hit.score)
        if reranker and candidates:
            candidates.sort(key=lambda hit: -hit.score)
            reranked = await _rerank_hits(reranker, intent.resolved_text, candidates, settings, until)
            if reranked is None:
                degraded.append("reranker")
            else:
                hits = _limit_scopes(reranked, limit)
        hits = [hit for hit in hits if (not hit.is_doubtful if threshold is None else hit.score >= threshold)]
        if intent.antecedents:
            hits = [_add_part(hit, "preceding", intent.dependence) for hit in hits]
        return SearchResult(hits, tuple(degraded), min(seqs, default=0))

    async def _search_scope(self, scope: FoundScope, question: MemorySearch) -> _Answer:
        if scope != "messages" and "messages" in question.parts:
            await yield_to_lookups()
        return await self._scopes[scope](question)

    async def _embed_intent(
        self, intent: QueryIntent, statistics: CorpusStatistics | None
    ) -> tuple[Dense | None, tuple[str, ...]]:
        if self._embedder is None:
            return None, ()
        antecedents = intent.antecedents[:EMBEDDED_ANTECEDENTS]
        texts = (intent.text, *(each.text for each in antecedents))
        if time.monotonic() >= self._embeds_again_at:
            try:
                async with asyncio.timeout(EMBEDDING_WAIT):
                    query, *vectors = await asyncio.gather(
                        *(self._embedder.embed_query(text, statistics) for text in texts)
                    )
                weights = [each.weight for each in antecedents]
                return mix_vectors(query, list(zip(vectors, weights, strict=True))), ()
            except (EmbeddingUnavailable, TimeoutError) as error:
                self._embeds_again_at = time.monotonic() + EMBEDDING_PAUSE
                log.warning(
                    "embedding failed, searching by words only", error=str(error) or "no answer in time"
                )
        return None, ("embedding",)

    async def _find_candidates(
        self, collection: Collection, question: MemorySearch, ids: IdFilter | None = None
    ) -> list[FusedCandidate]:
        if self._vectors is None:
            raise VectorsUnavailable(
                "no vector index is open. Set MNEMON_QDRANT_URL or MNEMON_VECTORS_FOLDER; for `as_of`, "
                "repeat the request when `mnemon rebuild --until` has ended"
            )
        words = question.intent.words
        if collection in _SAMPLED_COLLECTIONS:
            words = question.statistics.terms.weigh_query(words)
        try:
            async with asyncio.timeout(VECTORS_WAIT):
                found = await find_candidates(
                    self._vectors,
                    collection,
                    question.owner,
                    words,
                    question.meaning,
                    question.breadth.candidates,
                    question.documents if collection is Collection.DOCUMENTS else None,
                    ids,
                )
        except TimeoutError as error:
            raise VectorsUnavailable(
                f"the vector store did not answer within {VECTORS_WAIT:g} s. Check the Qdrant server or, "
                "with the embedded engine, the load of this machine"
            ) from error
        thresholds = self._fact_thresholds if collection is Collection.MEMORIES else self._thresholds
        return select_relevant(found, question.intent.resolved_text, thresholds)

    async def _search_facts(self, question: MemorySearch) -> _Answer:
        tiers = question.parts["memories"]
        ids = None if tiers == WHOLE["memories"] else await self._build_tier_filter(question, tiers)
        candidates = await self._find_candidates(Collection.MEMORIES, question, ids)
        found = {str(each.payload["fact_id"]): each for each in candidates[: question.breadth.facts]}
        seen = await self._memory.load_facts_by_id(question.owner, tuple(found), question.min_seq)
        standing = [fact for fact in seen.value if fact.tier in tiers]
        intent = question.intent
        words = QueryWords(intent.resolved_text, question.statistics.terms.weigh_words(intent.term_weights))
        person = find_query_person(intent.text)
        ranked = facts.rank_facts(standing, found, words, question.settings, question.now, person=person)
        seq = seen.seq
        leading = find_leading_facts(intent.text, ranked)
        if leading and (named := await self._find_named_facts(question, leading, ids)):
            linked = {fact.id: fact for fact in seen.value if fact.id in named}
            if missing := tuple(each for each in named if each not in found):
                further = await self._memory.load_facts_by_id(question.owner, missing, question.min_seq)
                linked |= {fact.id: fact for fact in further.value}
                seq = min(seq, further.seq)
            links = score_links(leading, linked.values())
            changed = [linked[fact_id] for fact_id in links if linked[fact_id].tier in tiers]
            ranked = facts.merge_rankings(
                ranked,
                facts.rank_facts(changed, found, words, question.settings, question.now, links, person),
            )
        hits = [
            RankedHit(
                fact.id,
                "memories",
                fact.text,
                score,
                fact.saved_at,
                parts if question.explain else None,
                fact,
            )
            for fact, score, parts in ranked
        ]
        return _mark_doubtful(hits), seq

    async def _find_named_facts(
        self, question: MemorySearch, leading: Sequence[LeadingFact], ids: IdFilter | None
    ) -> list[str]:
        """Return the ids of facts that contain words of a name in a leading fact.

        A name of one word in more than `MOST_FACTS_PER_NAME` facts gives no link, so its facts are left out,
        and searches without `ids` do not look for it again for `FREQUENT_NAME_SECONDS`. With `ids`, fewer
        facts may have the name, so it is looked for each time. If the vector store does not answer in time,
        the result is empty.
        """
        assert self._vectors is not None
        names = sorted(
            {
                name
                for each in leading
                for name in each.names
                if ids is not None or (question.owner, name) not in self._frequent_names
            },
            key=list_spellings,
        )
        if not names:
            return []
        terms = question.statistics.terms
        try:
            async with asyncio.timeout(LINKS_WAIT):
                found = await self._vectors.search(
                    Collection.MEMORIES,
                    question.owner,
                    [_build_name_query(name, terms) for name in names],
                    MOST_FACTS_PER_NAME + 1,
                    ids=ids,
                )
        except (VectorsUnavailable, TimeoutError) as error:
            problem = str(error) or f"the vector store did not answer within {LINKS_WAIT:g} s"
            log.warning("name search failed, leaving out links", tenant=question.owner[0], error=problem)
            return []
        linked: dict[str, None] = {}
        for name, hits in zip(names, found, strict=True):
            if len(hits) <= MOST_FACTS_PER_NAME or len(name.words) > 1:
                linked |= dict.fromkeys(str(hit.payload["fact_id"]) for hit in hits)
            elif ids is None:
                self._frequent_names[question.owner, name] = True
        return list(linked)

    async def _build_tier_filter(self, question: MemorySearch, tiers: ScopeParts) -> IdFilter:
        """Return a filter for the facts of some tiers: ids to include, or ids to exclude if fewer ids have to
        be excluded.

        Raises:
            DatabaseUnavailable, nats.errors.Error: the facts cannot be read now.
        """
        known = (await self._memory.load_facts(question.owner, question.min_seq)).value
        tier_of = {derive_point_id(*question.owner, "fact", each.id): each.tier for each in known}
        wanted = frozenset(place for place, tier in tier_of.items() if tier in tiers)
        others = tier_of.keys() - wanted
        return IdFilter(wanted) if len(wanted) <= len(others) else IdFilter(frozenset(others), True)

    async def _search_messages(self, question: MemorySearch) -> _Answer:
        parts = question.parts["messages"]
        recent: frozenset[str] = frozenset()
        ids = None
        if parts != WHOLE["messages"]:
            recent = await self._read_recent_messages(question)
            places = frozenset(derive_point_id(*question.owner, "message", each) for each in recent)
            ids = IdFilter(places, is_excluded="earlier" in parts)

        def is_searched(event_id: str) -> bool:
            return ids is None or (event_id in recent) is not ids.is_excluded

        of_periods = await self._load_period_candidates(question) if question.intent.is_about_period else {}
        of_periods = {event_id: each for event_id, each in of_periods.items() if is_searched(event_id)}
        found = dict(of_periods)
        if not of_periods or question.intent.has_given_name:
            # Messages after the period may tell what a person did in it.
            candidates = await self._find_candidates(Collection.MESSAGES, question, ids)
            found |= {str(each.payload["event_id"]): each for each in candidates[: question.breadth.reranked]}
        wanted = MessageLookup(*question.owner, tuple(found), question.breadth.anchors)
        seen = await self._memory.load_surroundings(question.owner, wanted, question.min_seq)
        around = seen.value
        if ids is not None:
            around = filter_messages(around, lambda each: is_searched(each.event_id))
        # PostgreSQL returns rows in any order, and the order decides between equal texts.
        listed = [around.messages[seq] for seq in sorted(around.messages)]
        matches = await self._match_tokens(question, listed)
        scored = score_messages(found, around, question.intent, question.statistics.terms, matches)
        ranked = list_best_messages(scored, question.limit)
        if not ranked:
            return [], seen.seq
        shown = [(found[each.event_id], each.content) for each in listed if each.event_id in found]
        share = measure_best_share(question.intent.resolved_text, shown)
        # The scores of the ranking are comparable only within this search. The best message gets the highest
        # relevance of the hits.
        best = max(compute_relevance(each.similarity, each.overlap * share, each.trust) for each, _ in shown)
        best = max(best, MIN_PERIOD_RELEVANCE if of_periods else 0.0)
        hits = [
            RankedHit(
                message.event_id,
                "messages",
                message.content,
                best * math.exp((score - ranked[0].score) / SCORE_SPREAD),
                message.sent_at,
                explain_score(features) | _list_score_parts(found.get(message.event_id))
                if question.explain
                else None,
                message,
            )
            for score, message, features in ranked
        ]
        if question.meaning is None or of_periods or "earlier" not in parts:
            # The weights fit neither a search by words only, nor by time, nor the few newest messages.
            return hits, seen.seq
        judgement = judge_messages(scored, question.intent, question.statistics.terms, self._thresholds)
        return hits if judgement is None else _calibrate_hits(hits, judgement), seen.seq

    async def _load_period_candidates(self, question: MemorySearch) -> dict[str, FusedCandidate]:
        """Return messages of the periods that the query names, as candidates by event id.

        With more than `MAX_PERIODS` periods, or one longer than `MAX_PERIOD_LENGTH`, the result is empty.
        """
        periods = [each.find_latest_recurrence(question.now) for each in question.intent.periods]
        if len(periods) > MAX_PERIODS or any(end - start > MAX_PERIOD_LENGTH for start, end in periods):
            return {}
        loaded = await asyncio.gather(
            *(
                self._memory.load_messages_of_period(
                    question.owner,
                    PeriodLookup(*question.owner, *each, max(1, question.breadth.reranked // len(periods))),
                    question.min_seq,
                )
                for each in periods
            )
        )
        return {
            each.event_id: FusedCandidate({}, 1.0, measure_informativeness(each), 0.0, 0.0, 0.0)
            for some in loaded
            for each in some.value
        }

    async def _match_tokens(
        self, question: MemorySearch, messages: Sequence[VisibleMessage]
    ) -> dict[int, float]:
        """Return how well the tokens of each message match the query's, by log position.

        Without the package `wordllama`, the result is empty.
        """
        if self._token_model is None:
            return {}
        texts = [f"{each.name}: {each.content}" if each.name else each.content for each in messages]
        matches = await self._token_model.match_tokens(
            question.intent.resolved_text, texts, question.statistics.tokens
        )
        return {each.seq: match for each, match in zip(messages, matches.tolist(), strict=True)}

    async def _read_recent_messages(self, question: MemorySearch) -> frozenset[str]:
        """Return the event ids of the recent messages.

        Raises:
            DatabaseUnavailable, nats.errors.Error: the messages cannot be read now.
        """
        conversation, limit = question.window
        seen = await self._memory.load_messages(question.owner, conversation, limit, question.min_seq)
        newest = seen.value.messages[max(0, len(seen.value.messages) - limit) :]
        return frozenset(each.event_id for each in newest)

    async def _search_summaries(self, question: MemorySearch) -> _Answer:
        found = {
            str(each.payload["summary_id"]): each
            for each in await self._find_candidates(Collection.SUMMARIES, question)
        }
        seen = await self._memory.load_summaries_by_id(question.owner, tuple(found), question.min_seq)
        share = measure_best_share(
            question.intent.resolved_text, [(found[each.id], each.text) for each in seen.value]
        )
        # Of summaries with equal scores, the newer comes first.
        hits = [
            RankedHit(
                each.id,
                "summaries",
                each.text,
                compute_relevance(
                    found[each.id].similarity, found[each.id].overlap * share, found[each.id].trust
                ),
                each.at,
                _list_score_parts(found[each.id]) if question.explain else None,
                each,
            )
            for each in reversed(seen.value)
        ]
        return _mark_doubtful(sorted(hits, key=lambda hit: -hit.score)), seen.seq

    async def _search_documents(self, question: MemorySearch) -> _Answer:
        found = await self._find_candidates(Collection.DOCUMENTS, question)
        ids = tuple(dict.fromkeys(str(each.payload["document_id"]) for each in found))
        seen = await self._memory.load_documents_by_id(question.owner, ids, question.min_seq)
        # The places of a chunk of a former version do not apply to the current text, so such chunks are
        # skipped.
        documents = {document.event_id: document for document in seen.value}
        shown = [
            (each, document, _cut_chunk(document.text, each))
            for each in found
            if (document := documents.get(str(each.payload["event_id"])))
        ]
        share = measure_best_share(question.intent.resolved_text, [(each, text) for each, _, text in shown])
        hits = [
            RankedHit(
                document.id,
                "documents",
                text,
                compute_relevance(each.similarity, each.overlap * share, each.trust),
                None,
                _list_score_parts(each) if question.explain else None,
                document,
                _read_position(each, "start"),
            )
            for each, document, text in shown
        ]
        return _mark_doubtful(hits), seen.seq


def _build_name_query(name: NameSpellings, terms: TermStatistics) -> Sparse:
    words = bm25.weigh_query(" ".join(list_spellings(name)))
    # Of a name of one word all facts are found, or none counts, so that no rarity has to order them.
    return words._replace(has_rarity=True) if len(name.words) == 1 else terms.weigh_query(words)


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


def _calibrate_hits(hits: Sequence[RankedHit], judgement: Judgement) -> list[RankedHit]:
    """Return the hits, best first, with `answerability` among any `parts`, and lower scores if doubtful."""
    judged = [_add_part(hit, "answerability", judgement.answerability) for hit in hits]
    share = judgement.answerability / judgement.threshold
    calibrated = [
        hit._replace(is_doubtful=True, score=hit.score * share) if judgement.is_doubtful(hit.text) else hit
        for hit in judged
    ]
    return sorted(calibrated, key=lambda hit: -hit.score)


def _mark_doubtful(hits: Sequence[RankedHit]) -> list[RankedHit]:
    """Mark the hits as doubtful whose score is below `DOUBTFUL_SHARE` of the best score."""
    least = DOUBTFUL_SHARE * max((hit.score for hit in hits), default=0.0)
    return [hit._replace(is_doubtful=True) if hit.score < least else hit for hit in hits]


def _get_text(hit: RankedHit) -> tuple[Hashable, str]:
    return (describe_source(hit.source) if isinstance(hit.source, VisibleMessage) else None), hit.text


def _replace_score(hit: RankedHit, relevance: float) -> RankedHit:
    return _add_part(hit, "reranker", relevance)._replace(score=relevance, is_doubtful=False)


def _add_part(hit: RankedHit, name: str, value: float) -> RankedHit:
    return hit if hit.parts is None else hit._replace(parts={**hit.parts, name: value})


def _limit_scopes(hits: Sequence[RankedHit], limit: int) -> list[RankedHit]:
    """Return the first `limit` hits of each scope, in the same order."""
    counts: Counter[FoundScope] = Counter()
    kept = []
    for hit in hits:
        counts[hit.scope] += 1
        if counts[hit.scope] <= limit:
            kept.append(hit)
    return kept


def _cut_chunk(text: str, chunk: FusedCandidate) -> str:
    return text[_read_position(chunk, "start") : _read_position(chunk, "end")]


def _read_position(chunk: FusedCandidate, edge: Literal["start", "end"]) -> int:
    position = chunk.payload[edge]
    assert isinstance(position, int)
    return position


def _list_score_parts(candidate: FusedCandidate | None) -> dict[str, float]:
    if candidate is None:
        return {}
    return {
        "words": candidate.words,
        "meaning": candidate.meaning,
        "similarity": candidate.similarity or 0.0,
    }
