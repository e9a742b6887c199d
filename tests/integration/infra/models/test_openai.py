"""OpenAI's models and compatible servers, through the real SDK, against a local server."""

import asyncio
import json
import re
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from mnemon_bench.provider_server import server as provider_server
from mnemon_bench.provider_server.openai_batches import ROUTES as BATCH_ROUTES
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_bench.provider_server.state import ProviderState
from mnemon_bench.provider_server.wire import HttpRequest, HttpResponse, Route
from mnemon_infra.config import Deployment
from mnemon_infra.models.language.openai import model as openai
from mnemon_infra.models.language.openai.model import OpenAIModel, open_openai
from mnemon_infra.models.language.port import (
    BatchApi,
    LanguageModel,
    LineFailed,
    ModelAnswer,
    ModelNotConfigured,
    ModelRefused,
    ModelUnavailable,
    RequestRefused,
    Usage,
)
from tests.support.suites.batch_api import (
    BatchesSuite,
    answered,
    ended,
    gather,
    lines,
    long_ago,
    new_id,
    outcomes,
)
from tests.support.suites.language_model import KEY, MODEL, asking, facts

AS_JSON = replace(asking("I like tea"), instructions="Answer with JSON.")


@pytest.fixture
def routed(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str, Callable[[ProviderState, HttpRequest], HttpResponse]], None]:
    """Return a function that replaces the answer of a route, such as `POST /v1/chat/completions`."""

    def route(path: str, answer: Callable[[ProviderState, HttpRequest], HttpResponse]) -> None:
        method, pattern = path.split()
        routes = (Route(method, re.compile(pattern), answer), *provider_server.ROUTES)
        monkeypatch.setattr(provider_server, "ROUTES", routes)

    return route


