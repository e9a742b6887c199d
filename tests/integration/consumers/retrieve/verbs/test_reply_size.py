"""The server's limit for a reply: `history` leaves out messages, and writes beyond it are refused."""

from typing import Any

import pytest
from nats.aio.client import Client

from mnemon_consumers.retrieve.verbs import user_log
from tests.support.stock_client import Stock

pytestmark = pytest.mark.usefixtures("mnemon")

LARGE = "word " * 180_000  # 900 KB


async def test_history_returns_the_newest_messages_that_a_reply_has_room_for(
    stock: Stock, connection: Client
) -> None:
    fitting = connection.max_payload // len(LARGE)
    seqs = [await stock.say(f"{number} {LARGE}") for number in range(fitting + 2)]

    reply = await stock.ask("history", min_seq=seqs[-1])

    assert "error" not in reply
    assert [message["seq"] for message in reply["messages"]] == seqs[-fitting:]
    assert reply["left_out"] == 2
    few = await stock.ask("history", limit=fitting, min_seq=seqs[-1])
    assert len(few["messages"]) == fitting
    assert "left_out" not in few
    unknown_fields: dict[str, Any] = {f"{number}" * 64: 1 for number in range(10)}
    unknown = await stock.ask("history", min_seq=seqs[-1], **unknown_fields)
    assert (len(unknown["messages"]), len(unknown["warnings"])) == (fitting, 10)


async def test_history_counts_messages_that_are_not_read(stock: Stock) -> None:
    seqs = [await stock.say(f"{number} {LARGE}") for number in range(24)]
    for limit in (22, 24, 90):
        reply = await stock.ask("history", limit=limit, min_seq=seqs[-1])
        assert len(reply["messages"]) + reply["left_out"] == min(limit, len(seqs))
        assert reply["messages"][-1]["seq"] == seqs[-1]


async def test_message_that_no_reply_has_room_for_is_an_error_with_the_next_step(
    stock: Stock, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_log, "REPLY_HEADROOM", connection.max_payload - len(LARGE))
    await stock.say("short")
    seq = await stock.say(LARGE)
    reply = await stock.ask("history", min_seq=seq)
    assert reply["error"]["code"] == "refused"
    assert f"message at log position {seq}" in reply["error"]["message"]
    assert f"give `before` {seq}" in reply["error"]["message"]


@pytest.mark.long
async def test_page_of_documents_has_as_many_as_a_reply_has_room_for(
    stock: Stock, connection: Client
) -> None:
    fitting = connection.max_payload // len(LARGE)
    for number in range(fitting + 2):
        wanted = {"action": "add", "document_id": f"d{number:02}", "title": LARGE, "text": "Tea"}
        added = await stock.ask("document", **wanted)
    assert (len(added["documents"]), added["document_id"]) == (fitting, f"d{fitting + 1:02}")
    rest = await stock.ask("document", after=added["next"])
    assert [each["document_id"] for each in rest["documents"]] == [f"d{fitting:02}", f"d{fitting + 1:02}"]
    assert "next" not in rest


async def test_user_data_that_no_reply_has_room_for_are_refused(stock: Stock, connection: Client) -> None:
    fitting = connection.max_payload // 2 // len(LARGE)
    for number in range(fitting):
        reply = await stock.ask("profile", fields={f"f{number}": LARGE})
        assert "error" not in reply
    reply = await stock.ask("profile", fields={"city": "Kazan", "more": LARGE})
    assert (reply["error"]["code"], reply["error"]["field"]) == ("refused", "fields")
    assert "remove fields first" in reply["error"]["message"]

    context = await stock.ask("context")
    assert list(context["profile"]) == [f"f{number}" for number in range(fitting)]
    reply = await stock.ask("profile", fields={"f0": None, "city": "Kazan"})
    assert reply["profile"]["city"] == "Kazan"


async def test_tasks_that_no_reply_has_room_for_are_refused(stock: Stock, connection: Client) -> None:
    fitting = connection.max_payload // 2 // len(LARGE)
    for number in range(fitting):
        reply = await stock.ask("tasks", action="add", task_id=f"t{number}", text=LARGE)
        assert len(reply["tasks"]) == number + 1
    reply = await stock.ask("tasks", action="add", task_id="more", text=LARGE)
    assert (reply["error"]["code"], reply["error"]["field"]) == ("refused", "text")
    assert "remove tasks first" in reply["error"]["message"]

    assert len((await stock.ask("tasks"))["tasks"]) == fitting
    again = await stock.ask("tasks", action="add", task_id="t0", text=LARGE)
    assert len(again["tasks"]) == fitting, "a repeated addition changes nothing"
