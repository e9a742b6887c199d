"""Selection of language models by the settings of a running process."""

import asyncio
import sys

import pytest

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_contracts.settings.language_models import Provider
from mnemon_infra.config import Deployment
from mnemon_infra.models.language.port import ModelNotConfigured
from mnemon_infra.models.language.registry import open_language_models
from tests.support.servers.provider_requests import wait_for_requests
from tests.support.suites.language_model import asking, facts


async def test_a_model_is_opened_once_and_another_setting_is_another_model() -> None:
    with ProviderServer() as server:
        async with open_language_models(Deployment(model_url=server.openai_url)) as models:
            usual, other, again = await asyncio.gather(
                models.open_model("openai", None),
                models.open_model("openai", "llama3"),
                models.open_model("openai", None),
            )
            assert again is usual
            assert (usual.model, other.model, other.provider) == ("gpt-4.1-mini", "llama3", "openai")
            assert facts(await other.complete(asking("I like tea"))) == ["User likes tea"]
        assert [question.model for question in server.state.questions] == ["llama3"]


async def test_all_models_share_the_calls_that_may_be_in_flight() -> None:
    with ProviderServer() as server:
        released = server.state.hold_answers()
        deployment = Deployment(model_url=server.openai_url, model_requests=3)
        async with open_language_models(deployment) as models:
            both = [await models.open_model("openai", name) for name in ("one", "two")]
            asked = [asking(f"I like tea {number}") for number in range(6)]
            async with asyncio.TaskGroup() as group:
                for model in both:
                    for request in asked:
                        group.create_task(model.complete(request))
                await wait_for_requests(server.state, 3)
                released.set()
        assert server.state.most_in_flight == 3
        assert sum(server.state.asked.values()) == 12


async def test_offline_model_has_one_name() -> None:
    async with open_language_models(Deployment()) as models:
        assert (await models.open_model("offline", None)).model == "rules"
        assert (await models.open_model("offline", "rules")).batches is None
        with pytest.raises(ModelNotConfigured, match="gpt-5: name no model, or rules, in"):
            await models.open_model("offline", "gpt-5")


@pytest.mark.parametrize(
    ("provider", "package", "extra"),
    [
        ("anthropic", "anthropic", "anthropic"),
        ("google", "google.genai", "google"),
        ("openai", "openai", "server"),
    ],
)
async def test_a_package_that_is_missing_is_named(
    provider: Provider, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.startswith((package, f"mnemon_infra.models.language.{provider}")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    async with open_language_models(Deployment()) as models:
        with pytest.raises(ModelNotConfigured, match=rf"pip install 'mnemon\[{extra}\]'"):
            await models.open_model(provider, None)


@pytest.mark.parametrize(
    ("provider", "variable"),
    [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY"), ("google", "GEMINI_API_KEY")],
)
async def test_a_key_that_is_missing_is_named(
    provider: Provider, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with open_language_models(Deployment()) as models:
        with pytest.raises(ModelNotConfigured, match=variable):
            await models.open_model(provider, None)
