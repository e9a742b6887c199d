"""Tests of every language model; a subclass for each provider opens the model."""

import json
import logging
import time
import traceback
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import pytest_asyncio

from mnemon_bench.provider_server.faults import HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_infra.config import Deployment
from mnemon_infra.models.language.port import (
    LanguageModel,
    LineFailed,
    ModelAnswer,
    ModelRefused,
    ModelRequest,
    ModelUnavailable,
    RequestRefused,
    Usage,
)

KEY = "sk-one-that-must-not-be-seen"
MODEL = "a-model-of-our-own"
SAID = "I like tea in secret"

INSTRUCTIONS = "Write down what is said, one fact to a line, and nothing else. " * 40
"""Instructions that are long enough for the provider's cache."""

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "sources": {"type": "array", "items": {"type": "integer"}},
                    "kind": {"type": "string", "enum": ["preference", "event"]},
                },
                "required": ["text", "sources", "kind"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["facts"],
    "additionalProperties": False,
}


def asking(text: str, schema: Mapping[str, Any] | None = SCHEMA) -> ModelRequest:
    return ModelRequest("extract", INSTRUCTIONS, text, schema=schema)


def facts(answer: ModelAnswer | LineFailed) -> list[str]:
    assert isinstance(answer, ModelAnswer)
    return [fact["text"] for fact in json.loads(answer.text)["facts"]]


def open_anthropic(model: str | None, deployment: Deployment) -> AbstractAsyncContextManager[LanguageModel]:
    # Imported here, because each pytest worker imports this module and the SDK takes a second to import.
    from mnemon_infra.models.language.anthropic.model import open_anthropic

    return open_anthropic(model, deployment)


