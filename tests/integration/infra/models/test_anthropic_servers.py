"""Address and key for Anthropic's models, and servers with incomplete or malformed answers."""

import re
import traceback
from collections.abc import Callable, Mapping
from typing import get_args

import pytest

from mnemon_bench.provider_server import server as provider_server
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_bench.provider_server.wire import HttpResponse, Route
from mnemon_infra.config import Deployment
from mnemon_infra.models.language.port import (
    ModelNotConfigured,
    ModelRefused,
    ModelUnavailable,
)
from tests.support.suites.language_model import KEY, asking, facts, open_anthropic


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, HttpResponse], None]:
    """Return a function that replaces the response of a route, such as `GET /v1/models/.*`."""

    def answer(path: str, response: HttpResponse) -> None:
        method, pattern = path.split()
        route = Route(method, re.compile(pattern), lambda *_: response)
        monkeypatch.setattr(provider_server, "ROUTES", (route, *provider_server.ROUTES))

    return answer


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"id": "m", "object": "model"}, id="as OpenAI says it"),
        pytest.param({"id": "m", "capabilities": {}}, id="nothing of what it can"),
        pytest.param([], id="a list"),
        pytest.param(b"null", id="nothing"),
    ],
)
async def test_server_with_an_incomplete_description_of_its_model_is_asked(
    body: object, provider: ProviderServer, answers: Callable[[str, HttpResponse], None]
) -> None:
    answers("GET /v1/models/.*", HttpResponse(body))
    async with open_anthropic(None, Deployment(anthropic_url=provider.url)) as model:
        await model.complete(asking("I like tea"))
        assert model.batches is not None
    assert provider.state.asked == {"I like tea": 1}


@pytest.mark.parametrize(
    "response",
    [
        HttpResponse({}),
        HttpResponse([]),
        HttpResponse(b"null"),
        HttpResponse(b"<html>", headers={"Content-Type": "text/html"}),
    ],
)
async def test_malformed_message_is_no_answer(
    response: HttpResponse, provider: ProviderServer, answers: Callable[[str, HttpResponse], None]
) -> None:
    answers("POST /v1/messages", response)
    async with open_anthropic(None, Deployment(anthropic_url=provider.url)) as model:
        with pytest.raises(ModelUnavailable, match=r"gave an unusable answer.*MNEMON_ANTHROPIC_URL"):
            await model.complete(asking("I like tea"))


async def test_exhausted_credit_is_not_retried(
    provider: ProviderServer, answers: Callable[[str, HttpResponse], None]
) -> None:
    error = {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}}
    answers("POST /v1/messages", HttpResponse({"type": "error", "error": error}, 429))
    async with open_anthropic(None, Deployment(anthropic_url=provider.url)) as model:
        with pytest.raises(ModelRefused, match="requires payment"):
            await model.complete(asking("I like tea"))


def test_the_default_model_is_listed_by_the_sdk() -> None:
    from anthropic.types import ModelParam

    from mnemon_infra.models.language.anthropic.model import USUAL_MODEL

    literal, _ = get_args(ModelParam)
    assert USUAL_MODEL in get_args(literal)


async def test_a_key_is_needed_for_anthropic_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ModelNotConfigured, match="set ANTHROPIC_API_KEY"):
        async with open_anthropic(None, Deployment()):
            pass


async def test_a_key_that_cannot_be_sent_is_refused_without_showing_it() -> None:
    deployment = Deployment(anthropic_api_key="ключ\n1")
    with pytest.raises(ModelNotConfigured) as raised:
        async with open_anthropic(None, deployment):
            pass
    assert "ключ" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(("variables", "key"), [({}, "none"), ({"ANTHROPIC_API_KEY": f"{KEY}\n"}, KEY)])
async def test_key_and_address_ignore_the_environment_of_the_sdk(
    variables: Mapping[str, str], key: str, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mnemon_infra.models.language.anthropic.model import USUAL_MODEL

    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "of-another-program")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    provider.state.key = key
    for name, value in {"MNEMON_ANTHROPIC_URL": provider.url, **variables}.items():
        monkeypatch.setenv(name, value)
    async with open_anthropic(None, Deployment()) as model:
        assert facts(await model.complete(asking("I like tea"))) == ["User likes tea"]
    assert provider.state.questions[0].model == USUAL_MODEL
