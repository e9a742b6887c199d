"""The budget of a tenant includes calls in flight: online, in batches and in summaries."""

import asyncio
import json
from datetime import timedelta

import pytest

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_consumers.domain.spending import budget
from mnemon_infra.config import Deployment
from tests.support.pipelines.extraction import MODEL, TIMEOUT, ExtractionHarness
from tests.support.stock_client import Stock

LIMIT = 5.0
USERS = 30

ANSWER = json.dumps({"facts": [{"text": f"The user likes tea of sort {number}"} for number in range(200)]})
"""A long answer, so that the estimate of its cost is close to the real cost."""


@pytest.fixture
async def budgeted_extraction(
    stock: Stock, deployment: Deployment, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> ExtractionHarness:
    monkeypatch.setattr(budget, "CACHED_TENANTS", timedelta(seconds=0.5))
    provider.state.answering = lambda _: ANSWER
    provider.state.polls = 0
    extracting = ExtractionHarness.on(stock, deployment, provider)
    price = [{"model": MODEL, "input": 0.0, "output": 1e6 / len(ANSWER.split())}]
    await extracting.set(provider="openai", model=MODEL, idle_seconds=1.0, spending__prices=price)
    await extracting.set("acme", spending__usd_per_day=LIMIT)
    return extracting


async def spent(budgeted_extraction: ExtractionHarness) -> float:
    return float(sum(each["usd"] for each in await budgeted_extraction.log_of("model.called", tenant="acme")))


async def spend(budgeted_extraction: ExtractionHarness) -> None:
    """Run scans until the budget is spent, and three more."""
    async with asyncio.timeout(2 * TIMEOUT):
        while await spent(budgeted_extraction) < LIMIT:
            await budgeted_extraction.time_passes()
            await asyncio.sleep(0.1)
    for _ in range(3):
        await budgeted_extraction.time_passes()
    await budgeted_extraction.is_projected()


@pytest.mark.long
async def test_budget_counts_calls_in_flight(budgeted_extraction: ExtractionHarness) -> None:
    """Each call costs 1 USD, and one call may exceed the budget."""
    budgeted_extraction.server.state.seconds = 0.2
    async with budgeted_extraction.running():
        await budgeted_extraction.cut_of(USERS)
        await budgeted_extraction.set(mode="online")
        await spend(budgeted_extraction)
    assert LIMIT <= await spent(budgeted_extraction) <= LIMIT + 1
    waiting = "SELECT DISTINCT attempts FROM windows WHERE NOT is_answered"
    assert await budgeted_extraction.sql(waiting) == [(0,)]


@pytest.mark.long
async def test_budget_counts_lines_before_submission(budgeted_extraction: ExtractionHarness) -> None:
    """Each line costs 0.5 USD, and one line may exceed the budget."""
    async with budgeted_extraction.running():
        await budgeted_extraction.cut_of(USERS)
        await spend(budgeted_extraction)
    assert LIMIT <= await spent(budgeted_extraction) <= LIMIT + 0.5
    intended = await budgeted_extraction.log_of("batch.intended", tenant="acme")
    assert intended
    assert all(each["usd"] > 0 for each in intended)
    assert await budgeted_extraction.sql("SELECT DISTINCT attempts FROM windows WHERE NOT is_answered") == [
        (0,)
    ]


@pytest.mark.long
async def test_budget_reserves_the_cost_of_a_batch(
    budgeted_extraction: ExtractionHarness,
) -> None:
    """The cost stays reserved after a restart, when only the log records the batch."""
    budgeted_extraction.server.state.polls = 1_000_000
    async with budgeted_extraction.running():
        await budgeted_extraction.cut_of(USERS)
        await budgeted_extraction.becomes("SELECT state FROM batches", ("submitted",))
        await budgeted_extraction.is_projected()
    (batch,) = budgeted_extraction.server.state.list_batches("openai")
    assert 0 < len(batch.lines) < USERS
    await budgeted_extraction.set(mode="online")
    async with budgeted_extraction.running():
        await budgeted_extraction.stock.say("I like tea", "globex.u1.-")
        for _ in range(3):
            await budgeted_extraction.time_passes()
        await budgeted_extraction.has(1, "window.answered", tenant="globex")
        assert await spent(budgeted_extraction) == 0
        batch.polls = 0
        await spend(budgeted_extraction)
    assert LIMIT <= await spent(budgeted_extraction) <= LIMIT + 1
