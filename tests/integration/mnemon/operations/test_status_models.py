"""What `status` says of language models that do not answer, and of windows that were given up."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from mnemon.operations.health import failing_models
from mnemon.operations.health.report import Health, examine_deployment
from mnemon_bench.provider_server.faults import HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_infra.config import Deployment
from tests.integration.conftest import Stock
from tests.support.pipelines.extraction import KEY, MODEL, PATIENCE, Extracting


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
async def extracting(stock: Stock, deployment: Deployment, server: ProviderServer) -> Extracting:
    extracting = Extracting.on(stock, deployment, server)
    await extracting.set(provider="openai", model=MODEL, mode="online", idle_seconds=1.0, pool_seconds=0)
    return extracting


async def seen(extracting: Extracting, *words: str) -> Health:
    """Wait until a problem says all of this."""
    async with asyncio.timeout(PATIENCE):
        while True:
            health = await examine_deployment(extracting.deployment)
            if any(all(word in problem for word in words) for problem in health.problems):
                assert not health.healthy
                return health
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("mode", ["online", "batch"])
async def test_a_refused_key_is_a_problem_until_it_is_mended(mode: str, extracting: Extracting) -> None:
    await extracting.set(mode=mode)
    extracting.server.state.key = "another"
    begun = datetime.now(UTC) - timedelta(minutes=1)
    async with extracting.running():
        await extracting.stock.say("I like tea")
        health = await seen(
            extracting, f"openai/{MODEL} of acme", "refuses the key (HTTP 401)", "Correct the key"
        )
        assert health.models is not None
        (failing,) = health.models.failing
        assert (failing.tenants, failing.is_refused) == (("acme",), True)
        assert begun < failing.since <= datetime.now(UTC)
        assert KEY not in health.model_dump_json()
    extracting.server.state.key = KEY
    async with extracting.running():
        await extracting.time_passes()
        await extracting.has(1, "window.answered")
        health = await examine_deployment(extracting.deployment)
    assert health.models is not None
    assert health.models.failing == ()


async def test_a_model_that_does_not_exist_is_a_problem_until_another_is_set(extracting: Extracting) -> None:
    extracting.server.state.faults.requests.extend([HttpFault(404, path="chat")] * 10)
    async with extracting.running():
        await extracting.stock.say("I like tea")
        await seen(extracting, f"openai/{MODEL} of acme", "has no model", "HTTP 404")
        extracting.server.state.faults.requests.clear()
        await extracting.set(model="another")
        await extracting.time_passes()
        await extracting.has(1, "window.answered")
        health = await examine_deployment(extracting.deployment)
    assert health.models is not None
    assert health.models.failing == ()


async def test_a_missing_key_is_a_problem(extracting: Extracting) -> None:
    deployment = extracting.deployment.model_copy(update={"model_url": None, "model_api_key": None})
    extracting = Extracting(extracting.stock, deployment, extracting.server)
    async with extracting.running():
        await extracting.stock.say("I like tea")
        await seen(extracting, "acme", "OPENAI_API_KEY")


async def test_an_outage_is_a_problem_when_it_lasts(
    extracting: Extracting, monkeypatch: pytest.MonkeyPatch
) -> None:
    extracting.server.state.faults.requests.extend([HttpFault(503)] * 1000)
    async with extracting.running():
        await extracting.stock.say("I like tea")
        await extracting.becomes("SELECT attempts, due_at > cut_at FROM windows", (0, True))
        health = await examine_deployment(extracting.deployment)
        assert health.models is not None
        assert health.models.failing == ()
        monkeypatch.setattr(failing_models, "TOLERATED_SILENCE", timedelta(0))
        health = await seen(extracting, f"openai/{MODEL} of acme", "HTTP 503", "asked again")
        assert health.models is not None
        assert not health.models.failing[0].is_refused


async def test_windows_that_were_given_up_are_a_problem_until_they_are_read(extracting: Extracting) -> None:
    state = extracting.server.state
    state.faults.rewrite = lambda _, body: {**body, "choices": []}
    await extracting.set(attempts=1)
    async with extracting.running():
        for number in range(3):
            await extracting.stock.say("I like tea", f"acme.u{number}.-")
        await extracting.stock.say("I like tea", "globex.u1.-")
        await extracting.has(4, "window.answered")
        health = await seen(
            extracting,
            "3 windows of acme were given up by extract since",
            f"openai/{MODEL}, unreadable",
            "mnemon dead redrive",
        )
        assert health.models is not None
        assert [(each.tenant, each.windows) for each in health.models.given_up] == [
            ("acme", 3),
            ("globex", 1),
        ]
        state.faults.rewrite = lambda _, body: body
        await extracting.redrive_all()
        await extracting.has(8, "window.answered")
        health = await examine_deployment(extracting.deployment)
    assert health.models is not None
    assert health.models.given_up == ()
