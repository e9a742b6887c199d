"""Anthropic's models through the real SDK, against a local server with the wire format and its faults."""

import logging
import traceback
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import pytest_asyncio

from mnemon_bench.provider_server.answers import ReceivedRequest
from mnemon_bench.provider_server.anthropic import FORBIDDEN, FORMAT, THINKER
from mnemon_bench.provider_server.faults import HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_bench.provider_server.state import BatchLine, ProviderBatch
from mnemon_infra.config import Deployment
from mnemon_infra.models.language.port import (
    BatchApi,
    LanguageModel,
    LineFailed,
    ModelAnswer,
    ModelRefused,
    ModelUnavailable,
)
from tests.support.suites.batch_api import BatchesSuite, ended, lines, long_ago, new_id, outcomes
from tests.support.suites.language_model import INSTRUCTIONS, KEY, MODEL, asking, facts, open_anthropic

MODELS = "GET /v1/models"


def of_others(server: ProviderServer, count: int, batch_id: str = "theirs") -> ProviderBatch:
    """Create a batch that another program submitted with the same key."""
    question = ReceivedRequest(MODEL, "", "something else")
    asked = [BatchLine(f"{batch_id}-{number}", question) for number in range(count)]
    return server.state.create_batch(FORMAT, asked, {})


class TestAnthropic(BatchesSuite):
    creating = "POST /v1/messages/batches"

    def opened(
        self, server: ProviderServer, model: str = MODEL, **changes: Any
    ) -> AbstractAsyncContextManager[LanguageModel]:
        return open_anthropic(
            model, Deployment(**{"anthropic_url": server.url, "anthropic_api_key": KEY, **changes})
        )

    @pytest_asyncio.fixture
    async def model(self, server: ProviderServer) -> AsyncIterator[LanguageModel]:
        async with self.opened(server) as model:
            server.state.requests.clear()
            yield model

    async def test_the_instructions_are_cached_at_once_and_in_batches(
        self, server: ProviderServer, model: LanguageModel, batches: BatchApi
    ) -> None:
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 2))
        await ended(batches, provider_id)
        found = await outcomes(batches, provider_id)
        words = len(INSTRUCTIONS.split())
        used = [outcome.usage for outcome in found.values() if isinstance(outcome, ModelAnswer)]
        used.append((await model.complete(asking("I like tea"))).usage)
        assert [usage.cached for usage in used] == [0, words, words]
        assert [usage.input for usage in used] == [words + 4, words + 4, words + 3]
        assert {question.beginning for question in server.state.questions} == {INSTRUCTIONS}

    async def test_after_a_crash_a_batch_is_found_when_it_has_ended_and_not_made_again(
        self, server: ProviderServer
    ) -> None:
        batch_id = new_id()
        async with self.opened(server, model_timeout=2.0) as model:
            assert model.batches is not None
            server.state.faults.requests.append(HttpFault(seconds=60, path=self.creating))
            with pytest.raises(ModelUnavailable):
                await model.batches.submit(batch_id, lines(batch_id, 3))
            (batch,) = server.state.list_batches()
            for _ in range(server.state.polls):
                with pytest.raises(ModelUnavailable, match="which may be mnemon's batch") as raised:
                    await model.batches.find(batch_id, 3, long_ago())
                assert not isinstance(raised.value, ModelRefused)
            assert await model.batches.find(batch_id, 3, long_ago()) == batch.id

    async def test_batch_of_another_process_is_not_adopted(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        batch_id = new_id()
        running = of_others(server, 3)
        with pytest.raises(ModelUnavailable, match="which may be mnemon's batch"):
            await batches.find(batch_id, 3, long_ago())
        await ended(batches, running.id)
        assert await batches.find(batch_id, 3, long_ago()) is None
        await ended(batches, of_others(server, 3, f"{batch_id}1").id)
        of_others(server, 4)
        assert await batches.find(batch_id, 3, long_ago()) is None

    async def test_running_batch_blocks_no_other(self, server: ProviderServer, batches: BatchApi) -> None:
        await batches.submit(first := new_id(), lines(first, 3))
        server.state.faults.requests.append(HttpFault(500, path=self.creating))
        with pytest.raises(ModelUnavailable):
            await batches.submit(second := new_id(), lines(second, 3))
        assert (
            server.state.requests == [self.creating] * 2
        )  # one request for each call of `submit`: no automatic retry
        assert await batches.find(second, 3, long_ago()) is None

    async def test_a_server_without_batches_says_what_to_do(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.has_batches = False
        assert model.batches is not None
        with pytest.raises(ModelRefused, match=r"does not support batches.*extraction\.mode=online"):
            await model.batches.submit("one", lines("one", 1))
        assert model.batches is None
        async with self.opened(server) as another:
            assert another.batches is None

    async def test_a_line_that_is_too_long_is_refused_and_the_others_are_not(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        server.state.longest = len("I like thing 9")
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 11))
        await ended(batches, provider_id)
        found = await outcomes(batches, provider_id)
        failed = found.pop(f"{batch_id}-10")
        assert isinstance(failed, LineFailed)
        assert failed.is_refused
        assert [type(outcome) for outcome in found.values()] == [ModelAnswer] * 10

    async def test_error_of_a_refused_line_contains_no_text_of_the_request(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        server.state.longest = 1
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 3))
        await ended(batches, provider_id)
        found = await outcomes(batches, provider_id)
        assert len(found) == 3
        for outcome in found.values():
            assert isinstance(outcome, LineFailed)
            assert outcome.is_refused
            assert "thing" not in outcome.error

    async def test_refused_answer_is_paid_for(
        self, server: ProviderServer, model: LanguageModel, batches: BatchApi
    ) -> None:
        text = f"How do I make {FORBIDDEN}?"
        refused = await model.complete(asking(text))
        assert (refused.text, refused.is_refused) == ("", True)
        assert refused.usage.input > 0
        assert server.state.asked == {text: 1}
        line = lines("one", 1)[0]
        provider_id = await batches.submit("one", [type(line)(line.id, asking(text))])
        await ended(batches, provider_id)
        found = await outcomes(batches, provider_id)
        outcome = found[line.id]
        assert isinstance(outcome, ModelAnswer)
        assert (outcome.is_refused, outcome.usage.input) == (True, refused.usage.input)

    async def test_truncated_results_are_reported(self, server: ProviderServer, batches: BatchApi) -> None:
        server.state.faults.results = "half"
        provider_id = await batches.submit("one", lines("one", 10))
        await ended(batches, provider_id)
        with pytest.raises(ModelUnavailable, match=r"of 10 results"):
            await outcomes(batches, provider_id)

    async def test_broken_line_is_reported_by_its_id(self, server: ProviderServer, batches: BatchApi) -> None:
        server.state.faults.damage = lambda text: "cut" if text == "I like thing 1" else None
        provider_id = await batches.submit("one", lines("one", 3))
        await ended(batches, provider_id)
        assert (await outcomes(batches, provider_id))["one-1"] == LineFailed("the line is broken")

    @pytest.mark.parametrize("ending", ["cancelled", "expired"])
    async def test_unprocessed_lines_are_distinguished_from_failed_ones(
        self, ending: str, server: ProviderServer, batches: BatchApi
    ) -> None:
        provider_id = await batches.submit("one", lines("one", 2))
        if ending == "cancelled":
            await batches.cancel(provider_id)
        server.state.faults.ending = "expired"
        await ended(batches, provider_id)
        failed = (await outcomes(batches, provider_id))["one-1"]
        assert isinstance(failed, LineFailed)
        assert failed.is_unasked
        assert ending in failed.error

    async def test_separators_of_lines_in_an_answer_separate_no_results(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        said = "one\u2028two\x85three\x0bfour"
        server.state.answering = lambda _: said
        provider_id = await batches.submit("one", lines("one", 2))
        await ended(batches, provider_id)
        found = await outcomes(batches, provider_id)
        assert [outcome.text for outcome in found.values() if isinstance(outcome, ModelAnswer)] == [
            said,
            said,
        ]

    async def test_model_without_need_to_think_gets_no_thinking(
        self, server: ProviderServer, model: LanguageModel
    ) -> None:
        request = asking("I like tea")
        assert facts(await model.complete(request)) == ["User likes tea"]
        assert server.state.questions[0].most_tokens == request.most_tokens

    async def test_thinking_model_gets_extra_tokens(self, server: ProviderServer) -> None:
        async with self.opened(server, f"a-{THINKER}") as model:
            request = asking("I like tea")
            answer = await model.complete(request)
            assert model.thinking_tokens > 0
        assert facts(answer) == ["User likes tea"]
        assert not answer.is_cut
        assert server.state.questions[0].most_tokens == request.most_tokens + model.thinking_tokens

    async def test_model_parameters_are_looked_up_again_after_failure(self, server: ProviderServer) -> None:
        server.state.faults.requests.append(HttpFault(500, path=MODELS))
        async with self.opened(server) as model:
            for _ in range(2):
                assert facts(await model.complete(asking("I like tea"))) == ["User likes tea"]
        assert [request.split()[0] for request in server.state.requests] == ["GET", "GET", "POST", "POST"]

    async def test_server_without_a_list_of_models_is_asked(self, server: ProviderServer) -> None:
        server.state.faults.requests.append(HttpFault(404, path=MODELS))
        async with self.opened(server) as model:
            await model.complete(asking("I like tea"))
            await model.complete(asking("I like tea"))
        assert [request.split()[0] for request in server.state.requests] == ["GET", "POST", "POST"]
        assert server.state.questions[0].schema is not None

    async def test_long_retry_after_is_respected(self, server: ProviderServer, model: LanguageModel) -> None:
        server.state.faults.requests.append(HttpFault(429, retry_after=3600))
        with pytest.raises(ModelUnavailable) as raised:
            await model.complete(asking("I like tea"))
        assert raised.value.retry_after == 3600
        assert len(server.state.requests) == 1

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            (402, "requires payment"),
            (403, "refuses the key"),
            (
                404,
                f"has no model {MODEL}, .*check extraction.model and compaction.model, and MNEMON_ANTHR",
            ),
            (405, f"refuses requests to model {MODEL}"),
        ],
    )
    async def test_refusal_is_raised_without_retry(
        self, status: int, words: str, server: ProviderServer, model: LanguageModel
    ) -> None:
        server.state.faults.requests.append(HttpFault(status))
        with pytest.raises(ModelRefused, match=words) as raised:
            await model.complete(asking("I like tea"))
        assert len(server.state.requests) == 1
        assert KEY not in "".join(traceback.format_exception(raised.value))

    async def test_request_is_never_logged(
        self, server: ProviderServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        async with self.opened(server) as model:
            assert model.batches is not None
            await model.complete(asking("I like tea"))
            await ended(model.batches, provider_id := await model.batches.submit("one", lines("one", 1)))
            await outcomes(model.batches, provider_id)
        assert server.url in caplog.text
        for secret in (KEY, "I like", "User likes", INSTRUCTIONS[:20]):
            assert secret not in caplog.text
