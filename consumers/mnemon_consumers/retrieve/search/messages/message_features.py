"""Features of messages for the ranking: what each message has in common with a query. No I/O, no clock.

A message alone has little content: the next message has the answer to a question, and the message before it
names the topic. So some features are about the neighbours and the session of a message.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from mnemon_consumers.retrieve.search.fusion import FusedCandidate, find_lowest_similarity
from mnemon_consumers.retrieve.search.query.intent import QueryIntent
from mnemon_consumers.retrieve.search.query.names import split_name
from mnemon_consumers.retrieve.search.term_statistics import TermStatistics
from mnemon_consumers.retrieve.search.text_properties import TextProperties, describe_text
from mnemon_infra.database.messages.lookup import Surroundings, VisibleMessage

SESSION_GAP: Final = timedelta(hours=3)
"""Pause between messages that ends a session."""

FADING: Final = 0.5
"""Share of a neighbour's score: half for the next message, a quarter for the message after it, and so on."""

REACH: Final = 4
"""Maximum distance, in messages, between neighbours."""

SESSION_HITS: Final = 5
"""Number of best messages of a session that make up its score; each counts half as much as the one before."""

INFORMATIVE_LENGTH: Final = 200
"""Number of characters from which a longer message is no more informative."""


class MessageFeatures(NamedTuple):
    """Features of one message; a feature that does not apply is 0.

    Attributes:
        terms: score by words, relative to the other candidates, 0 to 1; for a candidate that was found by its
            time, its informativeness.
        term_rank: 1 for the message with the highest score by words, 1/2 for the second, 1/3 for the third,
            and so on.
        cosine: cosine with the query; the lowest cosine found, if meaning did not find the message.
        cosine_rank: as `term_rank`, by the cosine, times the trust in similarities.
        coverage: share of the query's words that the text has, weighted by rarity, 0 to 1.
        novelty: as `coverage`, but a repeated word weighs less, because messages often return to what an
            earlier message told. In the order of the log, the second message with the word has half of its
            weight, the third a third, and so on. The last message with the word has its whole weight, because
            this message may correct the others. A message with exactly the words of the query has its
            coverage as novelty, and is not counted as a repetition.
        neighbours: sum of the scores of up to `REACH` messages before and after, faded by distance.
        answer: score of the preceding message if that message asks something, because this message may be the
            answer.
        session: score of the session, relative to the best session, 0 to 1; 0 in a chat with an assistant,
            where every message of a session is about the session's topic.
        speaker: 1 for messages of a person whom the query names, or whom `I` and `you` mean.
        speaker_on_others: 1 if `speaker` is 1 and the message is about the person addressed.
        time: 1 for messages that name a time, if the query asks for one.
        date: closeness to a period that the query names, 0 to 1; 1 for messages sent within it.
        tokens: how well its tokens match the tokens of the query, 0 to 1; 0 if token vectors are missing.
        token_rank: as `term_rank`, by `tokens`.
        passage: mean of `tokens` of the message, the two messages before it, and the message after it, within
            a session: the words of a query are often spread over a few messages.
        length: logarithm of the number of characters; 0 in a chat with an assistant, whose texts are long.
        names: 1 for messages that name a person, place or thing, other than the speakers; 0 in a chat with an
            assistant.
    """

    terms: float
    term_rank: float
    cosine: float
    cosine_rank: float
    coverage: float
    novelty: float
    neighbours: float
    answer: float
    session: float
    speaker: float
    speaker_on_others: float
    time: float
    date: float
    tokens: float
    token_rank: float
    passage: float
    length: float
    names: float


