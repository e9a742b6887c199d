"""Memory over NATS: events are published and read back by requests, with real servers."""

import asyncio
import json
from typing import Any

import pytest

from mnemon_contracts.settings.groups import SettingsV1
from mnemon_infra.config import Deployment
from mnemon_infra.settings.store import write_settings
from mnemon_producers.client import MemoryClient
from tests.support.patience import PATIENT
from tests.support.stock_client import Stock, persisted

pytestmark = pytest.mark.usefixtures("mnemon")


async def test_message_without_headers_is_in_history(stock: Stock) -> None:
    seq = await stock.say("hi")
    reply = await stock.ask("history", min_seq=seq)
    assert [(each["role"], each["content"]) for each in reply["messages"]] == [("user", "hi")]
    assert reply["seen_seq"] >= seq
    assert reply["messages"][0]["id"] == f"LOG:{seq}"


async def test_history_returns_last_messages_in_log_order(stock: Stock) -> None:
    for number in range(40):
        seq = await stock.say(str(number))
    assert await stock.contents(min_seq=seq) == [str(number) for number in range(10, 40)]
    assert await stock.contents(limit=3, min_seq=seq) == ["37", "38", "39"]
    assert await stock.contents(limit=200, min_seq=seq) == [str(number) for number in range(40)]


async def test_history_pages_back_from_the_newest_message(stock: Stock) -> None:
    calls = [{"name": "search"}, {"name": "weather"}]
    said = []
    for number in range(7):
        body: dict[str, Any] = {"role": "assistant", "content": f"answer {number}", "tool_calls": calls}
        await stock.say(f"question {number}")
        seq = await stock.publish("chat.acme.u1.-.message.v1", body)
        said += [f"question {number}", f"answer {number}"]
    for limit in (1, 2, 3, 5, 8, 100):
        read: list[str] = []
        asked: dict[str, Any] = {"min_seq": seq}
        while messages := (reply := await stock.ask("history", limit=limit, **asked))["messages"]:
            assert len(messages) <= limit
            read = [each["content"] for each in messages if each["role"] != "system"] + read
            asked = {"before": messages[0]["seq"], "conversation": reply["conversation"]}
        assert read == said


async def test_a_page_before_a_position_is_of_the_named_conversation_only(stock: Stock) -> None:
    await stock.say("a", "acme.u1.c1")
    second = await stock.say("b", "acme.u1.c1")
    await stock.publish("chat.acme.u1.c1.cleared.v1")
    third = await stock.say("c", "acme.u1.c1")
    await stock.say("d", "acme.u1.c2")
    last = await stock.say("e", "acme.u1.c1")
    assert await stock.contents(conversation="c1", before=last, min_seq=last) == ["c"]
    assert await stock.contents(conversation="c1", before=third) == []
    assert await stock.contents(before=second) == [], "cleared messages stay away"
    assert await stock.contents(before=0) == []


async def test_users_and_tenants_do_not_see_each_other(stock: Stock) -> None:
    await stock.say("one", "acme.u1.-")
    await stock.say("other user", "acme.u2.-")
    seq = await stock.say("other tenant", "globex.u1.-")
    assert await stock.contents("acme.u1", min_seq=seq) == ["one"]
    assert await stock.contents("acme.u2", min_seq=seq) == ["other user"]
    assert await stock.contents("globex.u1", min_seq=seq) == ["other tenant"]


async def test_the_same_event_twice_is_stored_once(stock: Stock) -> None:
    await stock.say("by header", id="b1")
    await stock.publish("chat.acme.u1.-.message.v1", {"role": "user", "content": "x"}, Nats_Msg_Id="h1")
    # The server drops copies by the header `Nats-Msg-Id` only; these have the id in the body.
    await stock.publish("chat.acme.u1.-.message.v1", {"role": "user", "content": "again", "id": "h1"})
    seq = await stock.say("again", id="b1")
    assert await stock.contents(min_seq=seq) == ["by header", "x"]


async def test_tools_used_follow_their_answer(stock: Stock) -> None:
    calls = [{"name": "search", "arguments": {"q": "x"}}, {"name": "weather"}, {"name": "search"}]
    await stock.publish(
        "chat.acme.u1.-.message.v1", {"role": "assistant", "content": "done", "tool_calls": calls}
    )
    seq = await stock.publish(
        "chat.acme.u1.-.message.v1", {"role": "tool", "content": "42", "task_id": "t1", "name": "search"}
    )
    messages = (await stock.ask("history", min_seq=seq))["messages"]
    assert [(each["role"], each["content"]) for each in messages] == [
        ("assistant", "done"),
        ("system", "Tools used: search, weather"),
        ("tool", "42"),
    ]
    assert messages[2]["task_id"] == "t1"


