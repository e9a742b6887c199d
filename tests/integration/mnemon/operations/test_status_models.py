"""Status of language models that do not answer, and of windows that were given up."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from mnemon.operations.health import failing_models
from mnemon.operations.health.report import examine_deployment
from mnemon.operations.health.state import Health
from mnemon_bench.provider_server.faults import HttpFault
from mnemon_consumers.model_reports import list_refusals
from mnemon_infra.models.language import circuit_breaker
from tests.support.pipelines.extraction import KEY, MODEL, TIMEOUT, ExtractionHarness


async def seen(online_extraction: ExtractionHarness, *words: str) -> Health:
    """Wait until a problem contains all `words`, and return the health of the deployment."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            health = await examine_deployment(online_extraction.deployment)
            if any(all(word in problem for word in words) for problem in health.problems):
                assert not health.healthy
                return health
            await asyncio.sleep(0.1)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["online", "batch"])
async def test_a_refused_key_is_a_problem_until_it_is_mended(
    mode: str, online_extraction: ExtractionHarness
) -> None:
    await online_extraction.set(mode=mode)
    online_extraction.server.state.key = "another"
    begun = datetime.now(UTC) - timedelta(minutes=1)
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea")
        health = await seen(
            online_extraction, f"openai/{MODEL} of acme", "refuses the key (HTTP 401)", "Correct the key"
        )
        assert health.models is not None
        (failing,) = health.models.failing
        assert (failing.tenants, failing.is_refused) == (("acme",), True)
        assert begun < failing.since <= datetime.now(UTC)
        assert KEY not in health.model_dump_json()
    online_extraction.server.state.key = KEY
    async with online_extraction.running():
        await online_extraction.time_passes()
        await online_extraction.has(1, "window.answered")
        health = await examine_deployment(online_extraction.deployment)
    assert health.models is not None
    assert health.models.failing == ()


@pytest.mark.long
async def test_refused_key_makes_the_process_unready_until_it_is_mended(
    online_extraction: ExtractionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuit_breaker, "REFUSAL_PAUSE", 0.5)
    online_extraction.server.state.key = "another"
    async with online_extraction.running(), asyncio.timeout(TIMEOUT):
        await online_extraction.stock.say("I like tea")
        while not (faults := list_refusals()):
            await asyncio.sleep(0.05)
        (fault,) = faults
        assert fault.kind == "model"
        assert fault.problem.startswith(f"openai/{MODEL} refuses requests")
        assert "check MNEMON_MODEL_API_KEY" in fault.problem
        assert "`extraction.model`" in fault.next_step
        assert KEY not in str(fault)
        online_extraction.server.state.key = KEY
        while list_refusals():
            await online_extraction.time_passes()
            await asyncio.sleep(0.2)


@pytest.mark.long
async def test_a_model_that_does_not_exist_is_a_problem_until_another_is_set(
    online_extraction: ExtractionHarness,
) -> None:
    online_extraction.server.state.faults.requests.extend([HttpFault(404, path="chat")] * 10)
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea")
        await seen(online_extraction, f"openai/{MODEL} of acme", "has no model", "HTTP 404")
        online_extraction.server.state.faults.requests.clear()
        await online_extraction.set(model="another")
        await online_extraction.time_passes()
        await online_extraction.has(1, "window.answered")
        health = await examine_deployment(online_extraction.deployment)
    assert health.models is not None
    assert health.models.failing == ()


@pytest.mark.long
async def test_a_missing_key_is_a_problem(online_extraction: ExtractionHarness) -> None:
    deployment = online_extraction.deployment.model_copy(update={"model_url": None, "model_api_key": None})
    online_extraction = ExtractionHarness(online_extraction.stock, deployment, online_extraction.server)
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea")
        await seen(online_extraction, "acme", "OPENAI_API_KEY")


@pytest.mark.long
async def test_an_outage_is_a_problem_when_it_lasts(
    online_extraction: ExtractionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    online_extraction.server.state.faults.requests.extend([HttpFault(503)] * 1000)
    async with online_extraction.running():
        await online_extraction.stock.say("I like tea")
        await online_extraction.becomes("SELECT attempts, due_at > cut_at FROM windows", (0, True))
        health = await examine_deployment(online_extraction.deployment)
        assert health.models is not None
        assert health.models.failing == ()
        monkeypatch.setattr(failing_models, "TOLERATED_SILENCE", timedelta(0))
        health = await seen(online_extraction, f"openai/{MODEL} of acme", "HTTP 503", "asked again")
        assert health.models is not None
        assert not health.models.failing[0].is_refused


@pytest.mark.long
async def test_windows_that_were_given_up_are_a_problem_until_they_are_read(
    online_extraction: ExtractionHarness,
) -> None:
    state = online_extraction.server.state
    state.faults.rewrite = lambda _, body: {**body, "choices": []}
    await online_extraction.set(attempts=1)
    async with online_extraction.running():
        for number in range(3):
            await online_extraction.stock.say("I like tea", f"acme.u{number}.-")
        await online_extraction.stock.say("I like tea", "globex.u1.-")
        await online_extraction.has(4, "window.answered")
        health = await seen(
            online_extraction,
            "extract has given up 3 windows of acme since",
            f"openai/{MODEL}, unreadable",
            "mnemon dead redrive",
        )
        assert health.models is not None
        assert [(each.tenant, each.windows) for each in health.models.given_up] == [
            ("acme", 3),
            ("globex", 1),
        ]
        state.faults.rewrite = lambda _, body: body
        await online_extraction.redrive_all()
        await online_extraction.has(8, "window.answered")
        health = await examine_deployment(online_extraction.deployment)
    assert health.models is not None
    assert health.models.given_up == ()
