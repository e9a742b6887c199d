"""Decoding of events: bodies of old versions become the latest version, and errors name the invalid field."""

import json
import re
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from mnemon_contracts.base import BODY_LIMIT, NESTING_LIMIT, Event, InvalidBody, Text
from mnemon_contracts.decode import UnknownEvent, decode_event, find_contract, upcast_body
from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1, ToolCall
from mnemon_contracts.events.memory import ProfileSetV1
from mnemon_contracts.registry import EventContract
from mnemon_contracts.subjects import parse_subject
from mnemon_contracts.verbs.ask import HistoryV1
from mnemon_contracts.verbs.tools import SaveV1, SearchV2

MESSAGE = parse_subject("chat.acme.u42.-.message.v1")


class MoodV1(Event):
    """Version 1 of the test event `mood`: the mood as a word."""

    mood: Text = Field(description="The word.")


class MoodV2(Event):
    """Version 2 of the test event `mood`: the mood as a number."""

    happiness: int = Field(description="-1, 0 or 1.")


class MoodV3(Event):
    """Version 3 of the test event `mood`: the mood as a number and the words for it."""

    happiness: int = Field(description="-1, 0 or 1.")
    words: tuple[Text, ...] = Field(description="The words.")


def _to_v2(body: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in body.items() if key != "mood"}
    return rest | {"happiness": {"glad": 1, "sad": -1}.get(body["mood"], 0)}


def _to_v3(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"words": ["весело"] if body["happiness"] > 0 else []}


MOOD = EventContract("chat", "mood", (MoodV1, MoodV2, MoodV3), ("bot",), ("persist",), (_to_v2, _to_v3))
MOOD_OF_TWO = EventContract("chat", "mood", (MoodV1, MoodV2), ("bot",), ("persist",), (_to_v2,))


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (1, b'{"id":"e1","mood":"glad"}'),
        (2, b'{"id":"e1","happiness":1}'),
        (3, '{"id":"e1","happiness":1,"words":["весело"]}'.encode()),
    ],
)
def test_every_version_is_read_as_the_latest(version: int, body: bytes) -> None:
    assert upcast_body(MOOD, version, body) == MoodV3(id="e1", happiness=1, words=("весело",))


def test_contract_of_two_versions_upcasts_in_one_step() -> None:
    assert upcast_body(MOOD_OF_TWO, 1, b'{"mood":"sad"}') == MoodV2(happiness=-1)
    assert upcast_body(MOOD_OF_TWO, 2, b'{"happiness":0}') == MoodV2(happiness=0)


def test_a_body_is_judged_by_the_contract_of_its_own_version() -> None:
    with pytest.raises(InvalidBody, match="mood: Field required"):
        upcast_body(MOOD, 1, b'{"happiness":1}')
    with pytest.raises(InvalidBody, match="words: Field required"):
        upcast_body(MOOD, 3, b'{"happiness":1}')


def test_invalid_body_from_an_upcaster_is_refused() -> None:
    broken = EventContract("chat", "mood", (MoodV1, MoodV2), ("bot",), ("persist",), (lambda body: body,))
    with pytest.raises(InvalidBody, match="happiness: Field required"):
        upcast_body(broken, 1, b'{"mood":"glad"}')


def test_fields_that_no_version_knows_do_not_get_in_the_way_of_an_upcaster() -> None:
    assert upcast_body(MOOD, 1, b'{"mood":"glad","weather":{"rain":null}}') == MoodV3(
        happiness=1, words=("весело",)
    )