async def test_user_data_are_set_field_by_field(stock: Stock) -> None:
    await stock.publish("memory.acme.u1.profile.set.v1", {"fields": {"name": "Anna", "city": "Kazan"}})
    seq = await stock.publish("memory.acme.u1.profile.set.v1", {"fields": {"city": None, "age": 30}})
    assert (await stock.ask("profile", min_seq=seq))["profile"] == {"name": "Anna", "age": 30}
    reply = await stock.ask("profile", fields={"name": "Аня"})
    assert reply["profile"] == {"name": "Аня", "age": 30}, "a change is seen by its own reply"
    context = await stock.ask("context", min_seq=reply["seen_seq"])
    assert context["messages"][0] == {"role": "system", "content": "User data:\n- age: 30\n- name: Аня"}


async def test_context_stamps_what_the_user_said(stock: Stock) -> None:
    await stock.say("Привет", sent_at="2026-11-21T21:30:00Z")
    seq = await stock.publish("chat.acme.u1.-.message.v1", {"role": "assistant", "content": "Здравствуйте"})
    reply = await stock.ask("context", min_seq=seq)
    assert [each["content"] for each in reply["messages"]] == ["[2026-11-21 21:30] Привет", "Здравствуйте"]
    assert await stock.contents(min_seq=seq) == ["Привет", "Здравствуйте"]


async def test_changed_settings_apply_to_the_next_request(stock: Stock, mnemon: Deployment) -> None:
    for number in range(2):
        seq = await stock.say(str(number), sent_at="2026-11-21T21:30:00Z")
    stamps = {
        "template": "[Текущее время: {time}] {text}",
        "zone": "Europe/Moscow",
    }
    await write_settings(stock.connection, SettingsV1.create_strict(time_stamps=stamps))
    expected = ["[Текущее время: 2026-11-22 00:30] 0", "[Текущее время: 2026-11-22 00:30] 1"]
    async with asyncio.timeout(60):
        shown: list[str] = []
        while shown != expected:
            shown = [each["content"] for each in (await stock.ask("context", min_seq=seq))["messages"]]


async def test_a_conversation_is_found_by_log_position(stock: Stock) -> None:
    await stock.say("before any")
    await stock.publish("chat.acme.u1.trip.started.v1")
    await stock.say("about the trip")
    await stock.say("named", "acme.u1.work")
    await stock.say("about work")
    await stock.say("back to the trip", "acme.u1.trip")
    seq = await stock.say("work again")
    first = (await stock.ask("status", min_seq=seq))["conversation"]
    assert first == "work"
    assert await stock.contents(min_seq=seq) == ["named", "about work", "work again"]
    assert await stock.contents(conversation="trip", min_seq=seq) == ["about the trip", "back to the trip"]


async def test_new_conversation_discards_earlier_messages(stock: Stock) -> None:
    await stock.say("old")
    await stock.say("old, elsewhere", "acme.u1.c1")
    await stock.publish("memory.acme.u1.profile.set.v1", {"fields": {"name": "Anna"}})
    await stock.publish("chat.acme.u1.-.started.v1", {"discard_previous": True})
    seq = await stock.say("new")
    assert await stock.contents(min_seq=seq) == ["new"]
    assert await stock.contents(conversation="c1", min_seq=seq) == []
    assert (await stock.ask("profile", min_seq=seq))["profile"] == {"name": "Anna"}
    status = await stock.ask("status", min_seq=seq)
    assert (status["messages"], status["conversations"]) == (1, 1)


async def test_clearing_keeps_the_conversation(stock: Stock) -> None:
    await stock.say("a", "acme.u1.c1")
    await stock.say("b", "acme.u1.c2")
    await stock.publish("chat.acme.u1.c1.cleared.v1")
    seq = await stock.say("c", "acme.u1.c1")
    assert await stock.contents(conversation="c1", min_seq=seq) == ["c"]
    assert await stock.contents(conversation="c2", min_seq=seq) == ["b"]
    await stock.publish("chat.acme.u1.-.cleared.v1", b"")
    seq = await stock.say("d")
    assert await stock.contents(min_seq=seq) == ["d"], "the current one is c2, which was named last"
    assert await stock.contents(conversation="c1", min_seq=seq) == ["c"]
    assert (await stock.ask("status", min_seq=seq))["conversation"] == "c2"


async def test_unknown_conversation_is_empty(stock: Stock) -> None:
    await stock.say("a", "acme.u1.c1")
    for verb in ("history", "context"):
        reply = await stock.ask(verb, conversation="unknown")
        assert "error" not in reply
        assert not [each for each in reply["messages"] if each["role"] == "user"]


@pytest.mark.parametrize(
    ("verb", "request_body", "code", "field", "names"),
    [
        ("history", {"limit": 0}, "bad_request", "limit", "limit"),
        ("history", {"limit": "many"}, "bad_request", "limit", "limit"),
        ("history", {"before": -1}, "bad_request", "before", "before"),
        ("context", {"format": "poem"}, "bad_request", "format", "format"),
        ("profile", {"fields": {"a\0": 1}}, "bad_request", "fields", "fields"),
        ("tasks", {"action": "add"}, "bad_request", "text", "text"),
        ("export", {}, "unknown_verb", None, "'export'"),
    ],
)
async def test_errors_are_typed_and_name_the_field(
    stock: Stock, verb: str, request_body: dict[str, Any], code: str, field: str | None, names: str
) -> None:
    reply = await stock.ask(verb, **request_body)
    assert (reply["error"]["code"], reply["error"].get("field")) == (code, field)
    assert names in reply["error"]["message"]
    assert reply["error"]["retryable"] is False


