"""The relay of a provider's response."""

import asyncio
from contextlib import ExitStack

import httpx
import pytest
from starlette.types import Message

from mnemon.gateway.proxy.relay import Relay


async def send(message: Message) -> None:
    raise AssertionError(message)


async def wait_forever() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def test_unexpected_error_ends_the_request() -> None:
    client = httpx.AsyncClient()
    request = client.build_request("GET", "http://127.0.0.1:1/")
    await client.aclose()
    ended: list[str] = []
    ends = ExitStack()
    ends.callback(ended.append, "place")
    with pytest.raises(RuntimeError, match="closed"):
        await Relay(client, request, ends)({"type": "http"}, wait_forever, send)
    assert ended == ["place"]