def test_upcast_body_may_exceed_the_limit_of_the_original() -> None:
    padding = ",".join(["1"] * ((BODY_LIMIT - 200) // 2))
    body = f'{{"mood":"glad","ballast":[{padding}]}}'.encode()
    assert BODY_LIMIT - 300 < len(body) <= BODY_LIMIT
    assert upcast_body(MOOD, 1, body).id is None


def test_decode_reads_what_the_subject_names() -> None:
    assert decode_event(MESSAGE, '{"role":"user","content":"привет"}'.encode()) == MessageV1(
        role="user", content="привет"
    )


@pytest.mark.parametrize(("event", "expected"), [("started", StartedV1()), ("cleared", ClearedV1())])
def test_an_event_without_required_fields_needs_no_body(event: str, expected: Event) -> None:
    assert decode_event(parse_subject(f"chat.acme.u42.-.{event}.v1"), b"") == expected


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        (
            "chat.acme.u42.-.mesage.v1",
            "event 'mesage' is not known in chat; use one of message, started, cleared",
        ),
        (
            "memory.acme.u42.fact.gone.v1",
            "event 'fact.gone' is not known in memory; use one of fact.proposed",
        ),
        ("ask.acme.u42.message.v1", "event 'message' is not known in ask"),
        (
            "chat.acme.u42.-.message.v2",
            "message v2 is not known; the newest version that this mnemon knows is v1. Upgrade mnemon, or",
        ),
    ],
)
def test_an_unknown_event_is_refused_with_those_that_are_known(subject: str, problem: str) -> None:
    with pytest.raises(UnknownEvent, match=problem):
        find_contract(parse_subject(subject))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "body: Invalid JSON"),
        (b"not json", "body: Invalid JSON"),
        (b"[]", "body: Input should be an object"),
        (b'{"role":"user","content":"\xff"}', "body: Invalid JSON"),
        (rb'{"role":"user","content":"\ud800"}', "body: Invalid JSON"),
        (b'{"role":"user"}', "content: Field required"),
        (b'{"role":"robot","content":""}', "role: Input should be 'user', .* or 'system'$"),
        (rb'{"role":"user","content":"a\u0000b"}', r"content: contains U\+0000"),
        (rb'{"role":"user","content":"","metadata":{"a":[{"\u0000":1}]}}', r"metadata.*: contains U\+0000"),
        (b'{"role":"user","content":"","metadata":{"a":NaN}}', "metadata.*: .*number"),
        (b'{"role":"user","content":"","metadata":{"a":1e999}}', "metadata.*: .*number"),
        (b'{"role":"user","content":"","id":""}', "id: String should have at least 1 character"),
        (b'{"role":"user","content":"","sent_at":"yesterday"}', "sent_at: Input should be a valid datetime"),
        (b'{"role":"user","content":"","sent_at":1700000000}', "sent_at: Input should be a valid datetime"),
        (
            b'{"role":"user","content":"","sent_at":"9999-12-31T23:00:00-05:00"}',
            "sent_at: must be in the years",
        ),
        (b'{"role":"user","content":"","tool_calls":[{"id":"1"}]}', "tool_calls.0.name: Field required"),
    ],
)
def test_a_message_that_cannot_be_used_says_which_field_is_wrong(body: bytes, problem: str) -> None:
    with pytest.raises(InvalidBody, match=problem):
        decode_event(MESSAGE, body)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(
            b'"' + b"a" * BODY_LIMIT + b'"',
            "body: has 1,048,604 bytes, and the limit is 1,048,576",
            id="large",
        ),
        pytest.param(b'"","metadata":' + b'{"a":' * 500 + b"1" + b"}" * 500, "body: Invalid JSON", id="deep"),
    ],
)
def test_too_large_or_too_deep_body_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(InvalidBody, match=problem):
        decode_event(MESSAGE, b'{"role":"user","content":' + content + b"}")


def test_an_error_does_not_repeat_a_long_value() -> None:
    with pytest.raises(InvalidBody) as refusal:
        decode_event(MESSAGE, b'{"role":"' + b"z" * 100_000 + b'","content":""}')
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("as_of", ['"then"', "-1", "1.5", "9223372036854775808"])
def test_error_names_both_types_that_a_field_may_have(as_of: str) -> None:
    with pytest.raises(InvalidBody) as refused:
        HistoryV1.parse(b'{"as_of": %s}' % as_of.encode())
    assert re.fullmatch(
        r"as_of: Input should be a valid datetime.*, or Input should be .*(integer|equal).*",
        str(refused.value),
    )


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"scope": ["dreams"]}, r"scope: Input should be 'memories', .* or 'long' \(index 0\)"),
        ({"preceding": ["Hi", 3]}, r"preceding: Input should be a valid string \(index 1\)"),
        (
            {"as_of": "then"},
            "as_of: Input should be a valid datetime, or Input should be a valid integer, .*",
        ),
    ],
)
def test_an_item_of_a_list_is_named_by_its_field(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidBody) as refused:
        SearchV2.create_strict(query="tea", **fields)
    assert re.fullmatch(problem, str(refused.value))


@pytest.mark.parametrize("field", ["int", "list", "dict", "<x>", "NoneType"])
def test_an_unknown_field_is_named_also_if_it_is_called_like_a_type(field: str) -> None:
    with pytest.raises(InvalidBody) as refused:
        SaveV1.create_strict(text="Likes tea", **{field: "a", "str": "b"})
    assert (refused.value.field, refused.value.problem) == (field, "Extra inputs are not permitted")
    with pytest.raises(InvalidBody) as refused:
        SaveV1.parse_strict(b'{"text":"Likes tea","%s":1}' % field.encode())
    assert refused.value.field == field