def extract_features(
    candidates: Mapping[str, FusedCandidate],
    around: Surroundings,
    intent: QueryIntent,
    statistics: TermStatistics,
    matches: Mapping[int, float],
) -> list[tuple[VisibleMessage, MessageFeatures]]:
    """Return the found messages and their neighbours, each with its features, in the order of the log.

    A message that has only its session in common with the found messages is left out.

    Args:
        candidates: the candidates that the search found, by event id.
        around: the messages of `candidates` that may be shown, and their neighbours.
        intent: the query.
        statistics: rarity of the tenant's words.
        matches: how well the tokens of each message match the query's, 0 to 1, by log position.
    """
    messages = [around.messages[seq] for seq in sorted(around.messages)]
    texts = {each.seq: describe_text(each.content) for each in messages}
    found = {each.seq: candidates.get(each.event_id) for each in messages}
    own = {seq: each.score if each else 0.0 for seq, each in found.items()}
    session_of = _map_sessions(messages)
    following = {
        seq: later
        for seq, later in around.following.items()
        if seq in session_of and session_of[seq] == session_of[later]
    }
    near, answers = _score_neighbours(own, texts, following)
    term_ranks = _invert_ranks({seq: each.words for seq, each in found.items() if each})
    cosine_ranks = _invert_ranks({seq: each.similarity or 0.0 for seq, each in found.items() if each})
    token_ranks = _invert_ranks(matches)
    passages = _average_matches(own, matches, following)
    has_assistant = any(is_assistant(each) for each in messages)
    sessions = {} if has_assistant else _score_sessions(own, session_of)
    named = _find_speakers(messages, intent)
    speakers = {
        word.text for name in {each.name for each in messages if each.name} for word in split_name(name)
    }
    lowest = find_lowest_similarity(candidates.values())
    rarity = {
        term: intent.term_weights[term] * value
        for term, value in statistics.weigh_terms(intent.terms).items()
    }
    total = sum(rarity.values()) or 1.0
    shares = {term: value / total for term, value in rarity.items()}
    near_or_found = [each for each in messages if own[each.seq] + near[each.seq] > 0]
    shared = {each.seq: intent.terms & texts[each.seq].terms for each in near_or_found}
    coverage = {seq: sum(map(shares.__getitem__, terms)) for seq, terms in shared.items()}
    # The message that asks is in the log, too. It tells nothing, so it is not the last with its words.
    telling = {seq: terms for seq, terms in shared.items() if texts[seq].terms != intent.terms}
    novelty = coverage | _score_novelty(telling, shares)
    periods, asks_for_time = intent.periods, intent.asks_for_time
    seqs = [each.seq for each in near_or_found]
    described = [texts[seq] for seq in seqs]
    hits = [found[seq] for seq in seqs]
    is_named = [each.name in named or each.role in named for each in near_or_found]
    # Built by columns: one call for each message takes twice as long.
    columns: dict[str, list[float]] = {
        "terms": [each.words if each else 0.0 for each in hits],
        "term_rank": [term_ranks.get(seq, 0.0) for seq in seqs],
        "cosine": [(each.similarity or lowest) if each else lowest for each in hits],
        "cosine_rank": [
            each.trust * cosine_ranks.get(seq, 0.0) if each else 0.0
            for seq, each in zip(seqs, hits, strict=True)
        ],
        "coverage": [coverage[seq] for seq in seqs],
        "novelty": [novelty[seq] for seq in seqs],
        "neighbours": [near[seq] for seq in seqs],
        "answer": [answers[seq] for seq in seqs],
        "session": [sessions.get(session_of[seq], 0.0) for seq in seqs],
        "speaker": [float(each) for each in is_named],
        "speaker_on_others": [
            float(is_speaker and text.speaks_of_others)
            for is_speaker, text in zip(is_named, described, strict=True)
        ],
        "time": [float(asks_for_time and text.tells_time) for text in described],
        "date": [
            max((period.measure_closeness(each.sent_at) for period in periods), default=0.0)
            for each in near_or_found
        ],
        "tokens": [matches.get(seq, 0.0) for seq in seqs],
        "token_rank": [token_ranks.get(seq, 0.0) for seq in seqs],
        "passage": [passages[seq] for seq in seqs],
        "length": [0.0 if has_assistant else math.log1p(len(each.content)) for each in near_or_found],
        "names": [0.0 if has_assistant else float(not text.name_words <= speakers) for text in described],
    }
    rows = zip(*(columns[name] for name in MessageFeatures._fields), strict=True)
    return list(zip(near_or_found, map(MessageFeatures._make, rows), strict=True))


def measure_informativeness(message: VisibleMessage) -> float:
    """Return how informative a message is without the messages around it, 0 to 1.

    Longer messages are more informative, up to `INFORMATIVE_LENGTH`. A message with a question mark counts
    half, and so does a message of an assistant.
    """
    share = min(1.0, math.log1p(len(message.content)) / math.log1p(INFORMATIVE_LENGTH))
    return (
        share
        * (0.5 if describe_text(message.content).is_question else 1.0)
        * (0.5 if is_assistant(message) else 1.0)
    )


