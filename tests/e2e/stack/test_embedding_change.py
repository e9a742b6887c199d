"""A change of a stack's embedding model: its output, and the next start of the stack."""

import asyncio
import json

import nats
import pytest

from tests.support.processes.stack import TIMEOUT, Up, mnemon


async def found(address: str, query: str, seq: int) -> list[str]:
    async with await nats.connect(address) as client:
        body = json.dumps({"query": query, "min_seq": seq, "scope": ["messages"]}).encode()
        reply = await client.request("ask.acme.u1.search.v1", body, timeout=60)
    return [hit["text"] for hit in json.loads(reply.data)["hits"]]


@pytest.mark.long
async def test_a_stack_without_embeddings_starts_and_searches_by_words(stack: Up) -> None:
    assert stack.endpoints is not None
    async with await nats.connect(stack.endpoints.nats) as client:
        body = b'{"role": "user", "content": "I keep my bicycle in the cellar"}'
        said = await client.request("chat.acme.u1.-.message.v1", body, timeout=60)
    seq = json.loads(said.data)["seq"]
    data = str(stack.data)
    changed = await mnemon("settings", "set", "embedding.provider=none", "--data", data)
    assert changed.code == 0
    assert "words only" in changed.err
    again = await mnemon("settings", "set", "embedding.provider=none", "--data", data)
    assert (again.code, again.err) == (0, "")

    await stack.stop()
    endpoints = await stack.start()

    async with asyncio.timeout(TIMEOUT):
        while not await found(endpoints.nats, "bicycle", seq):
            await asyncio.sleep(0.1)
    # The stack starts a second time.
    await stack.stop()
    await stack.start()
    changed = await mnemon("settings", "set", "embedding.provider=wordllama", "--data", data)
    assert "mnemon reindex" in changed.err
