"""Events of a window's answer: the facts that it proposes, and the end of the window."""

from collections.abc import Sequence
from typing import Any

import pytest

from mnemon_consumers.extract.answer_parser import ParsedAnswer, ProposedFact
from mnemon_consumers.extract.answers.answer_events import build_answered_event, build_proposals
from mnemon_consumers.extract.prompt import PROMPT_VERSION
from mnemon_contracts.events.memory import FactProposedV1, WindowAnsweredV1
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.database.windows.window_repository import StoredWindow

WINDOW = StoredWindow("acme", "u.1", "c1", from_seq=10, to_seq=20)


def extracted(*facts: dict[str, Any], repaired: bool = False) -> ParsedAnswer:
    return ParsedAnswer(tuple(ProposedFact(**fact) for fact in facts), repaired)


def opened(events: Sequence[LogEvent]) -> tuple[list[FactProposedV1], WindowAnsweredV1]:
    *proposed, end = events
    assert {event.subject for event in proposed} <= {"memory.acme.u%2E1.fact.proposed.v1"}
    assert end.subject == "memory.acme.u%2E1.window.answered.v1"
    return [FactProposedV1.parse(event.body) for event in proposed], WindowAnsweredV1.parse(end.body)


def test_facts_are_proposed_with_their_whole_lineage() -> None:
    found = extracted(
        {
            "text": "Lives in York",
            "memory_type": "user_fact",
            "importance": 7,
            "tier": "profile",
            "expires_at": "2027-01-01",
            "supersedes": "pf_001",
            "sources": [9, 10, 15, 20, 21],
            "names": ["York"],
        },
        {"text": "Likes tea"},
        repaired=True,
    )
    events = build_proposals(WINDOW, found, "openai/gpt-5-mini", "b1")
    (first, second), end = opened(events)
    assert first.model_dump(mode="json", exclude_none=True) == {
        "text": "Lives in York",
        "kind": "user_fact",
        "tier": "profile",
        "importance": 7,
        "expires_at": "2027-01-01T00:00:00Z",
        "supersedes": "pf_001",
        "names": ["York"],
        "lineage": {
            "sources": [10, 15, 20],
            "conversation": "c1",
            "extractor": "extract",
            "prompt_version": PROMPT_VERSION,
            "model": "openai/gpt-5-mini",
            "batch_id": "b1",
            "answer": events[-1].id,
        },
    }
    assert (second.kind, second.tier, second.importance) == (None, None, None)
    assert (end.outcome, end.proposed, end.repaired, end.batch_id) == ("proposed", 2, True, "b1")
    assert (end.conversation, end.from_seq, end.to_seq) == ("c1", 10, 20)


def test_answer_without_facts_ends_the_window() -> None:
    proposed, end = opened(build_proposals(WINDOW, extracted(), "offline/rules", None))
    assert (proposed, end.outcome, end.proposed, end.repaired) == ([], "nothing", 0, False)


def test_second_answer_for_a_window_has_equal_event_ids() -> None:
    found = extracted({"text": "Lives in York"}, {"text": "Likes tea"})
    batch = build_proposals(WINDOW, found, "openai/gpt-5-mini", "b1")
    online = build_proposals(WINDOW, found, "openai/gpt-5-mini", None)
    assert [event.id for event in batch] == [event.id for event in online]
    assert build_answered_event(WINDOW, "dead").id == batch[-1].id
    assert len({event.id for event in batch}) == 3


@pytest.mark.parametrize("field", ["tenant", "user", "conversation", "from_seq", "to_seq"])
def test_another_window_has_other_event_ids(field: str) -> None:
    change: dict[str, Any] = {field: 15 if field.endswith("seq") else "other"}
    other = WINDOW._replace(**change)
    found = extracted({"text": "Lives in York"})
    ids = [{event.id for event in build_proposals(each, found, "m/n", None)} for each in (WINDOW, other)]
    assert ids[0].isdisjoint(ids[1])
