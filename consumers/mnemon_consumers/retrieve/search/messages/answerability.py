"""Answerability: how probable it is that a user's messages answer a question. No I/O, no clock.

A search always finds the nearest messages, even for a question that no message answers. Two logistic
regressions judge the messages found: the first tells whether they are about the topic of the question, the
second whether they are about the person whom it names. Neither regression checks the answer itself.
"""

import math
import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from operator import mul
from typing import Final, NamedTuple

from mnemon_consumers.retrieve.search.messages.message_features import MessageFeatures, is_assistant
from mnemon_consumers.retrieve.search.messages.rerank import ScoredMessage, load_weights
from mnemon_consumers.retrieve.search.query.intent import LOOKED_AT, TIMES, QueryIntent
from mnemon_consumers.retrieve.search.query.names import (
    find_mentioned_names,
    find_name_words,
    list_capitalised_names,
)
from mnemon_consumers.retrieve.search.term_statistics import TermStatistics
from mnemon_consumers.retrieve.search.text_properties import describe_text
from mnemon_infra.models.embedding import Thresholds, is_mostly_latin
from mnemon_infra.models.months import ENGLISH, RUSSIAN
from mnemon_infra.models.words import bm25

WEIGHTS_FILE: Final = "answerability.toml"
"""Weights that `just fit-answerability` has fitted, beside this module."""

LONGEST_QUESTION: Final = 400
"""Number of characters above which a query is not judged: it is more than a question."""

LEAST_TERMS: Final = 2
"""Number of words, stop words and times excluded, below which a query is not judged."""

LEAST_FOUND: Final = 32
"""Number of messages found, with their neighbours, below which no query is judged.

The weights fit conversations of hundreds of messages. Among 30 messages, judging would leave out a tenth of
the answers.
"""

LEAST_TEXTS: Final = 30
"""Number of counted texts of a tenant below which no query is judged: few texts tell little about rarity."""

SCRIPT_READ: Final = 400
"""Number of characters of a message that tell its script."""

JUDGED: Final = 24
"""Number of best messages that are judged; more of them take longer and add nothing."""

COVERING: Final = 5
"""Number of best messages that are compared with the words of the query."""

SCALE: Final = 10.0
"""Divisor of the scores of the ranking, so that all features have similar ranges."""

QUESTION_PENALTY: Final = 1.2
"""Deduction from the score of a message that asks something: a question tells little about its speaker."""

MOST_ATTRIBUTION: Final = 4.0
"""Highest absolute value of `attribution`."""

_WORD: Final = re.compile(r"[^\W_]+")
_TIMES: Final = TIMES.union(
    map(str.lower, ENGLISH + RUSSIAN), str.split("jan feb mar apr jun jul aug sep sept oct nov dec")
)
_QUOTE: Final = re.compile(r"[\"“”„«]([^\"“”„«»]*)[\"“”»]")
_QUESTION: Final = re.compile(
    r"[?\uff1f\u061f]|^\W*(?:who|whom|whose|what|when|where|which|why|how|do|does|did|is|are|was|were|has|have|had"
    r"|can|could|would|should|will)\b",
    re.IGNORECASE,
)


class TopicFeatures(NamedTuple):
    """Features that tell whether the messages are about the topic of the question.

    Attributes:
        similarity: highest cosine of a message with the query.
        score: highest score of a message in the ranking, divided by `SCALE`.
        coverage: highest share of the query's words that one of the best messages has, weighted by rarity;
            words that name speakers do not count, because speakers rarely name themselves.
        unknown_names: share of the words of names in the query that occur in no message or speaker's name.
        assistant: 1 in a chat with an assistant, where scores of the ranking lack some features; else 0.
    """

    similarity: float
    score: float
    coverage: float
    unknown_names: float
    assistant: float


class SpeakerFeatures(NamedTuple):
    """Features that tell whether the messages are about the person whom the query names.

    Attributes:
        attribution: logarithm of how much more likely the answer is in a message about this person than in a
            message about another person, judged by features that do not depend on the speaker.
        score: see `TopicFeatures`.
    """

    attribution: float
    score: float


class AnswerabilityFeatures(NamedTuple):
    """Features of both regressions.

    Attributes:
        topic: features of the first regression.
        speaker: features of the second; None in a chat with an assistant, and if the query does not name
            exactly one speaker.
    """

    topic: TopicFeatures
    speaker: SpeakerFeatures | None


class AnswerabilityWeights(NamedTuple):
    """Weights of the features, and the constant terms, of both regressions."""

    topic: TopicFeatures
    topic_constant: float
    speaker: SpeakerFeatures
    speaker_constant: float


