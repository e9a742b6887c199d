"""Log positions of the messages in conversations that benches publish."""

from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client

from mnemon_bench.workloads.conversations import publish_messages
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.streams import LOG
from mnemon_producers import publisher
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent


async def test_positions_are_those_in_the_log_between_other_events(
    connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "BATCH_MESSAGES", 2)
    other = MemoryClient(connection, tenant="other")

    async def talk() -> AsyncIterator[ChatEvent]:
        for number in range(9):
            await other.publish("u1", "user", "Another conversation")
            yield ChatEvent("u1", MessageV1(role="user", content=f"Message {number}"))

    positions = await publish_messages(connection, talk())

    jetstream = connection.jetstream()
    stored = [await jetstream.get_msg(LOG, position) for position in positions]
    assert [MessageV1.parse(each.data or b"").content for each in stored] == [
        f"Message {number}" for number in range(9)
    ]
