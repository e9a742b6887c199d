"""The export of Telegram Desktop as events."""

import io
import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mnemon.operations.imports.records import (
    ImportDoubt,
    IncomingEvent,
    LeftOutRecord,
    NotReadable,
    Reassignment,
    RefusedRecord,
)
from mnemon.operations.imports.telegram import TelegramReader
from mnemon_contracts.events.chat import MessageV1


def message(number: int, sender: str, text: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "type": "message",
        "date": f"2026-03-01T10:00:{number:02}",
        "from": sender.title(),
        "from_id": sender,
        "text": text,
        **more,
    }


def chat(*messages: dict[str, Any], **about: Any) -> dict[str, Any]:
    return {"name": "Helper", "type": "bot_chat", "id": 777, **about, "messages": list(messages)}


def read(export: Any, **options: Any) -> list[Any]:
    return list(TelegramReader(**options).read(io.BytesIO(json.dumps(export).encode())))


def said(found: list[Any]) -> list[tuple[str, str, str]]:
    events: list[tuple[str, Any]] = [
        (each.user, each.event) for each in found if isinstance(each, IncomingEvent)
    ]
    return [(user, event.role, event.content) for user, event in events]


def test_the_bot_is_the_assistant_and_its_partner_the_user() -> None:
    found = read(chat(message(1, "user777", "Welcome"), message(2, "user42", "Hi")))
    assert said(found) == [("42", "assistant", "Welcome"), ("42", "user", "Hi")]
    assert {each.conversation for each in found} == {"telegram-777"}
    assert [each.event.id for each in found] == ["telegram:777:1", "telegram:777:2"]


def test_telegram_export_may_begin_with_a_byte_order_mark() -> None:
    text = json.dumps(chat(message(1, "user42", "Hi"))).encode("utf-8-sig")
    assert said(list(TelegramReader().read(io.BytesIO(text)))) == [("42", "user", "Hi")]


def test_ids_that_are_numbers_are_those_of_old_exports() -> None:
    old = [message(1, "x", "Welcome", from_id=777), message(2, "x", "Hi", from_id=42)]
    assert said(read(chat(*old))) == [("42", "assistant", "Welcome"), ("42", "user", "Hi")]


@pytest.mark.parametrize("bot", ["user5", "5", "User5"])
def test_in_a_group_the_option_says_who_is_the_assistant(bot: str) -> None:
    group = chat(message(1, "user1", "a"), message(2, "user5", "b"), type="private_group")
    found = read(group, bot=bot)
    assert said(found) == [("chat777", "user", "a"), ("chat777", "assistant", "b")]
    assert found[0].event.name == "User1"


def test_a_text_in_parts_is_one_text() -> None:
    parts = ["See ", {"type": "link", "text": "example.org"}, "!"]
    assert said(read(chat(message(1, "user42", parts)))) == [("42", "user", "See example.org!")]


def test_non_text_content_is_named() -> None:
    sticker = message(1, "user42", "", media_type="sticker", sticker_emoji="🙂")
    photo = message(2, "user42", "Look", photo="photos/1.jpg")
    assert [content for *_, content in said(read(chat(sticker, photo)))] == ["[sticker: 🙂]", "Look\n[photo]"]


def test_times_are_kept() -> None:
    exact = message(1, "user42", "a", date_unixtime="1772359200")
    local = message(2, "user42", "b", date="2026-03-01T13:00:02")
    first, second = read(chat(exact, local), zone=ZoneInfo("Europe/Moscow"))
    assert first.event.sent_at == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert second.event.sent_at == datetime(2026, 3, 1, 10, 0, 2, tzinfo=UTC)


def test_references_of_a_message_are_kept_with_it() -> None:
    found = read(chat(message(2, "user42", "b", reply_to_message_id=1, edited="2026-03-01T10:01:00")))
    event = found[0].event
    assert isinstance(event, MessageV1)
    assert event.metadata is not None
    assert event.metadata["telegram"] == {
        "chat": "Helper",
        "message_id": 2,
        "from_id": "user42",
        "reply_to": 1,
        "edited": "2026-03-01T10:01:00",
    }