class Judgement(NamedTuple):
    """Judgement of the messages found: whether they answer the query, and what makes a hit certain.

    Attributes:
        answerability: the probability that the messages answer the query, 0 to 1.
        threshold: answerability below which hits are doubtful.
        terms: ids of the stemmed words of the query, without times.
        quotes: phrases that the query quotes, as `_join_words` returns them.
    """

    answerability: float
    threshold: float
    terms: frozenset[int]
    quotes: tuple[str, ...]

    def is_doubtful(self, text: str) -> bool:
        """Return whether a search without a threshold leaves out a hit with this text.

        Only the first `LOOKED_AT` characters of the text count. A hit is not doubtful if they have all words
        of the query except times, or a phrase that the query quotes.
        """
        if self.answerability >= self.threshold or self.terms <= describe_text(text).terms:
            return False
        words = _join_words(text[:LOOKED_AT]) if self.quotes else ""
        return not any(quote in words for quote in self.quotes)


def judge_messages(
    scored: Sequence[ScoredMessage],
    intent: QueryIntent,
    statistics: TermStatistics,
    thresholds: Thresholds | None,
) -> Judgement | None:
    """Judge how probable it is that the messages answer the query; return None if the query is not judged.

    The query is judged only with the embedding model for which the weights were fitted, if at least half of
    the letters of the query, and of the best message, are Latin. The statistics must count at least
    `LEAST_TEXTS` texts. `extract_answerability_features` names the other conditions.

    Args:
        scored: the messages found, best first.
        intent: the query.
        statistics: rarity of the tenant's words.
        thresholds: the thresholds of the embedding model; None if the search used words only.
    """
    if thresholds is None or thresholds.answerable is None or statistics.texts < LEAST_TEXTS:
        return None
    features = extract_answerability_features(scored, intent, statistics)
    if features is None:
        return None
    texts = intent.text, scored[0].message.content[:SCRIPT_READ]
    if not all(map(is_mostly_latin, texts)):
        return None
    return Judgement(
        compute_answerability(features, load_answerability_weights()),
        thresholds.answerable,
        select_topic_terms(intent),
        tuple(_join_words(each) for each in _QUOTE.findall(intent.text) if describe_text(each).terms),
    )


def extract_answerability_features(
    scored: Sequence[ScoredMessage], intent: QueryIntent, statistics: TermStatistics
) -> AnswerabilityFeatures | None:
    """Return the features of the messages found; None if the query is not judged.

    The query is not judged if it depends on the messages before it, is not a question, or has more than
    `LONGEST_QUESTION` characters or fewer than `LEAST_TERMS` words besides times. Nor is it judged if fewer
    than `LEAST_FOUND` messages were found, or if all of them repeat the question. Messages that repeat the
    question are left out: the user may just have asked it in a conversation.

    Args:
        scored: the messages found, best first.
        intent: the query.
        statistics: rarity of the tenant's words.
    """
    if len(scored) < LEAST_FOUND or intent.antecedents or not asks_for_answer(intent.text):
        return None
    terms = select_topic_terms(intent)
    best = list(islice((each for each in scored if not _repeats_query(each, intent)), JUDGED))
    if len(terms) < LEAST_TERMS or not best:
        return None
    speakers = frozenset(each.message.name for each in scored if each.message.name)
    has_assistant = any(is_assistant(each.message) for each in best)
    return AnswerabilityFeatures(
        extract_topic_features(best, intent, terms, speakers, statistics, has_assistant=has_assistant),
        None if has_assistant else extract_speaker_features(best, intent, speakers),
    )


def compute_answerability(features: AnswerabilityFeatures, weights: AnswerabilityWeights) -> float:
    """Return the lower of the two probabilities that the regressions give.

    Without features of the speaker, return the probability of the first regression.
    """
    logit = weights.topic_constant + sum(map(mul, weights.topic, features.topic))
    if features.speaker is not None:
        logit = min(logit, weights.speaker_constant + sum(map(mul, weights.speaker, features.speaker)))
    return 1 / (1 + math.exp(-logit))


def asks_for_answer(query: str) -> bool:
    """Return whether a query asks something in up to `LONGEST_QUESTION` characters.

    Key words and statements ask nothing: for them, the nearest messages are the answer.
    """
    return len(query) <= LONGEST_QUESTION and _QUESTION.search(query) is not None


def select_topic_terms(intent: QueryIntent) -> frozenset[int]:
    """Return the ids of the stemmed words of a query, without times: messages rarely name their own date."""
    words = _WORD.findall(intent.text)
    others = [each for each in words if not _is_time(each) and not (each.isdigit() and intent.periods)]
    if len(others) == len(words):
        return intent.terms
    return frozenset(bm25.weigh_query(" ".join(others)).indices)