class LanguageSuite:
    """Tests of single requests and their answers."""

    def opened(self, server: ProviderServer, **changes: Any) -> AbstractAsyncContextManager[LanguageModel]:
        """Open the model `MODEL` of the provider at `server`, with the API key `KEY`.

        `changes` are fields of the deployment, such as `model_timeout`.
        """
        raise NotImplementedError

    @pytest.fixture
    def server(self) -> Iterator[ProviderServer]:
        with ProviderServer() as server:
            server.state.key = KEY
            yield server

    @pytest_asyncio.fixture
    async def model(self, server: ProviderServer) -> AsyncIterator[LanguageModel]:
        async with self.opened(server) as model:
            yield model

    async def test_it_is_asked_and_answers(self, server: ProviderServer, model: LanguageModel) -> None:
        answer = await model.complete(asking("Мы пьём много чая и разговариваем", schema=None))
        assert answer.text.startswith("Говорили о том")
        assert not answer.is_cut
        assert model.model == MODEL
        (asked,) = server.state.questions
        assert (asked.model, asked.text, asked.schema) == (MODEL, "Мы пьём много чая и разговариваем", None)
        assert asked.instructions.strip() == INSTRUCTIONS.strip()
        assert asked.most_tokens == 2000 + model.thinking_tokens

    async def test_an_answer_has_the_form_that_is_wanted(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        answer = await model.complete(asking("[7] I like tea\n[8] Я люблю чай"))
        assert json.loads(answer.text) == {
            "facts": [
                {"text": "User likes tea", "sources": [7], "kind": "preference"},
                {"text": "Пользователь любит чай", "sources": [8], "kind": "preference"},
            ]
        }
        assert server.state.questions[0].schema is not None

    async def test_tokens_are_counted_and_those_that_are_cached_among_them(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        used = [(await model.complete(asking(f"I like tea number {number}"))).usage for number in range(3)]
        assert Usage(*(sum(parts) for parts in zip(*used, strict=True))) == Usage(
            server.state.used.input, server.state.used.cached, server.state.used.output
        )
        assert used[0].input == used[2].input == len(INSTRUCTIONS.split()) + 5
        assert used[2].cached == len(INSTRUCTIONS.split())

    @pytest.mark.parametrize("status", [429, 500, 503])
    async def test_failed_request_is_retried(
        self, status: int, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.faults.requests.append(HttpFault(status, retry_after=1 if status == 429 else None))
        started = time.monotonic()
        assert facts(await model.complete(asking("I like tea"))) == ["User likes tea"]
        assert status != 429 or 1 <= time.monotonic() - started < 30
        assert not server.state.faults.requests
        assert server.state.asked == {"I like tea": 1}

    @pytest.mark.parametrize("status", [429, 500])
    async def test_lasting_failure_is_raised(
        self, status: int, server: ProviderServer, model: LanguageModel
    ) -> None:
        wait = 0.1 if status == 429 else None
        server.state.faults.requests.extend([HttpFault(status, retry_after=wait)] * 10)
        with pytest.raises(ModelUnavailable) as raised:
            await model.complete(asking("I like tea"))
        assert not isinstance(raised.value, ModelRefused)
        assert raised.value.retry_after == wait

    async def test_slow_server_times_out(self, server: ProviderServer) -> None:
        server.state.faults.requests.extend([HttpFault(seconds=60)] * 10)
        started = time.monotonic()
        async with self.opened(server, model_timeout=0.2) as model:
            with pytest.raises(ModelUnavailable):
                await model.complete(asking("I like tea"))
        assert time.monotonic() - started < 60, "the server would answer then"

    async def test_unreachable_server_is_reported(self, server: ProviderServer, model: LanguageModel) -> None:
        server.close()
        with pytest.raises(ModelUnavailable):
            await model.complete(asking("I like tea"))

    async def test_a_key_that_is_refused_is_told_at_once_and_never_shown(
        self, server: ProviderServer, model: LanguageModel, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        server.state.key = "another"
        with pytest.raises(ModelRefused, match="key") as raised:
            await model.complete(asking(SAID))
        told = "".join(traceback.format_exception(raised.value)) + caplog.text + repr(model)
        assert KEY not in told
        assert SAID not in told

    async def test_a_key_that_is_missing_is_not_called_refused(self, server: ProviderServer) -> None:
        keys = dict.fromkeys(("model_api_key", "anthropic_api_key", "google_api_key"), "")
        async with self.opened(server, **keys) as model:
            with pytest.raises(ModelRefused, match="none is set"):
                await model.complete(asking("I like tea"))

    async def test_half_an_answer_is_paid_for_and_cannot_be_used(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.faults.requests.extend([HttpFault(is_half=True)] * 10)
        answer = await model.complete(asking("I like tea"))
        assert (answer.text, answer.problem) == ("", "the answer is broken JSON")
        assert server.state.asked == {"I like tea": 1}

    @pytest.mark.parametrize(
        "body", [b"<html>I like tea</html>", b"[" * 100_000], ids=["a page", "nested deeply"]
    )
    async def test_an_unreadable_answer_is_none(
        self, body: bytes, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.faults.requests.extend([HttpFault(body=body)] * 10)
        with pytest.raises(ModelUnavailable) as raised:
            await model.complete(asking("I like tea"))
        assert "tea" not in str(raised.value)

    async def test_answer_that_ends_at_the_maximum_of_tokens_is_marked_cut(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.faults.is_cut = lambda text: "tea" in text
        answer = await model.complete(asking("I like tea"))
        assert answer.is_cut
        with pytest.raises(ValueError, match=r"line 1 column"):
            json.loads(answer.text)

    async def test_only_a_request_that_is_too_long_is_refused(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.longest = 1000
        with pytest.raises(RequestRefused) as raised:
            await model.complete(asking(SAID * 1000))
        assert "long" in str(raised.value)
        assert SAID not in "".join(traceback.format_exception(raised.value))
        assert facts(await model.complete(asking("I like tea"))) == ["User likes tea"]

    async def test_where_everything_is_refused_it_is_not_the_request(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.longest = -1
        with pytest.raises(ModelRefused):
            await model.complete(asking("I like tea"))
