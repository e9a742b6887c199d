"""Search of conversations without a server, with the same vectors and term weights as the vector store."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from mnemon_bench.quality.recall import LabelledConversations, compute_recall, parse_turn_id
from mnemon_consumers.retrieve.search.candidates import Breadth, choose_breadth, select_relevant
from mnemon_consumers.retrieve.search.facts.links import find_leading_facts, score_links
from mnemon_consumers.retrieve.search.facts.persons import Person
from mnemon_consumers.retrieve.search.facts.ranking import RankedFact, rank_facts
from mnemon_consumers.retrieve.search.fusion import FusedCandidate, QueryWords, fuse_rankings
from mnemon_consumers.retrieve.search.messages.message_features import MessageFeatures, extract_features
from mnemon_consumers.retrieve.search.messages.rerank import (
    ScoredMessage,
    list_best_messages,
    score_messages,
)
from mnemon_consumers.retrieve.search.query.follow_up import mix_vectors
from mnemon_consumers.retrieve.search.query.intent import QueryIntent
from mnemon_consumers.retrieve.search.query.query_embedder import EMBEDDED_ANTECEDENTS
from mnemon_consumers.retrieve.search.term_statistics import TermStatistics
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.settings.groups import Retrieval
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.database.messages.lookup import AROUND, Surroundings, VisibleMessage
from mnemon_infra.models.embedders.wordllama import load_wordllama
from mnemon_infra.models.embedding import CorpusStatistics, Dense, Sparse, Thresholds
from mnemon_infra.models.words import concepts
from mnemon_infra.vectors.port import PointHit
from mnemon_infra.vectors.texts import Texts, build_message_texts
from mnemon_producers.events import ChatEvent

DEPTHS: Final = (5, 10)
"""Numbers of best turns over which recall is measured."""


class FoundMessages(NamedTuple):
    """Messages found for one query: the arguments of `score_messages` other than intent and statistics.

    Attributes:
        candidates: the candidates to rank, by event id.
        around: the messages of the candidates, and the messages around the best candidates.
        matches: similarity of each message's tokens to the query's tokens, by log position.
    """

    candidates: dict[str, FusedCandidate]
    around: Surroundings
    matches: dict[int, float]


class IndexedItems:
    """Items of one user, such as messages or facts, with their vectors and term weights."""

    def __init__(self, texts: Sequence[Texts], payloads: Sequence[Mapping[str, JsonValue]]) -> None:
        """Compute the vectors and term weights of items with these texts and payloads."""
        self.texts = texts
        self._payloads = payloads
        self._meanings = np.asarray(asyncio.run(load_wordllama().embed([each.meaning for each in texts])))
        self._points = [uuid4() for _ in texts]
        self._weights: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for place, each in enumerate(texts):
            sparse = concepts.weigh_document(each.words)
            for term, weight in zip(sparse.indices, sparse.values, strict=True):
                self._weights[term].append((place, weight))

    def find_hits(
        self, words: Sparse, meaning: Dense, statistics: TermStatistics, limit: int
    ) -> tuple[list[PointHit], list[PointHit]]:
        """Return the best hits by words, and the best hits by vectors, at most `limit` each."""
        scores = np.zeros(len(self.texts))
        rarity = statistics.weigh_terms(words.indices)
        for term, weight in zip(words.indices, words.values, strict=True):
            for place, value in self._weights.get(term, ()):
                scores[place] += rarity[term] * weight * value
        by_words = [each for each in self._list_best(scores, limit) if each.score > 0]
        return by_words, self._list_best((self._meanings @ meaning).astype(np.float64), limit)

    def _list_best(self, scores: NDArray[np.float64], limit: int) -> list[PointHit]:
        order = np.argsort(-scores, kind="stable")[:limit]
        return [PointHit(self._points[place], float(scores[place]), self._payloads[place]) for place in order]


class Conversation(IndexedItems):
    """The messages of one user, with their vectors and term weights."""

    def __init__(self, messages: Sequence[VisibleMessage]) -> None:
        """Compute the vectors and term weights of the messages."""
        self.messages = messages
        texts = [build_message_texts(each.content, each.name, each.sent_at) for each in messages]
        super().__init__(texts, [{"event_id": each.event_id} for each in messages])

    def match_tokens(self, query: str, seqs: Collection[int], tokens: CorpusStatistics) -> dict[int, float]:
        """Return the similarity of each message's tokens to the query's tokens, by log position.

        Args:
            query: the query.
            seqs: log positions of the messages.
            tokens: rarity of the tokens.
        """
        places = [seq - 1 for seq in seqs]
        texts = [self.texts[place].meaning for place in places]
        matches = asyncio.run(load_wordllama().match_tokens(query, texts, tokens))
        return dict(zip(seqs, matches.tolist(), strict=True))

    def find_surroundings(self, found: Sequence[str], anchors: int) -> Surroundings:
        """Return the found messages, and the messages around the first `anchors` of them."""
        place_of = {each.event_id: place for place, each in enumerate(self.messages)}
        around = Surroundings({}, {})
        for rank, event_id in enumerate(found):
            place = place_of[event_id]
            around.messages[self.messages[place].seq] = self.messages[place]
            if rank < anchors:
                nearby = self.messages[max(0, place - AROUND) : place + AROUND + 1]
                around.messages.update((each.seq, each) for each in nearby)
                around.following.update((one.seq, other.seq) for one, other in pairwise(nearby))
        return around


def rank_with_links(
    query: str,
    facts: Sequence[FactRecord],
    found: Mapping[str, FusedCandidate],
    words: QueryWords,
    settings: Retrieval,
    now: datetime,
    person: Person | None = None,
) -> tuple[list[RankedFact], list[RankedFact]]:
    """Return the rankings of facts without and with links, as a search ranks them.

    Args:
        query: the query.
        facts: all facts of the user.
        found: the candidates, by fact id.
        words: the words of the query.
        settings: the settings of the search, of which the decay of facts applies.
        now: the current time.
        person: the person that the query is about; None if the query does not tell.
    """
    standing = [fact for fact in facts if fact.id in found]
    plain = rank_facts(standing, found, words, settings, now, person=person)
    links = score_links(find_leading_facts(query, plain), facts)
    linked = [fact for fact in facts if fact.id in found or fact.id in links]
    return plain, rank_facts(linked, found, words, settings, now, links, person)


class InProcessSearch:
    """A search of the messages of some conversations, without a server.

    Attributes:
        conversations: the conversations, by user.
        tokens: rarity of the embedding model's tokens in all messages.
        statistics: rarity of the words and concepts of all messages.
    """

    def __init__(self, data: LabelledConversations) -> None:
        """Compute the vectors, term weights and statistics of all conversations."""
        said = {each.events[0].user: list(read_messages(each.events)) for each in data.conversations}
        self.conversations = {user: Conversation(messages) for user, messages in said.items()}
        texts = [text for conversation in self.conversations.values() for text in conversation.texts]
        self.tokens = asyncio.run(load_wordllama().compute_statistics([each.meaning for each in texts]))
        self.statistics = TermStatistics.from_texts([each.words for each in texts])

    def build_intent(self, user: str, query: str, preceding: Sequence[str] = ()) -> QueryIntent:
        """Return the intent of a query that the user asks at the time of the conversation's last message."""
        return QueryIntent(query, self.conversations[user].messages[-1].sent_at, tuple(preceding))

    def find_candidates(self, user: str, intent: QueryIntent, breadth: Breadth) -> list[FusedCandidate]:
        """Return the candidates that words and vectors find, best first."""
        meaning = asyncio.run(self._embed_query(intent))
        hits = self.conversations[user].find_hits(intent.words, meaning, self.statistics, breadth.candidates)
        return fuse_rankings(*hits, breadth.candidates)

    def gather_features(
        self, user: str, intent: QueryIntent, breadth: Breadth, thresholds: Thresholds | None = None
    ) -> list[tuple[VisibleMessage, MessageFeatures]]:
        """Return features of the found messages and of messages around them, in the order of the log.

        The arguments are those of `score_messages`.
        """
        found = self._find_messages(user, intent, breadth, thresholds)
        return extract_features(found.candidates, found.around, intent, self.statistics, found.matches)

    def rank_messages(self, user: str, intent: QueryIntent, limit: int) -> list[ScoredMessage]:
        """Return at most `limit` messages for a query, best first."""
        return list_best_messages(self.score_messages(user, intent, choose_breadth(limit)), limit)

    def score_messages(
        self, user: str, intent: QueryIntent, breadth: Breadth, thresholds: Thresholds | None = None
    ) -> list[ScoredMessage]:
        """Return the found messages and the messages around them with scores, best first.

        Args:
            user: the user whose messages are searched.
            intent: the query.
            breadth: numbers of messages that each step of the search considers.
            thresholds: thresholds that leave out irrelevant candidates, as a search does; None keeps all.
        """
        found = self._find_messages(user, intent, breadth, thresholds)
        return score_messages(found.candidates, found.around, intent, self.statistics, found.matches)

    def find_turns(self, user: str, query: str, preceding: Sequence[str] = ()) -> list[str]:
        """Return the ids of the ten best turns for a query, best first."""
        ranked = self.rank_messages(user, self.build_intent(user, query, preceding), max(DEPTHS))
        return [parse_turn_id(each.message.event_id) for each in ranked]

    def _find_messages(
        self, user: str, intent: QueryIntent, breadth: Breadth, thresholds: Thresholds | None = None
    ) -> FoundMessages:
        conversation = self.conversations[user]
        fused = self.find_candidates(user, intent, breadth)
        fused = select_relevant(fused, intent.resolved_text, thresholds)[: breadth.reranked]
        found = {str(each.payload["event_id"]): each for each in fused}
        around = conversation.find_surroundings(tuple(found), breadth.anchors)
        return FoundMessages(
            found,
            around,
            conversation.match_tokens(intent.resolved_text, around.messages, self.tokens),
        )

    async def _embed_query(self, intent: QueryIntent) -> Dense:
        model, antecedents = load_wordllama(), intent.antecedents[:EMBEDDED_ANTECEDENTS]
        vectors = [
            (await model.embed_query(antecedent.text, self.tokens), antecedent.weight)
            for antecedent in antecedents
        ]
        return mix_vectors(await model.embed_query(intent.text, self.tokens), vectors)


def read_messages(events: Iterable[ChatEvent]) -> Iterator[VisibleMessage]:
    """Yield the messages of a conversation, with log positions counted from 1."""
    said = (each.event for each in events if isinstance(each.event, MessageV1))
    for seq, each in enumerate(said, 1):
        assert each.sent_at is not None
        yield VisibleMessage(seq, str(each.id), each.role, each.content, each.name, each.sent_at, "chat")


def average_recall(answers: Collection[tuple[frozenset[str], Sequence[str]]]) -> dict[str, float]:
    """Return the mean recall of several questions at each depth in `DEPTHS`, such as `recall@5`.

    Args:
        answers: for each question, the ids of the turns that answer it, and the ids of the turns found, best
            first.
    """
    return {
        f"recall@{depth}": fmean(compute_recall(evidence, turns[:depth]) for evidence, turns in answers)
        for depth in DEPTHS
    }
