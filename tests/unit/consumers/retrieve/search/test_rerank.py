"""Messages ranked by what stands around them, who says them, and when."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from mnemon_consumers.retrieve.search.query_intent import QueryIntent
from mnemon_consumers.retrieve.search.rerank import RankedMessage, rerank_messages
from mnemon_contracts.events.chat import Role
from mnemon_infra.database.messages.lookup import Surroundings, VisibleMessage

BEGAN = datetime(2024, 5, 8, 12, tzinfo=UTC)


def said(
    seq: int,
    content: str = "something",
    *,
    name: str | None = None,
    role: Role = "user",
    conversation: str = "c",
    minutes: float | None = None,
) -> VisibleMessage:
    sent_at = BEGAN + timedelta(minutes=seq if minutes is None else minutes)
    return VisibleMessage(seq, f"e{seq}", role, content, name, sent_at, conversation)


def around(*messages: VisibleMessage, together: bool = True) -> Surroundings:
    following = {one.seq: other.seq for one, other in pairwise(messages)} if together else {}
    return Surroundings({each.seq: each for each in messages}, following)


def places(ranked: list[RankedMessage]) -> list[int]:
    return [each.message.seq for each in ranked]


def test_neighbours_share_the_score_and_the_further_the_less() -> None:
    ranked = rerank_messages({"e3": 1.0}, around(*map(said, range(1, 9))), QueryIntent("?"), 100)

    near = {each.message.seq: each.parts["near"] for each in ranked}
    assert near == {1: 0.25, 2: 0.5, 3: 0.0, 4: 0.5, 5: 0.25, 6: 0.125, 7: 0.0625}
    assert 8 not in near, "it shares no more than the session with what was found"
    assert places(ranked)[:3] == [3, 4, 2], "of equals, the newer"


def test_answer_gets_the_whole_score_of_its_question() -> None:
    messages = said(1), said(2, "And the dog, what is it called?"), said(3, "Rex."), said(4)
    ranked = rerank_messages({"e2": 1.0}, around(*messages), QueryIntent("?"), 100)

    assert {each.message.seq: each.parts["near"] for each in ranked} == {1: 0.5, 2: 0.0, 3: 1.0, 4: 0.25}
    assert places(ranked)[:2] == [3, 2], "of equals, the newer"


def test_nothing_is_shared_across_silence_or_where_it_is_unknown_what_follows() -> None:
    silent = around(said(1, minutes=0), said(2, minutes=1), said(3, minutes=600))
    assert {
        each.message.seq: each.parts["near"]
        for each in rerank_messages({"e2": 1.0}, silent, QueryIntent("?"), 100)
    } == {
        1: 0.5,
        2: 0.0,
    }
    apart = around(said(1), said(2), together=False)
    ranked = rerank_messages({"e1": 1.0}, apart, QueryIntent("?"), 100)
    assert ranked
    assert all(each.parts["near"] == 0 for each in ranked)


def test_the_session_with_the_better_hits_lifts_all_that_was_said_in_it() -> None:
    messages = [said(1), said(2), said(3, conversation="other"), said(4, minutes=600)]
    ranked = rerank_messages(
        {"e1": 0.8, "e2": 0.4, "e3": 0.5, "e4": 0.5}, around(*messages, together=False), QueryIntent("?"), 100
    )

    sessions = {each.message.seq: each.parts["session"] for each in ranked}
    assert sessions[1] == sessions[2] == 0.5
    assert sessions[3] == sessions[4] == pytest.approx(0.25)


def test_message_of_the_named_speaker_ranks_first() -> None:
    messages = [said(1, name="Anna"), said(2, name="Boris"), said(3, "You did well!", name="Anna")]
    ranked = rerank_messages(
        {"e1": 0.5, "e2": 0.7, "e3": 0.5},
        around(*messages, together=False),
        QueryIntent("What does Anna do?"),
        100,
    )

    assert places(ranked) == [1, 2, 3]
    assert [each.parts.get("speaker") for each in ranked] == [1.7, None, 1.1]


def test_between_two_i_is_the_user_and_you_the_assistant() -> None:
    messages = [said(1), said(2, role="assistant")]
    scores = {"e1": 0.5, "e2": 0.6}

    def first(query: str) -> int:
        return places(rerank_messages(scores, around(*messages, together=False), QueryIntent(query), 100))[0]

    assert first("What did I say?") == 1
    assert first("Что я говорил?") == 1
    assert first("What did you say?") == 2
    assert first("What was said?") == 2


def test_a_date_that_is_named_and_a_time_that_is_asked_for() -> None:
    messages = [said(1), said(2, "a thing, last week"), said(3, minutes=60 * 24 * 30)]
    scores = {"e1": 0.5, "e2": 0.5, "e3": 0.5}
    ranked = rerank_messages(
        scores, around(*messages, together=False), QueryIntent("When was it, on 7 June?", BEGAN), 100
    )

    factors = {each.message.seq: (each.parts.get("date"), each.parts.get("time")) for each in ranked}
    assert factors == {1: (None, None), 2: (None, 1.2), 3: (1.5, None)}
    assert places(ranked) == [3, 2, 1]


def test_message_near_a_named_period_gets_part_of_the_factor() -> None:
    messages = [said(1, minutes=-60 * 24 * 30), said(2, minutes=-60 * 48), said(3, minutes=-60 * 24)]
    scores = {"e1": 0.5, "e2": 0.5, "e3": 0.5}
    ranked = rerank_messages(
        scores, around(*messages, together=False), QueryIntent("What did I do yesterday?", BEGAN), 100
    )

    factors = {each.message.seq: each.parts.get("date") for each in ranked}
    assert factors[1] is None
    assert 1 < (factors[2] or 0) < 1.5
    assert factors[3] == 1.5
    assert places(ranked) == [3, 2, 1]


def test_empty_result_is_not_ranked() -> None:
    assert rerank_messages({}, Surroundings({}, {}), QueryIntent("?"), 100) == []