@pytest.mark.parametrize(
    ("subject", "code", "names"),
    [
        (
            "ask.acme.u1.remember.v1",
            "unknown_verb",
            "there is no verb 'remember'; use one of: context,",
        ),
        ("ask.acme.u1.history.v7", "unknown_verb", "there is no version v7 of history; the latest is v1"),
        ("ask.acme.history.v1", "bad_request", "expected ask.<tenant>.<user>.<verb>.v<N>"),
        ("ask.acme.u1.history", "bad_request", "expected ask.<tenant>.<user>.<verb>.v<N>"),
        ("ask.acme.u1.history.v1.more", "bad_request", "expected ask.<tenant>.<user>.<verb>.v<N>"),
        ("ask.acme.an%61.remember.v1", "bad_request", "must be spelled 'ana'"),
    ],
)
async def test_unknown_verb_is_answered_with_an_error(
    stock: Stock, subject: str, code: str, names: str
) -> None:
    message = await stock.connection.request(subject, b"{}", timeout=60)
    error = json.loads(message.data)["error"]
    assert (error["code"], error["retryable"]) == (code, False)
    assert names in error["message"]
    assert (message.headers or {})["Nats-Service-Error-Code"] == code


@pytest.mark.parametrize(
    ("verb", "request_body"),
    [
        ("history", {"limit": 3}),
        ("context", {"query": "tea"}),
        ("search", {"query": "tea"}),
        ("profile", {"fields": {"name": "Anna"}}),
        ("forget", {}),
    ],
)
async def test_a_field_that_the_verb_does_not_have_is_named(
    stock: Stock, verb: str, request_body: dict[str, Any]
) -> None:
    plain = await stock.ask(verb, **request_body)
    assert "warnings" not in plain
    [warning] = (warned := await stock.ask(verb, **request_body, colection="b"))["warnings"]
    assert "'colection'" in warning
    assert f"{verb} has no field" in warning
    assert warned.keys() - {"warnings"} == plain.keys(), "it is answered all the same"
    unknown: dict[str, Any] = {f"{number}\n" + "x" * 999: 1 for number in range(99)}
    many = await stock.ask(verb, **request_body, **unknown)
    assert len(many["warnings"]) == 10
    assert all(warning.isprintable() and len(warning) < 300 for warning in many["warnings"])


async def test_stock_tools_see_the_service(stock: Stock) -> None:
    message = await stock.connection.request("$SRV.INFO.mnemon", timeout=60)
    assert b"ask.*.*.history.v1" in message.data
    await stock.ask("history")
    message = await stock.connection.request("$SRV.STATS.mnemon", timeout=60)
    by_name = {each["name"]: each for each in json.loads(message.data)["endpoints"]}
    assert by_name["history"]["num_requests"] == 1
    assert by_name["history"]["processing_time"] > 0


async def test_two_users_may_use_the_same_event_id(stock: Stock) -> None:
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)
    await memory.publish("u1", "user", "mine", id="5121")
    last = await memory.publish("u2", "user", "also mine", id="5121")
    assert await memory.publish("u2", "user", "also mine", id="5121") == last, "a repetition is recognised"
    assert await stock.contents("acme.u1", min_seq=last) == ["mine"]
    reply = await memory.history("u2", min_seq=last)
    assert [(message.id, message.content) for message in reply.messages] == [("5121", "also mine")]


async def test_first_and_last_dates_are_stored(stock: Stock) -> None:
    """Dates that every time zone can express are accepted; others make the message a dead letter."""
    await write_settings(
        stock.connection, SettingsV1.create_strict(time_stamps={"zone": "Pacific/Kiritimati"})
    )
    for number, moment in enumerate(
        (
            "9999-12-31T23:59:59.999999Z",
            "9998-12-31T23:59:59.999999Z",
            "0002-01-01T00:00:00+14:00",
            "0001-01-01T00:00:00Z",
        )
    ):
        seq = await stock.say(str(number), sent_at=moment)
    assert await stock.contents(min_seq=seq) == ["1", "2"]
    assert len((await stock.ask("context", min_seq=seq))["messages"]) == 2
    await persisted(stock.connection, seq)
    assert (await stock.connection.jetstream().stream_info("DEAD")).state.messages == 2


async def test_end_without_row_change_is_reflected(stock: Stock) -> None:
    await stock.say("hi")
    last = await stock.publish("chat.acme.u1.-.message.v1", b"{bad")
    reply = await stock.ask("status", min_seq=last)
    assert (reply["seen_seq"], reply["log_seq"]) == (last, last)
