"""Search of messages, by words and meaning, or by the time that the query asks about."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search.candidates import CandidateFinder
from mnemon_consumers.retrieve.search.fusion import FusedCandidate, compute_relevance, measure_best_share
from mnemon_consumers.retrieve.search.hits import RankedHit, list_score_parts
from mnemon_consumers.retrieve.search.levels import WHOLE, filter_messages
from mnemon_consumers.retrieve.search.messages.answerability import Judgement, judge_messages
from mnemon_consumers.retrieve.search.messages.message_features import measure_informativeness
from mnemon_consumers.retrieve.search.messages.rerank import (
    ScoredMessage,
    explain_score,
    list_best_messages,
    score_messages,
)
from mnemon_consumers.retrieve.search.query.query_embedder import EmbeddedQuery
from mnemon_consumers.retrieve.search.scopes.inputs import ScopeAnswer, ScopeInputs
from mnemon_contracts.identity import derive_point_id
from mnemon_infra.database.messages.lookup import MessageLookup, PeriodLookup, VisibleMessage
from mnemon_infra.models.embedders.wordllama import find_wordllama
from mnemon_infra.models.embedding import Thresholds
from mnemon_infra.vectors.port import Collection, IdFilter

SCORE_SPREAD: Final = 5.0
"""Difference of two messages' ranking scores at which the lower one has 1/e of the relevance of the other."""

MAX_PERIODS: Final = 4
"""Maximum number of periods of a query; with more, no messages are loaded by their time."""

MAX_PERIOD_LENGTH: Final = timedelta(days=100)
"""Maximum length of a period whose messages are loaded: a season. A month with 60,000 messages in 2,000
conversations takes 0.1 s."""

MIN_PERIOD_RELEVANCE: Final = 0.5
"""Minimum relevance of the best hit for a query about all that happened in a period."""


