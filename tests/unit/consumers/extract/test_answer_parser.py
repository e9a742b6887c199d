"""Parsing of a model's answer: complete and valid facts are kept, all other parts are left out."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemon_consumers.extract.answer_parser import (
    MOST_ANSWER_CHARACTERS,
    MOST_CHARACTERS,
    MOST_FACTS,
    ParsedAnswer,
    UnreadableAnswer,
    parse_answer,
)
from mnemon_contracts.events.memory import MAX_NAMES, FactProposedV1
from mnemon_infra.models.language.port import ModelAnswer, PromptFact, PromptMessage, Usage

AT = datetime(2026, 11, 21, 18, 5, tzinfo=UTC)
SAID = [PromptMessage(seq, "user", f"message {seq}", AT) for seq in (11, 14, 20)]
KNOWN = [PromptFact("pf_001", "Lives in Leeds")]
WHOLE = {
    "text": "Lives in York",
    "memory_type": "user_fact",
    "importance": 7,
    "tier": "profile",
    "expires_at": None,
    "supersedes": "pf_001",
    "sources": [2],
    "names": ["York"],
}


def reading(text: str) -> ParsedAnswer:
    return parse_answer(ModelAnswer(text, Usage()), SAID, KNOWN)


def answered(*facts: Any) -> ParsedAnswer:
    return reading(json.dumps({"facts": facts}))


def texts(extracted: ParsedAnswer) -> list[str]:
    return [fact.text for fact in extracted.facts]


def test_fact_in_the_requested_form_is_parsed() -> None:
    extracted = answered(WHOLE)
    assert (extracted.repaired, extracted.left_out) == (False, 0)
    (fact,) = extracted.facts
    assert fact.model_dump() == WHOLE | {"sources": (14,), "names": ("York",)}


def test_empty_list_of_facts_is_an_answer() -> None:
    assert answered() == ParsedAnswer(())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I found nothing to remember.",
        "I found [no] facts.",
        "null",
        "42",
        "{}",
        '{"facts": null}',
        '{"facts": {}}',
        '{"error": "overloaded"}',
        '["User likes tea"]',
        '{"facts"',
        '{"facts": [',
        '{"facts": [{"text": "The user lives in',
        "[[[[",
        "[" * 90_000,
        '{"facts":' * 10_000,
        '{"facts": []}' + " " * MOST_ANSWER_CHARACTERS,
        "9" * 50_000,
    ],
)
def test_answer_without_a_list_of_facts_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableAnswer) as refused:
        reading(text)
    assert "The user lives" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"facts": [{"text": "Lives in York"}]}\n```',
        'Here they are:\n{"facts": [{"text": "Lives in York"}]}\nI hope this helps!',
        '{"facts": [{"text": "Lives in York"}]}\n\nNote: I left [1] and {2} out.',
        "{'facts': [{'text': 'Lives in York'},]}",
        '{"facts": [{"text": "Lives in York"}',
        '{"facts": [{"text": "Lives in York"}, {"text": "Likes te',
        '{"facts": [{"text": "Lives in York"}, {"text": "Likes tea", "importance',
        '{"facts": [{"text": "Lives in York"}, {',
        '{"facts": [{"text": "Lives in York"},',
        '[{"text": "Lives in York"}, {"text": "Does not like',
    ],
)
def test_malformed_json_is_repaired_and_truncated_parts_dropped(text: str) -> None:
    extracted = reading(text)
    assert texts(extracted) == ["Lives in York"]
    assert extracted.repaired


def test_thoughts_before_the_answer_are_skipped() -> None:
    extracted = reading(
        '<think>Maybe {"facts": [{"text": "Is rich"}]}?</think>\n{"facts": [{"text": "Is ok"}]}'
    )
    assert (texts(extracted), extracted.repaired) == (["Is ok"], False)


def test_quotation_mark_within_a_fact_is_repaired() -> None:
    assert texts(reading('{"facts": [{"text": "Is called "Bob" by his friends", "importance": 5}]}')) == [
        'Is called "Bob" by his friends'
    ]


@pytest.mark.parametrize("text", ['[{"text": "Lives in York"}]', '{"facts": ["Lives in York"], "more": 1}'])
def test_other_unambiguous_shapes_are_parsed(text: str) -> None:
    extracted = reading(text)
    assert (texts(extracted), extracted.repaired) == (["Lives in York"], False)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        [],
        {},
        {"text": None},
        {"text": ""},
        {"text": " \n "},
        {"text": "123 - 456"},
        {"text": ["Lives in York"]},
        {"text": "Lives in \0 York"},
        {"text": "Lives in \ud800 York"},
        {"text": "a" * (MOST_CHARACTERS + 1)},
    ],
)
def test_invalid_fact_spoils_no_other(bad: Any) -> None:
    extracted = answered(WHOLE, bad, WHOLE | {"text": "Likes tea"})
    assert texts(extracted) == ["Lives in York", "Likes tea"]
    assert (extracted.left_out, extracted.repaired) == (1, False)


@pytest.mark.parametrize(
    ("field", "given", "mended"),
    [
        ("text", "  Lives\nin  York ", "Lives in York"),
        ("memory_type", "hobby", None),
        ("memory_type", ["event"], None),
        ("importance", 0, 1),
        ("importance", -5, 1),
        ("importance", 99, 10),
        ("importance", 10**20, 10),
        ("importance", 10**400, None),
        ("importance", "8", 8),
        ("importance", 7.6, 8),
        ("importance", "high", None),
        ("importance", True, None),
        ("importance", [5], None),
        ("importance", None, None),
        ("tier", "gold", None),
        ("tier", 3, None),
        ("expires_at", "2026-12-01", datetime(2026, 12, 1, tzinfo=UTC)),
        ("expires_at", "2026-12-01T10:00:00+03:00", datetime(2026, 12, 1, 7, tzinfo=UTC)),
        ("expires_at", "next week", None),
        ("expires_at", "0000-00-00", None),
        ("expires_at", 1800000000, None),
        ("supersedes", "pf_002", None),
        ("supersedes", "[pf_001]", "pf_001"),
        ("supersedes", 1, None),
        ("supersedes", "", None),
        ("sources", [1, 3, 1], (11, 20)),
        ("sources", [0, 4, -1, 2, True, "1", 10**30], (14,)),
        ("sources", [], (11, 14, 20)),
        ("sources", "1", (11, 14, 20)),
        ("sources", None, (11, 14, 20)),
        ("names", ["york", " York ", "York", "Leeds", "", 7, None], ("york", "York")),
        ("names", "York", ()),
        ("names", None, ()),
    ],
)
def test_invalid_field_is_repaired_or_dropped(field: str, given: Any, mended: Any) -> None:
    (fact,) = answered(WHOLE | {field: given}).facts
    assert getattr(fact, field) == mended


def test_unknown_fields_are_ignored() -> None:
    (fact,) = answered({"text": "Lives in York", "id": "pf_001", "lineage": {"model": "x"}}).facts
    assert fact.text == "Lives in York"


def test_first_names_of_a_fact_are_kept_up_to_the_limit_of_the_contract() -> None:
    named = [f"Anna {number:02}" for number in range(MAX_NAMES + 1)]
    (fact,) = answered(WHOLE | {"text": f"Knows {', '.join(named)}", "names": named}).facts
    assert fact.names == tuple(named[:MAX_NAMES])


def test_answer_is_limited_to_fifty_facts() -> None:
    extracted = answered(*(WHOLE | {"text": f"Has {number} cats"} for number in range(MOST_FACTS + 20)))
    assert texts(extracted) == [f"Has {number} cats" for number in range(MOST_FACTS)]
    assert extracted.left_out == 20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
FACT = st.fixed_dictionaries({"text": st.text(max_size=40)}, optional=dict.fromkeys([*WHOLE][1:], JSON))


@pytest.mark.long
@given(st.lists(FACT | JSON, max_size=8))
@example([{"text": "The prompt ends with </think>"}])
def test_listed_facts_become_valid_proposals(facts: list[Any]) -> None:
    extracted = answered(*facts)
    assert len(extracted.facts) + extracted.left_out == len(facts)
    for fact in extracted.facts:
        proposed = FactProposedV1.create_strict(
            text=fact.text,
            kind=fact.memory_type,
            tier=fact.tier,
            importance=fact.importance,
            expires_at=fact.expires_at,
            supersedes=fact.supersedes,
        )
        assert FactProposedV1.parse(proposed.encode_body()) == proposed
        assert fact.sources
        assert set(fact.sources) <= {each.seq for each in SAID}


@given(st.lists(st.text(alphabet='abcd "\\{}[],\n', min_size=3, max_size=30), max_size=5), st.data())
def test_truncated_answer_gives_only_complete_facts(sentences: list[str], data: st.DataObject) -> None:
    text = json.dumps({"facts": [WHOLE | {"text": f"It is {each} so"} for each in sentences]})
    whole = texts(reading(text))
    end = data.draw(st.integers(0, len(text)))
    try:
        found = texts(reading(text[:end]))
    except UnreadableAnswer:
        return
    assert found == whole[: len(found)]


@given(
    st.text(alphabet="{}[]\",:\\' \nfacts text1é", max_size=60), st.sampled_from(["", '{"facts": [{', "["])
)
def test_any_text_is_parsed_or_unreadable(text: str, before: str) -> None:
    try:
        extracted = reading(before + text)
    except UnreadableAnswer:
        return
    assert all(any(character.isalpha() for character in fact) for fact in texts(extracted))


def test_deep_nesting_is_unreadable() -> None:
    for deep in ("[" * 20_000 + "]" * 20_000, "[" * 20_000 + "'a'" + "]" * 20_000):
        with pytest.raises(UnreadableAnswer):
            reading('{"facts": [{"text": "Lives in York", "sources": ' + deep + "}]}")
