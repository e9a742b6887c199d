"""Rows of other bots' tables as events."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from mnemon.operations.imports.postgres import RowReader
from mnemon.operations.imports.records import IncomingEvent, RefusedRecord
from mnemon_contracts.events.memory import FactProposedV1
from mnemon_infra.database.messages.external_chats import ExternalMessageRow, QuestionRow, SessionMemoryRow

AT = datetime(2026, 3, 1, 13, 0)  # noqa: DTZ001 - such bots have times without a zone
MOSCOW = RowReader(zone=ZoneInfo("Europe/Moscow"))


def message(**fields: Any) -> Any:
    row = ExternalMessageRow(user="42", conversation="c1", id="7", role="user", content="Hi", created_at=AT)
    return MOSCOW.read_message(row._replace(**fields))


def test_row_becomes_a_user_message_with_its_time() -> None:
    found = message()
    assert (found.user, found.conversation, found.event.id) == ("42", "c1", "pg:c1:7")
    assert found.event.sent_at == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert RowReader("me").read_message(ExternalMessageRow("42", "c1", "7", "user", "Hi", AT)).user == "me"  # type: ignore[union-attr]


def test_the_time_that_was_put_before_a_text_is_no_part_of_it() -> None:
    stamped = "[Текущее время: 2026-03-01 13:00] Привет"
    assert message(content=stamped).event.content == "Привет"
    assert message(content=stamped, role="assistant").event.content == stamped


def test_unknown_role_is_refused() -> None:
    refused = message(role="critic")
    assert isinstance(refused, RefusedRecord)
    assert (refused.place, refused.field) == ("message 7", "role")


def test_a_row_of_question_and_answer_is_two_messages() -> None:
    row = QuestionRow("42", "s1", "7", "Who?", "Me.", AT)
    asked, answered = [each for each in MOSCOW.read_exchange(row) if isinstance(each, IncomingEvent)]
    assert (asked.event.role, answered.event.role) == ("user", "assistant")  # type: ignore[attr-defined]
    assert asked.event.sent_at < answered.event.sent_at  # type: ignore[attr-defined]
    assert asked.event.id != answered.event.id
    assert len(list(MOSCOW.read_exchange(row._replace(response=None)))) == 1
    assert asked.event.id != next(MOSCOW.read_exchange(row._replace(id=None))).event.id  # type: ignore[union-attr]


def test_session_memory_is_proposed() -> None:
    memory = {
        "key_facts": ["User prefers Russian", {"text": "Trades NQ"}],
        "summaries": ["We spoke of 2024."],
    }
    found = list(MOSCOW.read_session_memory(SessionMemoryRow("42", "s1", memory)))
    events = [each.event for each in found if isinstance(each, IncomingEvent)]
    assert [(each.text, each.kind) for each in events if isinstance(each, FactProposedV1)] == [
        ("User prefers Russian", "user_fact"),
        ("Trades NQ", "user_fact"),
        ("We spoke of 2024.", "conversation_summary"),
    ]


def test_memory_in_another_shape_is_refused() -> None:
    [refused] = MOSCOW.read_session_memory(SessionMemoryRow("42", "s1", ["a"]))
    assert isinstance(refused, RefusedRecord)
    [refused] = MOSCOW.read_session_memory(SessionMemoryRow("42", "s1", {"key_facts": "a"}))
    assert refused.field == "memory.key_facts"  # type: ignore[union-attr]
    [refused, _] = MOSCOW.read_session_memory(
        SessionMemoryRow("42", "s1", {"key_facts": ["\ud83d", "Likes tea"]})
    )
    assert refused.field == "text"  # type: ignore[union-attr]