def test_importance_that_is_neither_word_nor_number_is_named_without_types() -> None:
    with pytest.raises(InvalidBody) as refused:
        SaveV1.create_strict(text="Likes tea", importance="huge")
    assert refused.value.field == "importance"
    assert re.fullmatch(
        "Input should be a valid integer, .*, or Input should be 'high', 'normal' or 'low'",
        refused.value.problem,
    )


def test_a_time_without_offset_is_utc_and_one_with_offset_is_put_in_utc() -> None:
    bodies = [b'{"role":"user","content":"","sent_at":"2026-11-21T10:00:00"}']
    bodies.append(b'{"role":"user","content":"","sent_at":"2026-11-21T13:00:00+03:00"}')
    moments = {MessageV1.parse(body).sent_at for body in bodies}
    assert [moment.isoformat() for moment in moments if moment] == ["2026-11-21T10:00:00+00:00"]


def test_null_within_a_bots_own_json_is_kept() -> None:
    event = ProfileSetV1.create_strict(fields={"nickname": None})
    assert event.encode_body() == b'{"fields":{"nickname":null}}'
    assert ProfileSetV1.parse(event.encode_body()) == event


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"role": "user", "content": "", "contents": ""}, "contents: Extra inputs are not permitted"),
        (
            {"role": "tool", "content": "", "tool_calls": [{"name": "t", "args": 1}]},
            "tool_calls.0.args: Extra",
        ),
        ({"role": "user", "content": "\ud800"}, "content: contains a lone surrogate"),
        ({"role": "user", "content": "", "metadata": {"a": float("inf")}}, "^metadata.a: .*number"),
        (
            {"role": "user", "content": "", "metadata": {"a": {"b": [1, float("nan")]}}},
            "^metadata.a.b: .*number .index 1.$",
        ),
        ({"role": "user", "content": "", "metadata": {"int": float("inf")}}, "^metadata.int: .*number"),
        (
            {"role": "user", "content": "", "metadata": {"<x>": {"list": [float("nan")]}}},
            "^metadata.<x>.list: .*number .index 0.$",
        ),
        ({"role": "user", "content": "", "metadata": {"dict": {"dict": "\0"}}}, r"^metadata.dict: .*U\+0000"),
        (
            {"role": "tool", "content": "", "tool_calls": [{"name": "t", "int": 1}]},
            "^tool_calls.0.int: Extra",
        ),
    ],
)
def test_invalid_event_is_refused_when_it_is_built(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidBody, match=problem):
        MessageV1.create_strict(**fields)


def test_a_body_that_is_too_large_is_refused_before_it_is_sent() -> None:
    with pytest.raises(InvalidBody, match="the limit is 1,048,576"):
        MessageV1.create_strict(role="user", content="a" * BODY_LIMIT).encode_body()


def nest_arrays(levels: int) -> list[Any]:
    return reduce(lambda inner, _: [inner], range(levels - 1), list[Any]())


@pytest.mark.parametrize("levels", [NESTING_LIMIT + 1, NESTING_LIMIT + 54])
def test_a_body_that_is_nested_too_deeply_for_the_parser_is_refused_before_it_is_sent(levels: int) -> None:
    def build_messages(levels: int) -> dict[str, MessageV1]:
        calls = ToolCall(name="t", arguments=nest_arrays(levels - 3))
        return {
            "metadata": MessageV1(role="tool", content="", metadata={"a": nest_arrays(levels - 2)}),
            "tool_calls": MessageV1(role="tool", content="", tool_calls=(calls,)),
        }

    for field, message in build_messages(levels).items():
        with pytest.raises(InvalidBody, match=f"the limit is {NESTING_LIMIT}") as refused:
            message.encode_body()
        assert refused.value.field == field
    for message in build_messages(NESTING_LIMIT).values():
        assert MessageV1.parse(message.encode_body()) == message


texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"))
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(texts, st.dictionaries(texts, json_values, max_size=4))
def test_encoded_event_decodes_equal(content: str, metadata: dict[str, Any]) -> None:
    sent = MessageV1.create_strict(role="user", content=content, metadata=metadata)
    assert decode_event(MESSAGE, sent.encode_body()) == sent
    assert json.loads(sent.encode_body())["content"] == content
