"""Tasks and user data that a reply has no room for are refused before they are stored."""

import pytest
from nats.aio.client import Client

from tests.support.stock_client import Stock

pytestmark = pytest.mark.usefixtures("mnemon")

LARGE = "word " * 180_000  # 900 KB


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
