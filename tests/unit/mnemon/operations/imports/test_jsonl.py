"""Lines of an export as events, and the references of lines to other lines."""

import io
import json
from typing import Any

import pytest

from mnemon.operations.imports.jsonl import JsonLinesReader
from mnemon.operations.imports.records import IncomingEvent, NotReadable, RefusedRecord
from mnemon.operations.memory_lines import HEADER, MessagePositions, derive_portable_id, map_positions
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.events.memory import FactSavedV1, SummaryWrittenV1
from mnemon_contracts.identity import derive_first_conversation, derive_started_conversation

SAID = {
    "tenant": "acme",
    "user": "u1",
    "event": "message.v1",
    "n": 1,
    "body": {"id": "m1", "role": "user", "content": "hi", "sent_at": "2026-03-01T10:00:00Z"},
}
SUMMARY = SummaryWrittenV1(summary_id="s", conversation="c", from_seq=10, to_seq=20, text="x", id="s")


def read(*lines: Any, **options: Any) -> list[Any]:
    text = b"".join(
        (each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in lines
    )
    return list(JsonLinesReader(**options).read(io.BytesIO(text)))


def one(line: Any, **options: Any) -> Any:
    [found] = read(line, **options)
    return found


def test_a_line_is_an_event_of_a_user() -> None:
    assert read(HEADER) == []
    found = one({**SAID, "conversation": "c1"})
    assert isinstance(found, IncomingEvent)
    assert (found.place, found.tenant, found.user, found.conversation) == ("line 1", "acme", "u1", "c1")
    assert (found.event, found.number) == (MessageV1.model_validate_json(json.dumps(SAID["body"])), 1)


def test_jsonl_export_may_begin_with_a_byte_order_mark() -> None:
    assert len(read(json.dumps(HEADER).encode("utf-8-sig"), SAID)) == 1


def test_a_line_without_an_id_has_always_the_same() -> None:
    line = {**SAID, "body": {"role": "user", "content": "hi"}}
    assert one(line).event.id == one(line).event.id
    assert one(line).event.id != one({**line, "n": 2}).event.id
    first, second = read(line, line)
    assert first.event.id != second.event.id, "who says the same twice has said it twice"


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"no", "line"),
        (b"[1]", "line"),
        (b"x" * 3_000_000, "line"),
        ({**SAID, "event": "message.v9"}, "event"),
        ({**SAID, "event": "message"}, "event"),
        ({**SAID, "event": "user.erased.v1"}, "event"),
        ({**SAID, "event": "model.called.v1"}, "event"),
        ({**SAID, "user": ""}, "user"),
        ({**SAID, "tenant": None}, "tenant"),
        ({**SAID, "conversation": 7}, "conversation"),
        ({**SAID, "n": 0}, "n"),
        ({**SAID, "body": "hi"}, "body"),
        ({**SAID, "body": {"role": "critic", "content": "hi"}}, "body.role"),
        ({**SAID, "body": {"role": "user", "content": "x" * 1_100_000}}, "body.body"),
        ({**SAID, "body": {"role": "user", "content": "\ud83d"}}, "body.content"),
        ({**SAID, "body": {"role": "user", "content": "hi", "\ud83d": 1}}, "body.\\ud83d"),
    ],
)
def test_problem_of_a_line_is_reported_for_that_line_alone(line: Any, field: str) -> None:
    refused, good = read(line, SAID)
    assert isinstance(refused, RefusedRecord)
    assert (refused.place, refused.field) == ("line 1", field)
    assert isinstance(good, IncomingEvent)


@pytest.mark.parametrize("field", ["tenant", "user"])
def test_absent_owner_is_refused_with_the_option_that_names_it(field: str) -> None:
    line = {name: value for name, value in SAID.items() if name != field}
    assert one(line).reason == f"is missing; name the {field} with --{field}"
    assert getattr(one(line, **{field: "named"}), field) == "named"


@pytest.mark.parametrize("depth", [300, 900, 980, 100_000])
def test_a_line_that_is_nested_too_deeply_is_refused_whatever_reads_it(depth: int) -> None:
    body = b'{"role": "user", "content": "hi", "x": ' + b"[" * depth + b"]" * depth + b"}"
    line = b'{"tenant": "acme", "user": "u1", "event": "message.v1", "body": ' + body + b"}"
    refused, good = read(line, SAID)
    assert isinstance(refused, RefusedRecord)
    assert isinstance(good, IncomingEvent)


def test_newer_export_format_is_refused() -> None:
    with pytest.raises(NotReadable, match="upgrade"):
        read({**HEADER, "version": 2})
    with pytest.raises(NotReadable):
        read({"mnemon": "settings", "version": 1})


def test_another_name_is_for_one_user_and_takes_the_conversations_along() -> None:
    started = {**SAID, "event": "started.v1", "n": None, "body": {"id": "s1"}}
    of_first = SUMMARY.model_copy(update={"conversation": derive_first_conversation("acme", "u1")})
    of_started = SUMMARY.model_copy(update={"conversation": derive_started_conversation("acme", "u1", "s1")})
    summaries = [
        {**SAID, "event": "summary.written.v1", "n": None, "body": each.model_dump(mode="json")}
        for each in (of_first, of_started)
    ]
    _, first, second = read(started, *summaries, tenant="other", user="u2")
    assert (first.tenant, first.user) == ("other", "u2")
    assert first.event.conversation == derive_first_conversation("other", "u2")
    assert second.event.conversation == derive_started_conversation("other", "u2", "s1")
    with pytest.raises(NotReadable, match="several users"):
        read(SAID, {**SAID, "user": "u3"}, user="u2")


def test_users_of_two_tenants_do_not_become_one() -> None:
    with pytest.raises(NotReadable, match="several tenants, and --tenant needs lines of one tenant"):
        read(SAID, {**SAID, "tenant": "globex"}, tenant="other")
    assert [each.tenant for each in read(SAID, {**SAID, "tenant": "globex"})] == [SAID["tenant"], "globex"]


def test_positions_are_mapped_to_those_of_the_messages() -> None:
    def exactly(seq: int) -> int | None:
        return {10: 1, 20: 2}.get(seq)

    exact = MessagePositions(exactly, exactly, exactly)
    there = map_positions(SUMMARY, exact)
    assert there is not None
    assert (there.from_seq, there.to_seq) == (1, 2)
    gone = map_positions(SUMMARY.model_copy(update={"to_seq": 30}), exact)
    assert gone is None, "a summary of nothing is none"
    fact = FactSavedV1.model_validate(
        {
            "fact_id": "pf_001",
            "fact": {"text": "x"},
            "decision": {"proposal_id": "p"},
            "lineage": {"sources": [10, 15]},
        }
    )
    learned = map_positions(fact, exact)
    assert learned is not None
    assert learned.lineage.sources == (1,), "what was learned stays, without the source that is gone"


def test_event_identified_by_its_position_gets_a_portable_id() -> None:
    assert derive_portable_id("acme", "u1", "m1") == "m1"
    named = derive_portable_id("acme", "u1", "LOG:7", "hi")
    assert not named.startswith("LOG:")
    assert (
        named
        == derive_portable_id("acme", "u1", "LOG:7", "hi")
        != derive_portable_id("acme", "u1", "LOG:7", "ho")
    )
