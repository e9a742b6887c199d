"""Erasure of a chat that an earlier import stored with another user."""

import pytest

from mnemon.operations.imports.reassignment import NotReassigned, erase_reassigned_chat
from mnemon.operations.imports.records import Reassignment
from mnemon_contracts.events.chat import MessageV1
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent
from tests.support.stock_client import Stock


async def test_refused_erasure_leaves_the_current_conversation(stock: Stock) -> None:
    memory = MemoryClient(stock.connection, tenant="acme")
    await memory.start("42", "cello")
    await memory.start("42", "telegram-777")
    hello = MessageV1(
        id="telegram:777:1", role="user", content="Hello", metadata={"telegram": {"from_id": "user42"}}
    )
    last = (await memory.publish_many([ChatEvent("42", hello, "telegram-777")])).last_seq
    chat = Reassignment(
        "chat 777", "777", "telegram-777", "user42", frozenset({"42", "777"}), "telegram:777:"
    )

    with pytest.raises(NotReassigned, match=r"that `retrieve` runs\. Import again once `retrieve` answers"):
        await erase_reassigned_chat(stock.connection, "acme", chat)

    log = await stock.connection.jetstream().stream_info("LOG")
    assert log.state.last_seq == last
