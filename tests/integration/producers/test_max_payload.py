"""Messages that are larger than a NATS server accepts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from mnemon_contracts.events.chat import MessageV1
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed, PublishFailed
from mnemon_producers.events import ChatEvent

EXCESS = (
    "the NATS server accepts at most 65,536 bytes; send less, or raise `max_payload` of the server and "
    "connect again"
)


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MemoryClient]:
    server = NatsServer(tmp_path, None, max_payload=65_536)
    await server.start()
    async with MemoryClient.connect(server.url, tenant="acme") as memory:
        yield memory
    await server.stop()


async def test_event_that_the_server_does_not_accept_names_its_limit(memory: MemoryClient) -> None:
    text = "x" * 65_536
    for publishing in (
        memory.publish("u1", "user", text),
        memory.publish_many([ChatEvent("u1", MessageV1(role="user", content=text))]),
    ):
        with pytest.raises(PublishFailed, match=EXCESS) as failed:
            await publishing
        assert not failed.value.retryable


async def test_request_that_the_server_does_not_accept_is_not_retryable(memory: MemoryClient) -> None:
    with pytest.raises(AskFailed, match=EXCESS) as failed:
        await memory.add_document("u1", "x" * 65_536)
    assert (failed.value.code, failed.value.retryable) == ("refused", False)
