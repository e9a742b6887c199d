"""Delayed batches: their results are read days later, or the settings change before their submission."""

from collections.abc import Mapping
from typing import Any

import pytest

from mnemon_bench.provider_server.faults import HttpFault
from tests.support.pipelines.extraction import WAITING, ExtractionHarness


@pytest.mark.long
async def test_results_fetched_days_later_are_not_paid_again(
    batch_extraction: ExtractionHarness,
) -> None:
    batch_extraction.server.state.polls = 1_000_000
    async with batch_extraction.running():
        await batch_extraction.cut_of(3)
        await batch_extraction.becomes("SELECT state FROM batches", ("submitted",))
    (batch,) = batch_extraction.server.state.list_batches("openai")
    batch.polls = 0
    await batch_extraction.sql(
        "UPDATE batches SET created_at = now() - interval '4 days', deadline_at = now() - interval '3 days'"
    )
    async with batch_extraction.running():
        answers = await batch_extraction.has(3, "window.answered")
    assert all("batch_id" in each for each in answers)
    assert set(batch_extraction.server.state.asked.values()) == {1}


@pytest.mark.long
async def test_endless_batch_is_given_up(batch_extraction: ExtractionHarness) -> None:
    batch_extraction.server.state.polls = 1_000_000
    batch_extraction.server.state.faults.requests.extend([HttpFault(400, path="/cancel")] * 100)
    await batch_extraction.set(deadline_hours=2 / 3600)
    async with batch_extraction.running():
        await batch_extraction.cut_of(3)
        answers = await batch_extraction.has(3, "window.answered")
        await batch_extraction.becomes(
            "SELECT state, error FROM batches", ("failed", "the batch exceeded its deadline")
        )
    assert all("batch_id" not in each for each in answers)


LEAVING: Mapping[str, Mapping[str, Any]] = {
    "another model": {"model": "another-model", "pool_seconds": 3600},
    "off": {"enabled": False},
    "no budget": {"spending__usd_per_day": 0.0},
}


@pytest.mark.long
@pytest.mark.parametrize("how", LEAVING)
async def test_tenant_with_changed_settings_leaves_the_batch(
    batch_extraction: ExtractionHarness, how: str
) -> None:
    await batch_extraction.set(pool_seconds=3600)
    batch_extraction.server.state.key = "another"
    async with batch_extraction.running():
        await batch_extraction.stock.say("I like tea", "acme.u1.-")
        await batch_extraction.stock.say("I like coffee", "globex.u1.-")
        await batch_extraction.becomes(WAITING, (2,))
        await batch_extraction.set(pool_seconds=0)
        await batch_extraction.becomes("SELECT state, error IS NULL FROM batches", ("intended", False))
    await batch_extraction.set("acme", **LEAVING[how])
    batch_extraction.server.state.key = None
    async with batch_extraction.running():
        await batch_extraction.has(1, "window.answered", tenant="globex")
        await batch_extraction.becomes(WAITING, (1,))
    assert [len(batch.lines) for batch in batch_extraction.server.state.list_batches("openai")] == [1]
    assert batch_extraction.server.state.asked
    assert not any("tea" in text for text in batch_extraction.server.state.asked)
