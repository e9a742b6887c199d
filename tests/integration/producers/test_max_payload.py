"""Messages that are larger than a NATS server accepts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from nats.aio.client import Client

from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.verbs.tools import DocumentReplyV1, DocumentV1
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_producers.client import MemoryClient
from mnemon_producers.connection import connect
from mnemon_producers.errors import AskFailed, PublishFailed
from mnemon_producers.events import ChatEvent, encode_event
from mnemon_producers.requests import Questioner
from mnemon_producers.timeouts import Timeouts

EXCESS = (
    "the NATS server accepts at most 65,536 bytes; send less, or raise `max_payload` of the server and "
    "connect again"
)


@pytest_asyncio.fixture
async def narrow(tmp_path: Path) -> AsyncIterator[Client]:
    server = NatsServer(tmp_path, None, max_payload=65_536)
    await server.start()
    async with await connect(server.url) as narrow:
        yield narrow
    await server.stop()


@pytest.fixture
def memory(narrow: Client) -> MemoryClient:
    return MemoryClient(narrow, tenant="acme")


async def test_event_that_the_server_does_not_accept_names_its_limit(memory: MemoryClient) -> None:
    text = "x" * 65_536
    for publishing in (
        memory.publish("u1", "user", text),
        memory.publish_many([ChatEvent("u1", MessageV1(role="user", content=text))]),
    ):
        with pytest.raises(PublishFailed, match=EXCESS) as failed:
            await publishing
        assert not failed.value.retryable


async def test_event_that_exceeds_the_limit_with_its_headers_leaves_the_connection_open(
    memory: MemoryClient,
) -> None:
    empty = ChatEvent("u1", MessageV1(role="user", content=""))
    text = "x" * (65_536 - len(encode_event("acme", empty, "id").body))
    event = ChatEvent("u1", MessageV1(role="user", content=text))
    publishings = (
        lambda: memory.publish("u1", "user", text),
        lambda: memory.publish_many([event]),
        lambda: memory.publish_many([event, empty]),
    )
    for publish in publishings:
        with pytest.raises(PublishFailed, match=EXCESS):
            await publish()


async def test_request_that_exceeds_the_limit_with_its_headers_leaves_the_connection_open(
    narrow: Client,
) -> None:
    questioner = Questioner(narrow, "acme", Timeouts())
    length = 65_536 - len(DocumentV1(action="add", text="").model_dump_json(exclude_unset=True))
    request = DocumentV1(action="add", text="x" * length)
    for _ in range(2):
        with pytest.raises(AskFailed, match=EXCESS):
            await questioner.ask("u1", "document", request, DocumentReplyV1, request_id="one")


async def test_request_that_the_server_does_not_accept_is_not_retryable(memory: MemoryClient) -> None:
    with pytest.raises(AskFailed, match=EXCESS) as failed:
        await memory.add_document("u1", "x" * 65_536)
    assert (failed.value.code, failed.value.retryable) == ("refused", False)
