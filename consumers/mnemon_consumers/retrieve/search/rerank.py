"""Reranking of messages by their neighbours, speakers and dates. No I/O, no clock.

A message alone has little content: the next message has the answer to a question, and the message before it
names the topic. So each message gets a share of the scores of its neighbours and of its session.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import Final, NamedTuple

from mnemon_consumers.retrieve.search.query_intent import QueryIntent, speaks_of_others, tells_time
from mnemon_infra.database.messages.lookup import Surroundings, VisibleMessage

SESSION_GAP: Final = timedelta(hours=3)
"""Pause between messages that ends a session."""

FADING: Final = 0.5
"""Share of a neighbour's score: half for the next message, a quarter for the message after it, and so on."""

ANSWER: Final = 1.0
"""Share of a question's score that the message after it gets."""

REACH: Final = 4
"""Maximum distance, in messages, between neighbours."""

SESSION: Final = 0.5
"""Maximum score that a session adds to its messages."""

SESSION_HITS: Final = 5
"""Number of best messages of a session that make up its score; each has half the weight of the better one."""

NAMED: Final = 1.7
"""Factor for messages of a speaker whom the query names."""

NAMED_ON_OTHERS: Final = 1.1
"""Factor, instead of `NAMED`, for such messages that are about the person addressed."""

DATED: Final = 1.5
"""Factor for messages sent in a period that the query names; it falls to 1 with the distance in time."""

TIMED: Final = 1.2
"""Factor for messages that name a time, if the query asks for one."""


_QUESTION_MARKS: Final = "?\uff1f\u061f"


class RankedMessage(NamedTuple):
    """A message and its score; `parts` has the components of the score."""

    message: VisibleMessage
    score: float
    parts: dict[str, float]


def rerank_messages(
    scores: Mapping[str, float], around: Surroundings, intent: QueryIntent, limit: int
) -> list[RankedMessage]:
    """Return the found messages and their neighbours, best first.

    A message that has only its session in common with the found messages is left out.

    Args:
        scores: scores of the messages that were found, by event id.
        around: the messages of `scores` that may be shown, and their neighbours.
        intent: the query.
        limit: maximum number of messages to return.
    """
    messages = [around.messages[seq] for seq in sorted(around.messages)]
    own = {each.seq: scores.get(each.event_id, 0.0) for each in messages}
    session_of = _map_sessions(messages)
    questions = {each.seq for each in messages if own[each.seq] and _is_question(each.content)}
    near = _score_neighbours(own, questions, around.following, session_of)
    sessions = _score_sessions(own, session_of)
    named = _find_speakers(messages, intent)
    sums = [own[each.seq] + near[each.seq] + SESSION * sessions[session_of[each.seq]] for each in messages]
    most = [_bound_factors(each, intent, named) for each in messages]
    bounds = [each * math.prod(factors.values()) for each, factors in zip(sums, most, strict=True)]

    def ranked(place: int) -> RankedMessage:
        message = messages[place]
        factors = _compute_factors(message, most[place])
        session = SESSION * sessions[session_of[message.seq]]
        parts = {"found": own[message.seq], "near": near[message.seq], "session": session, **factors}
        return RankedMessage(message, sums[place] * math.prod(factors.values()), parts)

    is_match = [own[each.seq] + near[each.seq] > 0 for each in messages]
    return list(islice(_rank_lazily(bounds, is_match, ranked), limit))


def _rank_lazily(
    bounds: Sequence[float], is_match: Sequence[bool], ranked: Callable[[int], RankedMessage]
) -> Iterator[RankedMessage]:
    """Yield messages by descending score, newer first among equals; rank only messages that may be next."""
    waiting: list[tuple[float, int, RankedMessage | None]]
    waiting = [(-bound, -place, None) for place, bound in enumerate(bounds) if is_match[place]]
    heapify(waiting)
    while waiting:
        _, place, known = waiting[0]
        if known is not None:
            heappop(waiting)
            yield known
        else:
            known = ranked(-place)
            heapreplace(waiting, (-known.score, place, known))


def _map_sessions(messages: list[VisibleMessage]) -> dict[int, int]:
    """Map each message to its session, which is the log position of its first known message."""
    latest: dict[str, tuple[int, datetime]] = {}
    session_of = {}
    for message in messages:
        session, before = latest.get(message.conversation, (message.seq, message.sent_at))
        if abs(message.sent_at - before) > SESSION_GAP:
            session = message.seq
        latest[message.conversation] = session, message.sent_at
        session_of[message.seq] = session
    return session_of


def _is_question(text: str) -> bool:
    return any(mark in text for mark in _QUESTION_MARKS)


def _score_neighbours(
    own: Mapping[int, float],
    questions: Collection[int],
    following: Mapping[int, int],
    session_of: Mapping[int, int],
) -> dict[int, float]:
    near = dict.fromkeys(own, 0.0)
    for seq in own:
        other, share = following.get(seq), FADING
        for _ in range(REACH):
            if other is None or session_of[other] != session_of[seq]:
                break
            near[other] += (ANSWER if share == FADING and seq in questions else share) * own[seq]
            near[seq] += share * own[other]
            other, share = following.get(other), share * FADING
    return near


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


def _find_speakers(messages: list[VisibleMessage], intent: QueryIntent) -> frozenset[str]:
    """Return the speakers whom the query names; without names, the roles that `I` and `you` refer to."""
    names = {each.name for each in messages if each.name}
    named = frozenset(name for name in names if intent.has_name(name))
    if named:
        return named
    roles = (("user", intent.of_self), ("assistant", intent.of_other))
    return frozenset(role for role, is_meant in roles if is_meant)


def _bound_factors(message: VisibleMessage, intent: QueryIntent, named: frozenset[str]) -> dict[str, float]:
    """Return upper bounds of a message's factors, without reading its text."""
    factors = {}
    if message.name in named or message.role in named:
        factors["speaker"] = NAMED
    closeness = max((each.measure_closeness(message.sent_at) for each in intent.periods), default=0.0)
    if closeness > 0:
        factors["date"] = DATED**closeness
    if intent.for_time:
        factors["time"] = TIMED
    return factors


def _compute_factors(message: VisibleMessage, most: Mapping[str, float]) -> dict[str, float]:
    factors = dict(most)
    if "speaker" in factors and speaks_of_others(message.content):
        factors["speaker"] = NAMED_ON_OTHERS
    if "time" in factors and not tells_time(message.content):
        del factors["time"]
    return factors
