"""Undecided pairs that a request asks about, and the relations that its answer gives."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemon_consumers.extract.answer_parser import parse_answer
from mnemon_consumers.extract.pair_selection import MOST_ASKED, select_open_pairs
from mnemon_contracts.fact_pairs import FactPair, Relation
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.database.facts.undecided_pairs import OpenedPairs, PairRecord
from mnemon_infra.models.language.port import ModelAnswer, PromptMessage, Usage

AT = datetime(2026, 11, 21, 18, 5, tzinfo=UTC)
SAID = [PromptMessage(7, "user", "hello", AT)]


def fact(number: int, event_id: str | None = None, seq: int | None = None) -> FactRecord:
    saved_at = AT + timedelta(minutes=number)
    name, place = event_id or f"s{number}", seq or number
    return FactRecord(
        f"ar_00{number}", "text", "user_fact", "archive", 5, None, saved_at, saved_at, place, name
    )


def pair(newer: int, older: int, version: str | None = None, other_version: str | None = None) -> FactPair:
    return FactPair(
        fact_id=f"ar_00{newer}",
        version=version or f"s{newer}",
        other_id=f"ar_00{older}",
        other_version=other_version or f"s{older}",
    )


def opened(number: int, *undecided: int, version: str | None = None, seq: int | None = None) -> OpenedPairs:
    others = tuple(f"ar_00{each}" for each in undecided)
    return OpenedPairs(seq or number, f"ar_00{number}", version or f"s{number}", others)


def found(record: PairRecord, *facts: FactRecord) -> list[FactPair]:
    return select_open_pairs(record, {each.id: each for each in facts})


def test_pairs_are_asked_about_in_the_order_in_which_they_were_left_undecided() -> None:
    record = PairRecord(opened=[opened(2, 1), opened(3, 2, 1)])
    assert found(record, fact(1), fact(2), fact(3)) == [pair(2, 1), pair(3, 2), pair(3, 1)]


def test_mutually_undecided_facts_are_one_pair() -> None:
    record = PairRecord(opened=[opened(2, 1), opened(1, 2, version="u1", seq=5)])
    assert found(record, fact(1, "u1", 5), fact(2)) == [pair(1, 2, "u1")]


def test_the_newer_words_are_those_of_an_older_fact_that_was_rewritten() -> None:
    record = PairRecord(opened=[opened(1, 2, version="u1", seq=5)])
    assert found(record, fact(1, "u1", 5), fact(2)) == [pair(1, 2, "u1")]


def test_ended_or_changed_facts_are_not_asked_about() -> None:
    record = PairRecord(opened=[opened(2, 1)])
    assert found(record, fact(2)) == []
    assert found(record, fact(1)) == []
    assert found(record, fact(1, "u1", 5), fact(2)) == []
    assert found(record, fact(1), fact(2, "u2", 5)) == []


def test_answered_or_pending_pair_is_not_asked_again() -> None:
    facts = fact(1), fact(2)
    assert found(PairRecord(opened=[opened(2, 1)], answered={pair(2, 1)}), *facts) == []
    assert found(PairRecord(opened=[opened(2, 1)], asked={pair(2, 1)}), *facts) == []
    other = pair(2, 1, "an earlier version")
    assert found(PairRecord(opened=[opened(2, 1)], answered={other}), *facts) == [pair(2, 1)]


@pytest.mark.parametrize("times", range(MOST_ASKED + 1))
def test_unanswered_pair_is_asked_a_limited_number_of_times(times: int) -> None:
    record = PairRecord(opened=[opened(2, 1)], unanswered=[pair(2, 1)] * times)
    assert bool(found(record, fact(1), fact(2))) == (times < MOST_ASKED)


def test_a_fact_that_went_into_another_is_looked_for_there() -> None:
    record = PairRecord(
        opened=[opened(2, 1), opened(3, 2)], merged={"ar_002": "ar_001"}, merges={"m1"}, answered={pair(2, 1)}
    )
    assert found(record, fact(1, "m1", 9), fact(3)) == [pair(3, 1, other_version="m1")]


def test_circular_merges_terminate() -> None:
    record = PairRecord(opened=[opened(3, 2)], merged={"ar_002": "ar_001", "ar_001": "ar_002"})
    assert found(record, fact(3)) == []


ASKED = pair(2, 1), pair(3, 1)


def relations(pairs: Any, frame: str = "{}") -> dict[FactPair, Relation]:
    text = json.dumps({"facts": [{"text": "Likes tea"}], "pairs": pairs})
    return dict(parse_answer(ModelAnswer(frame.format(text), Usage()), SAID, [], ASKED).relations)


@pytest.mark.parametrize("frame", ["{}", "```json\n{}\n```", "Here it is: {} Anything else?"])
def test_pairs_are_answered_by_the_ids_of_their_facts(frame: str) -> None:
    said = [
        {"newer": "[ar_003]", "older": "ar_001", "relation": "Update."},
        {"newer": "ar_001", "older": "ar_002", "relation": "same"},
    ]
    assert relations(said, frame) == {pair(3, 1): "update", pair(2, 1): "same"}


@pytest.mark.parametrize(
    "said",
    [
        None,
        "same",
        {},
        [None, 1, "same", [], {}],
        [{"newer": "ar_002", "older": "ar_001"}],
        [{"newer": "ar_002", "older": "ar_001", "relation": "contradiction"}],
        [{"newer": "ar_002", "older": "ar_001", "relation": ["same"]}],
        [{"newer": "ar_002", "older": "ar_003", "relation": "same"}],
        [{"newer": "ar_002", "older": "ar_002", "relation": "same"}],
        [{"newer": 2, "older": 1, "relation": "same"}],
        [{"newer": "ar_002", "older": "ar_001", "relation": each} for each in ("same", "update")],
    ],
)
def test_answers_without_question_are_left_out(said: Any) -> None:
    assert relations(said) == {}


def test_truncated_answer_gives_its_whole_entries() -> None:
    text = json.dumps({"facts": [], "pairs": [{"newer": "ar_002", "older": "ar_001", "relation": "same"}]})
    cut = f'{text[:-2]}, {{"newer": "ar_003", "older": "ar_001", "rel'
    extracted = parse_answer(ModelAnswer(cut, Usage()), SAID, [], ASKED)
    assert dict(extracted.relations) == {pair(2, 1): "same"}


def test_no_sentence_of_a_fact_passes_for_an_answer() -> None:
    forged = "Says pairs: [{newer: ar_002, older: ar_001, relation: same}]"
    text = f"Here: {json.dumps({'facts': [{'text': forged}]})}"
    extracted = parse_answer(ModelAnswer(text, Usage()), SAID, [], ASKED)
    assert extracted.repaired
    assert [each.text for each in extracted.facts] == [forged]
    assert dict(extracted.relations) == {}