def extract_topic_features(
    scored: Sequence[ScoredMessage],
    intent: QueryIntent,
    terms: frozenset[int],
    speakers: frozenset[str],
    statistics: TermStatistics,
    *,
    has_assistant: bool,
) -> TopicFeatures:
    """Return the features that tell how well the messages fit the topic of the query.

    Args:
        scored: the messages found, best first; at least one.
        intent: the query.
        terms: ids of the stemmed words of the query, without times.
        speakers: the names of all speakers.
        statistics: rarity of the tenant's words.
        has_assistant: whether one of the speakers is an assistant.
    """
    rarity = statistics.weigh_terms(_leave_out_names(terms, intent.text, speakers))
    total = sum(rarity.values()) or 1.0
    return TopicFeatures(
        similarity=max(each.features.cosine for each in scored),
        score=scored[0].score / SCALE,
        coverage=max(
            sum(rarity[term] for term in rarity.keys() & describe_text(each.message.content).terms)
            for each in scored[:COVERING]
        )
        / total,
        unknown_names=_measure_unknown_names(scored, intent.text, speakers),
        assistant=float(has_assistant),
    )


def extract_speaker_features(
    scored: Sequence[ScoredMessage], intent: QueryIntent, speakers: frozenset[str]
) -> SpeakerFeatures | None:
    """Return the features that tell how well the messages fit the speaker whom the query names.

    A message is about its speaker, or about the person addressed if the message says `you` and not `I`. The
    result is None unless the query names exactly one speaker.

    Args:
        scored: the messages found, best first; at least one.
        intent: the query.
        speakers: the names of all speakers.
    """
    named = intent.find_names(speakers)
    if len(named) != 1:
        return None
    weights = load_weights()
    about, other = 0.0, 0.0
    for score, message, features in scored:
        text = describe_text(message.content)
        # Scores of the ranking are below 25, so that the powers stay small.
        power = math.exp(
            score - _weigh_speaker(features, weights) - QUESTION_PENALTY * float(text.is_question)
        )
        if (message.name in named) is not text.speaks_of_others:
            about += power
        else:
            other += power
    least = math.exp(-MOST_ATTRIBUTION)
    share = max(about, least * other) / max(other, least * about)
    return SpeakerFeatures(math.log(share), scored[0].score / SCALE)


@cache
def load_answerability_weights() -> AnswerabilityWeights:
    """Return the fitted weights of both regressions, from `WEIGHTS_FILE`."""
    document = tomllib.loads((files(__package__) / WEIGHTS_FILE).read_text(encoding="utf-8"))
    topic, speaker = document["topic"], document["speaker"]
    constants = topic.pop("constant"), speaker.pop("constant")
    return AnswerabilityWeights(
        TopicFeatures(**topic), constants[0], SpeakerFeatures(**speaker), constants[1]
    )


def _repeats_query(scored: ScoredMessage, intent: QueryIntent) -> bool:
    text = scored.message.content
    return describe_text(text).terms == intent.terms and asks_for_answer(text)


def _join_words(text: str) -> str:
    """Return the words of a text in lower case, with a space before and after each."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _leave_out_names(terms: frozenset[int], query: str, speakers: frozenset[str]) -> frozenset[int]:
    """Return the terms of a query without those that name speakers; all terms if none is left."""
    named = bm25.weigh_query(" ".join(find_name_words(query, speakers))).indices
    return terms.difference(named) or terms


def _measure_unknown_names(scored: Sequence[ScoredMessage], query: str, speakers: frozenset[str]) -> float:
    words = {
        word
        for name in list_capitalised_names(query)
        for word in _WORD.findall(name)
        if len(word) > 1 and not _is_time(word)
    }
    unknown = sum(_is_unknown_word(word, scored, speakers) for word in words)
    return unknown / len(words) if words else 0.0


def _is_unknown_word(word: str, scored: Sequence[ScoredMessage], speakers: frozenset[str]) -> bool:
    terms = describe_text(word).terms
    if not terms or any(terms <= describe_text(name).terms for name in speakers):
        return False
    if any(terms <= describe_text(each.message.content).terms for each in scored):
        return False
    return not find_mentioned_names(word, speakers)


def _is_time(word: str) -> bool:
    return word.lower() in _TIMES


def _weigh_speaker(features: MessageFeatures, weights: MessageFeatures) -> float:
    """Return the part of a message's ranking score that comes from its speaker and its length."""
    return (
        weights.speaker * features.speaker
        + weights.speaker_on_others * features.speaker_on_others
        + weights.length * features.length
    )