def is_assistant(message: VisibleMessage) -> bool:
    """Return whether the message is from an assistant without a name of its own, and not from a person."""
    return message.role == "assistant" and (message.name or message.role).casefold() == message.role


def _map_sessions(messages: Sequence[VisibleMessage]) -> dict[int, int]:
    """Map each message to its session, named by the log position of the session's first known message."""
    latest: dict[str, tuple[int, datetime]] = {}
    session_of = {}
    for message in messages:
        session, before = latest.get(message.conversation, (message.seq, message.sent_at))
        if abs(message.sent_at - before) > SESSION_GAP:
            session = message.seq
        latest[message.conversation] = session, message.sent_at
        session_of[message.seq] = session
    return session_of


def _score_novelty(shared: Mapping[int, Collection[int]], shares: Mapping[int, float]) -> dict[int, float]:
    """Return the novelty of each message, by log position; see `MessageFeatures`.

    Args:
        shared: terms of the query that each message has, by log position, in the order of the log.
        shares: weight of each term of the query; the weights add up to 1.
    """
    last = {term: seq for seq, terms in shared.items() for term in terms}
    uses, novelty = dict.fromkeys(last, 0), dict.fromkeys(shared, 0.0)
    for seq, terms in shared.items():
        for term in terms:
            uses[term] += 1
            novelty[seq] += shares[term] / (1 if last[term] == seq else uses[term])
    return novelty


def _invert_ranks(scores: Mapping[int, float]) -> dict[int, float]:
    """Return 1 for the highest score, 1/2 for the second, 1/3 for the third; a score of 0 has no rank.

    Equal scores share the best of their ranks.
    """
    ranks: dict[float, int] = {}
    for rank, score in enumerate(sorted(filter(None, scores.values()), reverse=True), 1):
        ranks.setdefault(score, rank)
    return {seq: 1 / ranks[score] for seq, score in scores.items() if score}


def _score_neighbours(
    own: Mapping[int, float], texts: Mapping[int, TextProperties], following: Mapping[int, int]
) -> tuple[dict[int, float], dict[int, float]]:
    """Return, by message, the sum of the neighbours' scores, and the score of a question right before it.

    A neighbour's score counts less with its distance, see `FADING`.

    `following` maps a message to the next message of its session. Messages are named by log position.
    """
    near, answers = dict.fromkeys(own, 0.0), dict.fromkeys(own, 0.0)
    for seq in own:
        other, share = following.get(seq), FADING
        if other is not None and texts[seq].is_question:
            answers[other] = own[seq]
        for _ in range(REACH):
            if other is None:
                break
            near[other] += share * own[seq]
            near[seq] += share * own[other]
            other, share = following.get(other), share * FADING
    return near, answers


def _average_matches(
    seqs: Iterable[int], matches: Mapping[int, float], following: Mapping[int, int]
) -> dict[int, float]:
    """Return the mean match of each message, the two before it and the one after it in its session."""
    before = {later: seq for seq, later in following.items()}

    def average_passage(seq: int) -> float:
        previous = before.get(seq)
        passage = [seq, previous, None if previous is None else before.get(previous), following.get(seq)]
        found = [matches.get(each, 0.0) for each in passage if each is not None]
        return sum(found) / len(found)

    return {seq: average_passage(seq) for seq in seqs}


def _score_sessions(own: Mapping[int, float], session_of: Mapping[int, int]) -> dict[int, float]:
    hits: dict[int, list[float]] = {}
    for seq, score in own.items():
        hits.setdefault(session_of[seq], []).append(score)
    sums = {
        session: sum(
            score * FADING**place for place, score in enumerate(sorted(scores, reverse=True)[:SESSION_HITS])
        )
        for session, scores in hits.items()
    }
    best = max(sums.values(), default=0.0) or 1.0
    return {session: total / best for session, total in sums.items()}


def _find_speakers(messages: Collection[VisibleMessage], intent: QueryIntent) -> frozenset[str]:
    """Return the speakers whom the query names; without names, the roles that `I` and `you` refer to."""
    named = intent.find_names({each.name for each in messages if each.name})
    if named:
        return named
    roles = (("user", intent.is_about_user), ("assistant", intent.is_about_assistant))
    return frozenset(role for role, is_meant in roles if is_meant)