def test_notices_are_left_out_with_a_reason() -> None:
    call = {"id": 1, "type": "service", "action": "phone_call", "text": ""}
    found = read(chat(call, message(2, "user42", ""), message(3, "user42", "Hi")))
    reasons = ["a service message: phone_call", "no text"]
    assert [each.reason for each in found if isinstance(each, LeftOutRecord)] == reasons


def test_invalid_message_is_refused_with_its_field() -> None:
    [refused, _] = read(chat(message(1, "user42", "a", date="soon"), message(2, "user42", "b")))
    assert isinstance(refused, RefusedRecord)
    assert (refused.place, refused.field) == ("chat 777, message 1", "date")
    [other] = read(chat(message(1, "user42", "a\0b")))
    assert (other.field, other.source["id"]) == ("content", 1)


def test_all_chats_of_an_export_are_read_each_as_a_conversation() -> None:
    one, two = chat(message(1, "user42", "a")), chat(message(1, "user43", "b"), id=778)
    full = {"about": "…", "chats": {"about": "…", "list": [one, two]}, "left_chats": {"list": []}}
    assert said(read(full)) == [("42", "user", "a"), ("43", "user", "b")]
    assert said(read(full, user="me")) == [("me", "user", "a"), ("me", "user", "b")]


def test_a_chat_in_which_only_the_bot_speaks_is_named_after_the_chat() -> None:
    assert said(read(chat(message(1, "user777", "Welcome")))) == [("chat777", "assistant", "Welcome")]


def test_foreign_files_are_recognised() -> None:
    for text in b'{"a": 1}', b"[]", b'{"messages": [{"id": 1', b"no":
        with pytest.raises(NotReadable):
            list(TelegramReader().read(io.BytesIO(text)))


def test_refusal_of_a_file_that_is_not_utf8_quotes_nothing_of_it() -> None:
    text = '{"name": "Привет"}'.encode("cp1251")
    with pytest.raises(NotReadable) as refusal:
        list(TelegramReader().read(io.BytesIO(text)))
    assert "incomplete: lexical error: invalid bytes in UTF8 string.; give" in str(refusal.value)


@pytest.mark.parametrize("text", [b"[" * 3000, b'[{"a": ' + b"[" * 3000])
def test_a_file_that_is_nested_too_deeply_is_given_up(text: bytes) -> None:
    with pytest.raises(NotReadable, match="nested too deeply"):
        list(TelegramReader().read(io.BytesIO(text)))


PERSONAL = chat(message(1, "user777", "Hi"), message(2, "user42", "Hello"), type="personal_chat")


def test_other_side_of_a_personal_chat_is_reported_as_the_assistant() -> None:
    doubt, *found = read(PERSONAL)
    assert said(found) == [("42", "assistant", "Hi"), ("42", "user", "Hello")]
    assert isinstance(doubt, ImportDoubt)
    assert (doubt.place, "'User777' (user777)" in doubt.reason) == ("chat 777", True)
    assert not any(isinstance(each, ImportDoubt) for each in read(PERSONAL, bot="user777"))


@pytest.mark.parametrize("bot", ["user42", "42", "User42"])
def test_named_account_is_the_assistant(bot: str) -> None:
    recast, *found = read(PERSONAL, bot=bot)
    assert said(found) == [("777", "user", "Hi"), ("777", "assistant", "Hello")]
    users = frozenset({"777", "42", "chat777"})
    assert recast == Reassignment("chat 777", "777", "telegram-777", "user42", users, "telegram:777:")


def test_unknown_assistant_name_is_reported() -> None:
    *found, doubt = read(PERSONAL, bot="Helper")
    assert [role for _, role, _ in said(found)] == ["user", "user"]
    assert isinstance(doubt, ImportDoubt)
    assert "no sender is 'Helper'" in doubt.reason


def test_saved_messages_have_no_assistant() -> None:
    notes = chat(message(1, "user777", "Buy milk"), type="saved_messages", id=777)
    assert said(read(notes)) == [("777", "user", "Buy milk")]
