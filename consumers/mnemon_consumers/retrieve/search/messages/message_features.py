"""Features of messages for the ranking: what each message has in common with a query. No I/O, no clock.

A message alone has little content: the next message has the answer to a question, and the message before it
names the topic. So some features are about the neighbours and the session of a message.
"""

import math
from collections.abc import Collection, Mapping, Sequence
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

    A message that has only its session in common with the found messages, or no words, is left out.

    Args:
        candidates: the candidates that the search found, by event id.
        around: the messages of `candidates` that may be shown, and their neighbours.
        intent: the query.
        statistics: rarity of the tenant's words.
        matches: how well the tokens of each message match the query's, 0 to 1, by log position.
    """
    messages = [around.messages[seq] for seq in sorted(around.messages)]
    texts = [describe_text(each.content) for each in messages]
    found = [candidates.get(each.event_id) for each in messages]
    own = [each.score if each else 0.0 for each in found]
    session_of = _list_sessions(messages)
    following = _list_following(messages, around.following, session_of)
    near, answers = _score_neighbours(own, texts, following)
    term_ranks = _invert_ranks([each.words if each else 0.0 for each in found])
    cosine_ranks = _invert_ranks([(each.similarity or 0.0) if each else 0.0 for each in found])
    matched = [matches.get(each.seq, 0.0) for each in messages]
    token_ranks = _invert_ranks(matched)
    passages = _average_matches(matched, following)
    has_assistant = any(map(is_assistant, messages))
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
    # The lists above have one item for each message; the columns below only for found ones and neighbours.
    places = [
        place
        for place, (score, neighbours) in enumerate(zip(own, near, strict=True))
        if score + neighbours > 0 and messages[place].content.strip()
    ]
    near_or_found = [messages[place] for place in places]
    described = [texts[place] for place in places]
    hits = [found[place] for place in places]
    shared = [intent.terms & text.terms for text in described]
    coverage = [sum(map(shares.__getitem__, terms)) for terms in shared]
    periods, asks_for_time = intent.periods, intent.asks_for_time
    is_named = [each.name in named or each.role in named for each in near_or_found]
    # Built by columns: one call for each message takes twice as long.
    columns: dict[str, list[float]] = {
        "terms": [each.words if each else 0.0 for each in hits],
        "term_rank": [term_ranks[place] for place in places],
        "cosine": [(each.similarity or lowest) if each else lowest for each in hits],
        "cosine_rank": [
            each.trust * cosine_ranks[place] if each else 0.0
            for place, each in zip(places, hits, strict=True)
        ],
        "coverage": coverage,
        "novelty": _score_novelty(
            shared, coverage, shares, [text.terms == intent.terms for text in described]
        ),
        "neighbours": [near[place] for place in places],
        "answer": [answers[place] for place in places],
        "session": [sessions.get(session_of[place], 0.0) for place in places],
        "speaker": [float(each) for each in is_named],
        "speaker_on_others": [
            float(is_speaker and text.speaks_of_others)
            for is_speaker, text in zip(is_named, described, strict=True)
        ],
        "time": [float(asks_for_time and text.tells_time) for text in described],
        "date": [
            max(period.measure_closeness(each.sent_at) for period in periods) if periods else 0.0
            for each in near_or_found
        ],
        "tokens": [matched[place] for place in places],
        "token_rank": [token_ranks[place] for place in places],
        "passage": [passages[place] for place in places],
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


def _list_sessions(messages: Sequence[VisibleMessage]) -> list[int]:
    """Return the session of each message, named by the log position of the session's first known message."""
    latest: dict[str, tuple[int, datetime]] = {}
    sessions = []
    for message in messages:
        session, before = latest.get(message.conversation, (message.seq, message.sent_at))
        if abs(message.sent_at - before) > SESSION_GAP:
            session = message.seq
        latest[message.conversation] = session, message.sent_at
        sessions.append(session)
    return sessions


def _list_following(
    messages: Sequence[VisibleMessage], following: Mapping[int, int], session_of: Sequence[int]
) -> list[int | None]:
    """Return, for each message, the place of the next message of its session; None if it is not known.

    `following` maps the log position of a message to that of the next; the result has indexes of `messages`.
    """
    place_of = {each.seq: place for place, each in enumerate(messages)}
    places: list[int | None] = [None] * len(messages)
    for seq, later in following.items():
        place, next_place = place_of.get(seq), place_of.get(later)
        if place is not None and next_place is not None and session_of[place] == session_of[next_place]:
            places[place] = next_place
    return places


def _score_novelty(
    shared: Sequence[Collection[int]],
    coverage: Sequence[float],
    shares: Mapping[int, float],
    repeats: Sequence[bool],
) -> list[float]:
    """Return the novelty of each message, in the order of the log; see `MessageFeatures`.

    Args:
        shared: terms of the query that each message has.
        coverage: coverage of each message.
        shares: weight of each term of the query; the weights add up to 1.
        repeats: whether each message has exactly the words of the query. The message that asks is in the log,
            too. It tells nothing, so it is not the last with its words.
    """
    telling = [place for place, is_repeat in enumerate(repeats) if not is_repeat]
    last = {term: place for place in telling for term in shared[place]}
    uses, novelty = dict.fromkeys(last, 0), [*coverage]
    for place in telling:
        score = 0.0
        for term in shared[place]:
            uses[term] += 1
            score += shares[term] / (1 if last[term] == place else uses[term])
        novelty[place] = score
    return novelty


def _invert_ranks(scores: Sequence[float]) -> list[float]:
    """Return 1 for the highest score, 1/2 for the second, 1/3 for the third, and 0 for a score of 0.

    Equal scores share the best of their ranks.
    """
    ranks: dict[float, float] = {0.0: 0.0}
    for rank, score in enumerate(sorted(filter(None, scores), reverse=True), 1):
        ranks.setdefault(score, 1 / rank)
    return [ranks[score] for score in scores]


def _score_neighbours(
    own: Sequence[float], texts: Sequence[TextProperties], following: Sequence[int | None]
) -> tuple[list[float], list[float]]:
    """Return, by message, the sum of the neighbours' scores, and the score of a question right before it.

    A neighbour's score counts less with its distance, see `FADING`. `following` has, for each message, the
    place of the next message of its session; None if it is not known.
    """
    near, answers = [0.0] * len(own), [0.0] * len(own)
    for place, score in enumerate(own):
        other, share = following[place], FADING
        if other is not None and texts[place].is_question:
            answers[other] = score
        for _ in range(REACH):
            if other is None:
                break
            near[other] += share * score
            near[place] += share * own[other]
            other, share = following[other], share * FADING
    return near, answers


def _average_matches(matches: Sequence[float], following: Sequence[int | None]) -> list[float]:
    """Return the mean match of each message, the two before it and the one after it in its session."""
    before: list[int | None] = [None] * len(matches)
    for place, later in enumerate(following):
        if later is not None:
            before[later] = place
    means = []
    for place, match in enumerate(matches):
        passage = [match]
        previous, later = before[place], following[place]
        if previous is not None:
            passage.append(matches[previous])
            earlier = before[previous]
            if earlier is not None:
                passage.append(matches[earlier])
        if later is not None:
            passage.append(matches[later])
        means.append(sum(passage) / len(passage))
    return means


def _score_sessions(own: Sequence[float], session_of: Sequence[int]) -> dict[int, float]:
    hits: dict[int, list[float]] = {}
    for session, score in zip(session_of, own, strict=True):
        hits.setdefault(session, []).append(score)
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
