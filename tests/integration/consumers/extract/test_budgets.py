"""A tenant's budget counts what is under way before it is sent: online, in batches and in summaries."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_infra.config import Deployment
from tests.integration.conftest import Stock
from tests.support.pipelines.extraction import MODEL, PATIENCE, Extracting

LIMIT = 5.0
USERS = 30

ANSWER = json.dumps({"facts": [{"text": f"The user likes tea of sort {number}"} for number in range(200)]})
"""So long that the estimate of an answer is not far from it."""


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        server.state.answering = lambda _: ANSWER
        server.state.polls = 0
        yield server


@pytest.fixture
async def extracting(stock: Stock, deployment: Deployment, server: ProviderServer) -> Extracting:
    extracting = Extracting.on(stock, deployment, server)
    price = [{"model": MODEL, "input": 0.0, "output": 1e6 / len(ANSWER.split())}]
    await extracting.set(provider="openai", model=MODEL, idle_seconds=1.0, spending__prices=price)
    await extracting.set("acme", spending__usd_per_day=LIMIT)
    return extracting


async def spent(extracting: Extracting) -> float:
    return float(sum(each["usd"] for each in await extracting.log_of("model.called", tenant="acme")))


async def spend(extracting: Extracting) -> None:
    """Go on until the budget is spent, and let extraction look a few times more."""
    async with asyncio.timeout(2 * PATIENCE):
        while await spent(extracting) < LIMIT:
            await extracting.time_passes()
            await asyncio.sleep(0.1)
    for _ in range(3):
        await extracting.time_passes()
    await extracting.is_projected()


@pytest.mark.timeout(120)
async def test_calls_in_flight_count(extracting: Extracting) -> None:
    """Each costs 1 USD: one alone may go beyond the budget."""
    extracting.server.state.seconds = 0.2
    async with extracting.running():
        await extracting.cut_of(USERS)
        await extracting.set(mode="online")
        await spend(extracting)
    assert LIMIT <= await spent(extracting) <= LIMIT + 1
    waiting = "SELECT DISTINCT attempts FROM windows WHERE NOT is_answered"
    assert await extracting.sql(waiting) == [(0,)]


@pytest.mark.timeout(120)
async def test_lines_of_a_batch_count_before_it_is_submitted(extracting: Extracting) -> None:
    """Each costs 0.5 USD."""
    async with extracting.running():
        await extracting.cut_of(USERS)
        await spend(extracting)
    assert LIMIT <= await spent(extracting) <= LIMIT + 0.5
    intended = await extracting.log_of("batch.intended", tenant="acme")
    assert all(each["usd"] > 0 for each in intended)
    assert await extracting.sql("SELECT DISTINCT attempts FROM windows WHERE NOT is_answered") == [(0,)]


async def test_what_a_batch_may_cost_keeps_others_from_the_same_budget(extracting: Extracting) -> None:
    """Also after a restart, when only the log knows of it."""
    extracting.server.state.polls = 1_000_000
    async with extracting.running():
        await extracting.cut_of(USERS)
        await extracting.becomes("SELECT state FROM batches", ("submitted",))
    (batch,) = extracting.server.state.batches("openai")
    assert 0 < len(batch.lines) < USERS
    await extracting.set(mode="online")
    async with extracting.running():
        await extracting.stock.say("I like tea", "globex.u1.-")
        for _ in range(3):
            await extracting.time_passes()
        await extracting.has(1, "window.answered", tenant="globex")
        assert await spent(extracting) == 0
        batch.polls = 0
        await spend(extracting)
    assert LIMIT <= await spent(extracting) <= LIMIT + 1
