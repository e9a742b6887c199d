"""What users say becomes proposed facts: the real consumers, and a local server in place of a provider."""

import asyncio
from collections.abc import Iterator

import pytest

from bench.provider_server.server import ProviderServer
from infra.config import Deployment
from tests.integration.conftest import Stock
from tests.integration.extracting import MODEL, Extracting


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
async def extracting(stock: Stock, deployment: Deployment, server: ProviderServer) -> Extracting:
    extracting = Extracting.on(stock, deployment, server)
    await extracting.set(provider="openai", model=MODEL, idle_seconds=1.0, pool_seconds=0)
    return extracting


@pytest.mark.parametrize("mode", ["online", "batch"])
async def test_a_conversation_that_rests_is_read(extracting: Extracting, mode: str) -> None:
    await extracting.set(mode=mode)
    async with extracting.running():
        await extracting.stock.say("hello, I like tea", "acme.u1.-")
        await extracting.stock.say("Я люблю чай", "acme.u2.talk")
        answers = await extracting.has(2, "window.answered")
        await extracting.has(2, "model.called")
    assert {each["owner"]: each["outcome"] for each in answers} == {
        ("acme", "u1"): "proposed",
        ("acme", "u2"): "proposed",
    }
    assert await extracting.texts(user="u1") == ["User likes tea"]
    assert await extracting.texts(user="u2") == ["Пользователь любит чай"]
    assert set(extracting.server.state.asked.values()) == {1}