class MessageSearch:
    """Search of a user's messages."""

    def __init__(self, memory: Memory, finder: CandidateFinder, thresholds: Thresholds | None) -> None:
        """Create the search; `thresholds` are those of the embedding model, None without a model."""
        self._memory = memory
        self._finder = finder
        self._thresholds = thresholds
        self._token_model = find_wordllama()

    async def find_hits(self, inputs: ScopeInputs) -> ScopeAnswer:
        """Return the messages that are relevant to the query, with lower scores for doubtful ones.

        Raises:
            VectorsUnavailable, DatabaseUnavailable, nats.errors.Error: the messages cannot be searched now.
        """
        query, parts = inputs.query, inputs.parts["messages"]
        recent: frozenset[str] = frozenset()
        ids = None
        if parts != WHOLE["messages"]:
            recent = await self._read_recent_messages(inputs)
            places = frozenset(derive_point_id(*query.owner, "message", each) for each in recent)
            ids = IdFilter(places, is_excluded="earlier" in parts)

        def is_searched(event_id: str) -> bool:
            return ids is None or (event_id in recent) is not ids.is_excluded

        of_periods = await self._load_period_candidates(inputs) if query.intent.is_about_period else {}
        of_periods = {event_id: each for event_id, each in of_periods.items() if is_searched(event_id)}
        if of_periods:
            query = query._replace(intent=query.intent.remove_relative_times())
        found = dict(of_periods)
        if not of_periods or query.intent.has_name:
            # Messages after the period may tell what a person did in it.
            candidates = await self._finder.find_candidates(
                Collection.MESSAGES, query, inputs.breadth.candidates, ids=ids
            )
            found |= {str(each.payload["event_id"]): each for each in candidates[: inputs.breadth.reranked]}
        wanted = MessageLookup(*query.owner, tuple(found), inputs.breadth.anchors)
        seen = await self._memory.load_surroundings(query.owner, wanted, inputs.min_seq)
        around = seen.value
        if ids is not None:
            around = filter_messages(around, lambda each: is_searched(each.event_id))
        # PostgreSQL returns rows in any order, and the order decides between equal texts.
        listed = [around.messages[seq] for seq in sorted(around.messages)]
        matches = await self._match_tokens(query, listed)
        scored = score_messages(found, around, query.intent, query.statistics.terms, matches)
        ranked = list_best_messages(scored, inputs.limit)
        if not ranked:
            return [], seen.seq
        shown = [(found[each.event_id], each.content) for each in listed if each.event_id in found]
        best = _measure_best_relevance(query, shown)
        hits = _build_hits(ranked, found, max(best, MIN_PERIOD_RELEVANCE if of_periods else 0.0), inputs)
        if query.meaning is None or of_periods or "earlier" not in parts:
            # The weights fit neither a search by words only, nor by time, nor the few newest messages.
            return hits, seen.seq
        judgement = judge_messages(scored, query.intent, query.statistics.terms, self._thresholds)
        return hits if judgement is None else _calibrate_hits(hits, judgement), seen.seq

    async def _load_period_candidates(self, inputs: ScopeInputs) -> dict[str, FusedCandidate]:
        """Return messages of the periods that the query names, as candidates by event id.

        With more than `MAX_PERIODS` periods, or one longer than `MAX_PERIOD_LENGTH`, the result is empty.
        """
        query = inputs.query
        periods = query.intent.list_latest_periods()
        if len(periods) > MAX_PERIODS or any(end - start > MAX_PERIOD_LENGTH for start, end in periods):
            return {}
        loaded = await asyncio.gather(
            *(
                self._memory.load_messages_of_period(
                    query.owner,
                    PeriodLookup(*query.owner, *each, max(1, inputs.breadth.reranked // len(periods))),
                    inputs.min_seq,
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
        self, query: EmbeddedQuery, messages: Sequence[VisibleMessage]
    ) -> dict[int, float]:
        """Return how well the tokens of each message match the query's, by log position.

        Without the package `wordllama`, the result is empty.
        """
        if self._token_model is None:
            return {}
        texts = [f"{each.name}: {each.content}" if each.name else each.content for each in messages]
        matches = await self._token_model.match_tokens(
            query.intent.resolved_text, texts, query.statistics.tokens
        )
        return {each.seq: match for each, match in zip(messages, matches.tolist(), strict=True)}

    async def _read_recent_messages(self, inputs: ScopeInputs) -> frozenset[str]:
        """Return the event ids of the recent messages.

        Raises:
            DatabaseUnavailable, nats.errors.Error: the messages cannot be read now.
        """
        conversation, limit = inputs.window
        seen = await self._memory.load_messages(inputs.query.owner, conversation, limit, inputs.min_seq)
        newest = seen.value.messages[max(0, len(seen.value.messages) - limit) :]
        return frozenset(each.event_id for each in newest)


def _measure_best_relevance(query: EmbeddedQuery, shown: Sequence[tuple[FusedCandidate, str]]) -> float:
    """Return the highest relevance of some candidates, each with its text."""
    share = measure_best_share(query.intent.resolved_text, shown)
    return max(compute_relevance(each.similarity, each.overlap * share, each.trust) for each, _ in shown)


def _build_hits(
    ranked: Sequence[ScoredMessage],
    found: Mapping[str, FusedCandidate],
    best: float,
    inputs: ScopeInputs,
) -> list[RankedHit]:
    """Return the hits of ranked messages.

    The scores of the ranking are comparable only within one search, so the best message gets the relevance
    `best`, and each other message a share of it.

    Args:
        ranked: the messages, best first; at least one.
        found: the candidates among the messages, by event id.
        best: relevance of the best message, 0 to 1.
        inputs: the inputs of the search.
    """
    return [
        RankedHit(
            message.event_id,
            "messages",
            message.content,
            best * math.exp((score - ranked[0].score) / SCORE_SPREAD),
            message.sent_at,
            explain_score(features) | _explain_candidate(found.get(message.event_id))
            if inputs.explain
            else None,
            message,
        )
        for score, message, features in ranked
    ]


def _explain_candidate(candidate: FusedCandidate | None) -> dict[str, float]:
    """Return the components of a candidate's score; none for a message that is no candidate."""
    return {} if candidate is None else list_score_parts(candidate)


def _calibrate_hits(hits: Sequence[RankedHit], judgement: Judgement) -> list[RankedHit]:
    """Return the hits, best first: `parts` get `answerability`, and doubtful hits get lower scores."""
    judged = [hit.add_part("answerability", judgement.answerability) for hit in hits]
    share = judgement.answerability / judgement.threshold
    calibrated = [
        hit._replace(is_doubtful=True, score=hit.score * share) if judgement.is_doubtful(hit.text) else hit
        for hit in judged
    ]
    return sorted(calibrated, key=lambda hit: -hit.score)
