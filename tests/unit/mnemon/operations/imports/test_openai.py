"""The export of ChatGPT as events."""

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from mnemon.operations.imports.openai import read_conversations
from mnemon.operations.imports.records import IncomingEvent, LeftOutRecord, NotReadable, RefusedRecord


def node(name: str, parent: str | None, role: str = "user", *parts: Any, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": list(parts)}
    message = {"id": name, "author": {"role": role}, "create_time": 1706745600.5, "content": content, **more}
    return {"id": name, "parent": parent, "children": [], "message": message if parts or more else None}


def tree(*nodes: dict[str, Any], **about: Any) -> dict[str, Any]:
    mapping = {each["id"]: each for each in nodes}
    for each in nodes:
        if each["parent"]:
            mapping[each["parent"]]["children"].append(each["id"])
    return {"conversation_id": "c1", "title": "T", "create_time": 1.0, "mapping": mapping, **about}


def found(*conversations: Any) -> list[Any]:
    return list(read_conversations(io.BytesIO(json.dumps(conversations).encode()), "u1"))


def contents(*conversations: Any) -> list[tuple[str, str]]:
    events: list[Any] = [each.event for each in found(*conversations) if isinstance(each, IncomingEvent)]
    return [(event.role, event.content) for event in events]


BRANCHED = tree(
    node("root", None),
    node("q1", "root", "user", "A question"),
    node("a1", "q1", "assistant", "A first answer"),
    node("a2", "q1", "assistant", "A second answer"),
    current_node="a1",
)


def test_only_the_current_branch_is_imported() -> None:
    assert contents(BRANCHED) == [("user", "A question"), ("assistant", "A first answer")]


def test_openai_export_may_begin_with_a_byte_order_mark() -> None:
    text = json.dumps([BRANCHED]).encode("utf-8-sig")
    assert len(list(read_conversations(io.BytesIO(text), "u1"))) == 2


def test_branch_of_the_last_node_is_imported_without_a_current_node() -> None:
    assert contents({**BRANCHED, "current_node": None})[-1] == ("assistant", "A second answer")


def test_message_keeps_its_conversation_time_and_title() -> None:
    first, second = found(BRANCHED)
    assert (first.user, first.conversation, first.event.id) == ("u1", "openai-c1", "openai:c1:q1")
    assert first.event.sent_at == datetime(2024, 2, 1, 0, 0, 0, 500_000, tzinfo=UTC)
    assert first.event.metadata == {"openai": {"title": "T"}}
    assert second.event.metadata is None


def test_the_first_imported_message_has_the_title() -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    later = tree(
        node("s", None, "system", "Hidden", metadata=hidden),
        node("q", "s", "user", "Hello"),
        node("a", "q", "assistant", "Hi"),
    )
    left_out, first, second = found(later)
    assert isinstance(left_out, LeftOutRecord)
    assert first.event.metadata == {"openai": {"title": "T"}}
    assert second.event.metadata is None


def test_a_message_without_a_time_was_said_after_the_one_before_it() -> None:
    later = tree(
        node("a", None, "user", "x", create_time=None),
        node("b", "a", "user", "y"),
        node("c", "b", "tool", "z", create_time=None),
    )
    times = [each.event.sent_at.timestamp() for each in found(later)]
    assert times == [1.0, 1706745600.5, 1706745600.5]


def test_parts_that_are_no_text_are_noted() -> None:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    spoken = {"content_type": "audio_transcription", "text": "Hello"}
    assert contents(tree(node("a", None, "user", picture, "What is this?", spoken))) == [
        ("user", "[image]\nWhat is this?\nHello")
    ]


def test_tool_call_is_imported_as_a_tool_call() -> None:
    call = node("a", None, "assistant", recipient="python")
    call["message"]["content"] = {"content_type": "code", "text": "1 + 1"}
    [each] = found(tree(call))
    assert each.event.content == ""
    assert [(one.name, one.arguments) for one in each.event.tool_calls] == [("python", "1 + 1")]


def test_messages_without_speaker_are_left_out() -> None:
    hidden = node("a", None, "system", "x", metadata={"is_visually_hidden_from_conversation": True})
    thought = node("b", "a", "assistant", content={"content_type": "thoughts"})
    empty = node("c", "b", "assistant", "")
    assert [type(each) for each in found(tree(hidden, thought, empty))] == [
        LeftOutRecord,
        LeftOutRecord,
        LeftOutRecord,
    ]


def test_invalid_message_is_refused_with_its_field() -> None:
    refused = found(tree(node("a", None, "critic", "x")), {"id": "c2"})
    assert [(each.field, type(each)) for each in refused] == [
        ("mapping", RefusedRecord),
        ("author.role", RefusedRecord),
    ]


@pytest.mark.parametrize(
    ("about", "field"),
    [
        ({"mapping": {**BRANCHED["mapping"], "z": None}, "current_node": None}, "mapping"),
        ({"mapping": {**BRANCHED["mapping"], "z": None}, "current_node": "z"}, "mapping"),
        (tree(node("a", None, "user", "x", create_time=None), create_time=1e300), "create_time"),
        (tree(node("a", None, "user", "x", create_time=None), create_time="inf"), "create_time"),
        (tree(node("a", None, "user", "x", author={"role": ["user"]})), "author.role"),
    ],
)
def test_problem_of_a_conversation_does_not_end_the_import(about: Any, field: str) -> None:
    other = tree(node("a", None, "user", "x"), conversation_id="c9", create_time=0.5)
    outcome = found({**BRANCHED, **about}, other)
    assert [each.field for each in outcome if isinstance(each, RefusedRecord)] == [field]
    assert [each.conversation for each in outcome if isinstance(each, IncomingEvent)] == ["openai-c9"]


@pytest.mark.parametrize("named", [["a1"], {"a1": 1}, 7])
def test_a_current_node_that_is_no_name_counts_as_none(named: Any) -> None:
    assert contents({**BRANCHED, "current_node": named})[-1] == ("assistant", "A second answer")


def test_a_node_beside_the_branch_may_be_empty() -> None:
    assert len(contents({**BRANCHED, "mapping": {**BRANCHED["mapping"], "z": None}})) == 2


def test_the_oldest_conversation_comes_first() -> None:
    newest = tree(node("a", None, "user", "new"), create_time=9.0, conversation_id="c9")
    assert [content for _, content in contents(newest, BRANCHED)] == ["A question", "A first answer", "new"]


def test_circular_tree_terminates() -> None:
    circle = tree(node("a", "b", "user", "x"), node("b", "a", "user", "y"), current_node="a")
    assert len(contents(circle)) == 2


@pytest.mark.parametrize("text", [b"[]", b"[1]", b"{", b'[{"id": "c"', b"no"])
def test_foreign_files_are_recognised(text: bytes) -> None:
    with pytest.raises(NotReadable):
        list(read_conversations(io.BytesIO(text), "u1"))


@pytest.mark.parametrize("text", [b'[{"title": "Caf\xe9"}]', b'[{"title": "Caf\xe9'])
def test_refusal_of_a_file_that_is_not_utf8_quotes_nothing_of_it(text: bytes) -> None:
    with pytest.raises(NotReadable) as refusal:
        list(read_conversations(io.BytesIO(text), "u1"))
    assert "incomplete: lexical error: invalid bytes in UTF8 string.; give" in str(refusal.value)


@pytest.mark.parametrize("text", [b"[" * 3000, b'[{"a": ' + b"[" * 3000])
def test_a_file_that_is_nested_too_deeply_is_given_up(text: bytes) -> None:
    with pytest.raises(NotReadable, match="nested too deeply"):
        list(read_conversations(io.BytesIO(text), "u1"))