class TestOpenAI(BatchesSuite):
    creating = "/v1/batches"

    def opened(self, server: ProviderServer, **changes: Any) -> AbstractAsyncContextManager[OpenAIModel]:
        located = {"model_url": server.openai_url, "model_api_key": KEY}
        return open_openai(MODEL, Deployment(**{**located, **changes}))

    def of_others(self) -> Mapping[str, Any]:
        return {"metadata": {"purpose": "of somebody else"}}

    @pytest.mark.parametrize(("formats", "refused"), [({"json_object"}, 1), (set(), 2)])
    async def test_refused_parameter_is_sent_once(
        self, formats: set[str], refused: int, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.formats = frozenset(formats)
        assert facts(await model.complete(AS_JSON)) == ["User likes tea"]
        assert len(server.state.requests) == refused + 1
        assert facts(await model.complete(AS_JSON)) == ["User likes tea"]
        assert len(server.state.requests) == refused + 2

    async def test_answer_to_an_earlier_request_does_not_undo_a_fallback(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        released = server.state.hold_answers(lambda question: "coffee" in question.text)
        earlier = asyncio.create_task(model.complete(asking("I like coffee")))
        async with asyncio.timeout(60):
            while not server.state.in_flight:
                await asyncio.sleep(0.01)
        server.state.formats = frozenset({"json_object"})
        with capture_logs() as lines:
            await model.complete(AS_JSON)
            released.set()
            assert facts(await earlier) == ["User likes coffee"]
        assert [line["form"] for line in lines] == ["json_object"]
        requests = len(server.state.requests)
        await model.complete(AS_JSON)
        assert len(server.state.requests) == requests + 1

    async def test_refused_request_does_not_remove_the_schema_of_others(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.longest = 100
        with pytest.raises(RequestRefused):
            await model.complete(asking("I like tea. " * 100))
        await model.complete(asking("I like tea"))
        assert server.state.questions[-1].schema is not None

    async def test_token_limit_uses_the_parameter_name_of_the_server(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.unsupported = frozenset({"max_tokens"})
        for _ in range(2):
            await model.complete(asking("I like tea"))
        assert [question.most_tokens for question in server.state.questions] == [2000, 2000]
        assert len(server.state.requests) == 3

    async def test_simultaneous_requests_keep_their_schema_when_a_parameter_is_refused(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.unsupported = frozenset({"max_tokens"})
        with capture_logs() as logged:
            await asyncio.gather(*(model.complete(asking(f"I like thing {n}")) for n in range(3)))
        assert len(server.state.requests) == 6
        assert all(question.schema is not None for question in server.state.questions)
        assert logged == []

    async def test_thoughts_are_removed_from_the_answer(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.answering = lambda _: "<think>\nIs it tea?\n</think>\n\nThey drink tea."
        assert (await model.complete(asking("I like tea", schema=None))).text == "They drink tea."

    @pytest.mark.parametrize(
        ("said", "shown"),
        [
            ("They drink tea.", "They drink tea."),
            ("<think>\nIs it tea?\n</think>\n\nThey drink tea.", "They drink tea."),
            ("<thin air> is no thought", "<thin air> is no thought"),
            ("<think> to no end", ""),
            ("<think>", ""),
            ("<", "<"),
            ("\n<thin", "<thin"),
            ("<think>Is it less?</think>\n<", "<"),
        ],
    )
    async def test_an_answer_comes_piece_by_piece(
        self, said: str, shown: str, server: ProviderServer, model: OpenAIModel
    ) -> None:
        server.state.answering = lambda _: said
        pieces = [piece async for piece in model.stream_reply([{"role": "user", "content": "Tea?"}])]
        assert "".join(pieces) == shown

    async def test_stream_error_is_reported(self, server: ProviderServer, model: OpenAIModel) -> None:
        server.state.key = "another"
        with pytest.raises(ModelRefused, match="refuses the key"):
            await anext(model.stream_reply([{"role": "user", "content": "Tea?"}]))

    async def test_unpaid_account_is_reported(
        self, routed: Any, server: ProviderServer, model: LanguageModel
    ) -> None:
        error = {"error": {"message": KEY, "code": "insufficient_quota", "param": None}}
        routed("POST /v1/chat/completions", lambda *_: HttpResponse(error, 429, {"Retry-After": "0.01"}))
        with pytest.raises(ModelRefused, match=r"payment, or a spending limit is reached \(HTTP 429\)"):
            await model.complete(asking("I like tea"))

    @pytest.mark.parametrize(
        ("choice", "who"),
        [
            ({"message": {"content": None, "refusal": "I will not"}, "finish_reason": "stop"}, "the model"),
            ({"message": {"content": ""}, "finish_reason": "content_filter"}, "a filter of the provider"),
        ],
    )
    async def test_refused_answer_is_paid_for(
        self, choice: Any, who: str, routed: Any, server: ProviderServer, model: LanguageModel
    ) -> None:
        usage = {"prompt_tokens": 12, "completion_tokens": 3}
        routed("POST /v1/chat/completions", lambda *_: HttpResponse({"choices": [choice], "usage": usage}))
        answer = await model.complete(asking("I like tea"))
        problem = f"{who} refuses to answer the request"
        assert answer == ModelAnswer("", Usage(12, 0, 3), problem=problem, is_refused=True)

    @pytest.mark.parametrize(
        ("body", "problem"),
        [
            ({"choices": []}, "the answer has no message"),
            ({"choices": None, "usage": None}, "the answer has no message"),
            ({"choices": {"message": 1}}, "the answer has no message"),
            ({"choices": [None]}, "the answer has no message"),
            ({"choices": [{"message": "tea"}]}, "the answer has no message"),
            ({"usage": {"prompt_tokens": -5, "completion_tokens": "many"}}, "the answer has no message"),
            ({"choices": [{"message": {"content": None}}]}, "the answer has no text"),
            ({"choices": [{"message": {"content": 7}}]}, "the answer has no text"),
            ({"choices": [{"message": {"content": ""}, "finish_reason": "odd"}]}, "the answer has no text"),
        ],
    )
    async def test_an_answer_without_a_text_is_one_that_cannot_be_used(
        self, body: Any, problem: str, routed: Any, server: ProviderServer, model: LanguageModel
    ) -> None:
        routed("POST /v1/chat/completions", lambda *_: HttpResponse(body))
        assert await model.complete(asking("I like tea")) == ModelAnswer("", Usage(), problem=problem)

    @pytest.mark.parametrize("body", [b"<html>", b"[]", b"null", b"{}", b'{"error": {"code": 502}}'])
    async def test_malformed_completion_is_no_answer(
        self, body: bytes, routed: Any, server: ProviderServer, model: LanguageModel
    ) -> None:
        routed("POST /v1/chat/completions", lambda *_: HttpResponse(body))
        with pytest.raises(ModelUnavailable, match=r"gave an unusable answer.*MNEMON_MODEL_URL"):
            await model.complete(asking("I like tea"))

    async def test_a_server_without_batches_says_what_to_do(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.has_batches = False
        assert facts(await model.complete(asking("I like tea"))) == ["User likes tea"]
        assert model.batches is not None
        with pytest.raises(ModelRefused, match=r"does not support batches.*extraction\.mode=online"):
            await model.batches.submit("b", lines("b", 1))
        assert model.batches is None

    async def test_lines_that_expired_and_batches_that_failed_say_why(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        server.state.faults.ending = "expired"
        batch_id = new_id()
        expired = await batches.submit(batch_id, lines(batch_id, 4))
        await ended(batches, expired)
        found = await outcomes(batches, expired)
        late = LineFailed("batch_expired", is_unasked=True)
        assert [found[f"{batch_id}-{number}"] for number in (2, 3)] == [late] * 2
        server.state.faults.ending = "failed"
        failed = await batches.submit(new_id(), lines(batch_id, 4))
        assert (await ended(batches, failed)).error == "token_limit_exceeded"

    async def test_truncated_file_is_reported_after_its_lines(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 9))
        await ended(batches, provider_id)
        server.state.faults.results = "half"
        found: dict[str, ModelAnswer | LineFailed] = {}
        with pytest.raises(ModelUnavailable):
            await gather(batches, provider_id, found)
        assert len(answered(found)) == len(found) == 4

    async def test_batch_uses_parameters_the_server_accepts(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        server.state.formats = frozenset({"json_object"})
        ids = new_id(), new_id()
        found = []
        for batch_id in ids:
            asked = [replace(line, request=AS_JSON) for line in lines(batch_id, 3)]
            provider_id = await batches.submit(batch_id, asked)
            await ended(batches, provider_id)
            found.append(await outcomes(batches, provider_id))
        assert list(found[0].values()) == [LineFailed("HTTP 400", is_refused=True, is_adapted=True)] * 3
        assert [facts(outcome) for outcome in found[1].values()] == [["User likes tea"]] * 3

    @pytest.mark.parametrize("named", ["max_tokens", None])
    async def test_a_parameter_that_lines_may_not_have_is_left_out_of_the_next_batch(
        self, named: str | None, server: ProviderServer, batches: BatchApi
    ) -> None:
        error = {"code": "unsupported_parameter", "param": named, "message": "Unsupported: 'max_tokens'"}
        server.state.faults.refused = lambda _: (400, {"error": error})
        first, second = new_id(), new_id()
        provider_id = await batches.submit(first, lines(first, 2))
        await ended(batches, provider_id)
        refused = LineFailed("HTTP 400", is_refused=True, is_adapted=True)
        assert list((await outcomes(batches, provider_id)).values()) == [refused] * 2
        await batches.submit(second, lines(second, 2))
        asked = [json.loads(line) for file in server.state.files.values() for line in file.splitlines()]
        limits = [{"max_tokens", "max_completion_tokens"} & line["body"].keys() for line in asked]
        assert limits == [{"max_tokens"}] * 2 + [{"max_completion_tokens"}] * 2

    @pytest.mark.parametrize("status", [400, 401, 404, 413, 422, 429])
    async def test_refused_line_is_distinguished_from_a_failed_one(
        self, status: int, server: ProviderServer, batches: BatchApi
    ) -> None:
        server.state.faults.refused = lambda text: (status if "1" in text else 500, {"error": {"code": "x"}})
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 2))
        await ended(batches, provider_id)
        assert await outcomes(batches, provider_id) == {
            f"{batch_id}-0": LineFailed("HTTP 500"),
            f"{batch_id}-1": LineFailed(f"HTTP {status}", is_refused=True),
        }

    async def test_the_call_that_tells_whether_a_text_is_to_blame_is_counted(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.longest = 100
        with pytest.raises(RequestRefused) as raised:
            await model.complete(asking("I like tea. " * 100))
        assert raised.value.usage == Usage(1, 0, server.state.used.output)

    async def test_a_line_ends_where_json_lines_end(self, server: ProviderServer, batches: BatchApi) -> None:
        server.state.answering = lambda _: "tea\u2028coffee\x85milk"
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 1))
        await ended(batches, provider_id)
        (outcome,) = (await outcomes(batches, provider_id)).values()
        assert getattr(outcome, "text", None) == "tea\u2028coffee\x85milk"

    async def test_a_batch_is_found_in_a_list_of_another_order(
        self, routed: Any, server: ProviderServer, batches: BatchApi
    ) -> None:
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 1))
        listed = next(route for route in BATCH_ROUTES if route[:2] == ("GET", re.compile("/v1/batches")))

        def turned(state: ProviderState, request: HttpRequest) -> HttpResponse:
            body: Any = listed.answer(state, request).body
            older = [
                {**body["data"][0], "id": f"b{age}", "metadata": None, "created_at": age} for age in (1, 2)
            ]
            return HttpResponse({**body, "data": [*older, *body["data"]], "has_more": False})

        routed("GET /v1/batches", turned)
        assert await batches.find(batch_id, 1, long_ago()) == provider_id

    async def test_batches_from_before_its_time_are_not_listed(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        batch_id = new_id()
        await batches.submit(batch_id, lines(batch_id, 1))
        (batch,) = server.state.list_batches()
        batch.created_at -= 86_400
        for _ in range(250):
            server.state.create_batch(batch.format, batch.lines, batch.given).created_at -= 86_400
        server.state.requests.clear()
        assert await batches.find(new_id(), 1, long_ago()) is None
        assert server.state.requests == ["GET /v1/batches"]

    async def test_a_list_without_end_is_not_read_for_ever(
        self, routed: Any, server: ProviderServer, batches: BatchApi
    ) -> None:
        batch = {"id": "b", "created_at": 4_000_000_000, "metadata": None}
        routed("GET /v1/batches", lambda *_: HttpResponse({"data": [batch], "has_more": True}))
        assert await batches.find(new_id(), 1, long_ago()) is None


@pytest.mark.parametrize(("model", "most_tokens"), [("gpt-4.1-mini", 2000), ("gpt-5-mini", 6000)])
async def test_cache_key_is_sent_to_openai_only(
    model: str, most_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ProviderServer() as server:
        server.state.unsupported = frozenset({"prompt_cache_key", "max_tokens"})
        monkeypatch.setattr(openai, "OPENAI", server.openai_url)
        async with open_openai(model, Deployment(model_api_key=KEY)) as asked:
            await asked.complete(asking("I like tea"))
        assert len(server.state.requests) == 2  # with `prompt_cache_key`, and without it
        assert server.state.questions[0].most_tokens == most_tokens

        server.state.unsupported = frozenset(
            {"prompt_cache_key", "max_completion_tokens", "reasoning_effort"}
        )
        server.state.requests.clear()
        own = server.openai_url.replace("127.0.0.1", "localhost")
        async with open_openai(model, Deployment(model_url=own)) as asked:
            await asked.complete(asking("I like tea"))
        assert len(server.state.requests) == 1


async def test_a_key_is_needed_for_openai_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelNotConfigured, match="OPENAI_API_KEY, or MNEMON_MODEL_URL"):
        async with open_openai(None, Deployment()):
            pass


async def test_a_key_that_cannot_be_sent_is_refused_without_showing_it() -> None:
    with pytest.raises(ModelNotConfigured) as raised:
        async with open_openai(None, Deployment(model_api_key="ключ\n1")):
            pass
    assert "ключ" not in "".join(traceback.format_exception_only(raised.value))


@pytest.mark.parametrize(
    ("variables", "key"),
    [
        ({}, "none"),
        ({"OPENAI_API_KEY": "theirs"}, "theirs"),
        ({"OPENAI_API_KEY": "theirs", "MNEMON_MODEL_API_KEY": "ours\n"}, "ours"),
    ],
)
async def test_address_and_key_come_from_the_environment(
    variables: Mapping[str, str], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ProviderServer(ProviderState(key=key)) as server:
        for name, value in {"MNEMON_MODEL_URL": server.openai_url, **variables}.items():
            monkeypatch.setenv(name, value)
        async with open_openai(None, Deployment()) as model:
            assert model.model == "gpt-4.1-mini"
            assert facts(await model.complete(asking("I like tea"))) == ["User likes tea"]
