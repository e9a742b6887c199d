"""Batches that are held up: nobody looked after them for days, or the settings went elsewhere meanwhile."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from mnemon_bench.provider_server.faults import HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_infra.config import Deployment
from tests.integration.conftest import Stock
from tests.support.pipelines.extraction import MODEL, WAITING, Extracting


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
async def extracting(stock: Stock, deployment: Deployment, server: ProviderServer) -> Extracting:
    extracting = Extracting.on(stock, deployment, server)
    await extracting.set(provider="openai", model=MODEL, idle_seconds=1.0, pool_seconds=0)
    return extracting


async def test_what_was_answered_while_nobody_looked_for_days_is_read_and_not_paid_for_again(
    extracting: Extracting,
) -> None:
    extracting.server.state.polls = 1_000_000
    async with extracting.running():
        await extracting.cut_of(3)
        await extracting.becomes("SELECT state FROM batches", ("submitted",))
    (batch,) = extracting.server.state.batches("openai")
    batch.polls = 0
    await extracting.sql(
        "UPDATE batches SET created_at = now() - interval '4 days', deadline_at = now() - interval '3 days'"
    )
    async with extracting.running():
        answers = await extracting.has(3, "window.answered")
    assert all("batch_id" in each for each in answers)
    assert set(extracting.server.state.asked.values()) == {1}


async def test_a_batch_that_never_ends_is_given_up(extracting: Extracting) -> None:
    extracting.server.state.polls = 1_000_000
    extracting.server.state.faults.requests.extend([HttpFault(400, path="/cancel")] * 100)
    await extracting.set(deadline_hours=2 / 3600)
    async with extracting.running():
        await extracting.cut_of(3)
        answers = await extracting.has(3, "window.answered")
        await extracting.becomes("SELECT state, error FROM batches", ("failed", "it takes too long"))
    assert all("batch_id" not in each for each in answers)


LEAVING: Mapping[str, Mapping[str, Any]] = {
    "another model": {"model": "another-model", "pool_seconds": 3600},
    "off": {"enabled": False},
    "no budget": {"spending__usd_per_day": 0.0},
}


@pytest.mark.parametrize("how", LEAVING)
async def test_who_has_left_is_not_handed_over_with_those_who_stay(extracting: Extracting, how: str) -> None:
    await extracting.set(pool_seconds=3600)
    extracting.server.state.key = "another"
    async with extracting.running():
        await extracting.stock.say("I like tea", "acme.u1.-")
        await extracting.stock.say("I like coffee", "globex.u1.-")
        await extracting.becomes(WAITING, (2,))
        await extracting.set(pool_seconds=0)
        await extracting.becomes("SELECT state, error IS NULL FROM batches", ("intended", False))
    await extracting.set("acme", **LEAVING[how])
    extracting.server.state.key = None
    async with extracting.running():
        await extracting.has(1, "window.answered", tenant="globex")
        await extracting.becomes(WAITING, (1,))
    assert [len(batch.lines) for batch in extracting.server.state.batches("openai")] == [1]
    assert not any("tea" in text for text in extracting.server.state.asked)
