"""Google's models through the real SDK, against a local server with the wire format and its faults."""

import json
import traceback
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest

from mnemon_bench.provider_server.faults import HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_infra.config import Deployment
from mnemon_infra.models.language.google.model import USUAL_MODEL, GoogleModel, open_google
from mnemon_infra.models.language.port import BatchRequest, LineFailed, ModelNotConfigured, ModelUnavailable
from tests.support.suites.batch_api import BatchesSuite, answered, ended, lines, new_id, outcomes
from tests.support.suites.language_model import KEY, MODEL, asking, facts


class TestGoogle(BatchesSuite):
    """Batches of Google: the tests for all providers, and those of Google's own format."""

    creating = ":batchGenerateContent"

    def opened(self, server: ProviderServer, **changes: Any) -> AbstractAsyncContextManager[GoogleModel]:
        located = {"google_url": server.url, "google_api_key": KEY}
        return open_google(MODEL, Deployment(**{**located, **changes}))

    def of_others(self) -> Mapping[str, Any]:
        return {"displayName": "theirs"}

    async def test_a_batch_of_many_bytes_goes_up_in_parts(
        self, server: ProviderServer, model: GoogleModel
    ) -> None:
        batch_id = new_id()
        asked = [
            replace(line, request=asking(f"{line.request.text}\n{'чай ' * 800_000}"))
            for line in lines(batch_id, 3)
        ]
        provider_id = await model.batches.submit(batch_id, asked)
        assert len([request for request in server.state.requests if "/upload/v1beta/files/" in request]) > 1
        await ended(model.batches, provider_id)
        assert len(answered(await outcomes(model.batches, provider_id))) == 3

    async def test_a_file_that_no_batch_was_made_of_is_deleted(
        self, server: ProviderServer, model: GoogleModel
    ) -> None:
        server.state.faults.requests.append(HttpFault(429, path=self.creating, retry_after=120))
        batch_id = new_id()
        with pytest.raises(ModelUnavailable) as raised:
            await model.batches.submit(batch_id, lines(batch_id, 3))
        assert raised.value.retry_after == 120
        assert server.state.files == {}

    async def test_lines_have_the_form_that_google_wants(
        self, server: ProviderServer, model: GoogleModel
    ) -> None:
        request = asking("I like tea")
        await model.complete(request)
        await model.batches.submit(
            "b", [BatchRequest("b-1", request), BatchRequest("b-2", replace(request, schema=None))]
        )
        (file,) = server.state.files.values()
        first, second = map(json.loads, file.splitlines())
        assert (first["key"], second["key"]) == ("b-1", "b-2")
        assert "responseJsonSchema" not in second["request"]["generationConfig"]
        (batch,) = server.state.list_batches()
        (at_once,) = server.state.questions
        assert [line.question for line in batch.lines] == [at_once, at_once._replace(schema=None)]

    async def test_refused_line_is_distinguished_from_failed_ones(
        self, server: ProviderServer, model: GoogleModel
    ) -> None:
        server.state.longest = len("I like thing 9")
        batch_id = new_id()
        provider_id = await model.batches.submit(batch_id, lines(batch_id, 11))
        await ended(model.batches, provider_id)
        found = await outcomes(model.batches, provider_id)
        failed = found[f"{batch_id}-10"]
        assert isinstance(failed, LineFailed)
        assert failed.is_refused
        assert len(answered(found)) == 10

    async def test_unknown_batch_has_no_results(self, model: GoogleModel) -> None:
        assert await outcomes(model.batches, "batches/gone") == {}
        await model.batches.cancel("batches/gone")

    async def test_a_batch_that_failed_has_no_results(
        self, server: ProviderServer, model: GoogleModel
    ) -> None:
        server.state.faults.ending = "failed"
        batch_id = new_id()
        provider_id = await model.batches.submit(batch_id, lines(batch_id, 2))
        await ended(model.batches, provider_id)
        assert await outcomes(model.batches, provider_id) == {}

    async def test_unreadable_lines_are_skipped(self, server: ProviderServer, model: GoogleModel) -> None:
        batch_id = new_id()
        provider_id = await model.batches.submit(batch_id, lines(batch_id, 1))
        await ended(model.batches, provider_id)
        line = json.dumps({"key": f"{batch_id}-0"}).encode()
        server.state.faults.requests.append(HttpFault(body=b"[" * 100_000 + b"\n" + line, path=":download"))
        assert list(await outcomes(model.batches, provider_id)) == [f"{batch_id}-0"]

    @pytest.mark.parametrize("output", [None, [], "files/1"])
    async def test_malformed_output_of_a_batch_is_reported_and_read_later(
        self, output: object, server: ProviderServer, model: GoogleModel
    ) -> None:
        batch_id = new_id()
        provider_id = await model.batches.submit(batch_id, lines(batch_id, 2))
        await ended(model.batches, provider_id)
        job = {"metadata": {"state": "BATCH_STATE_SUCCEEDED", "output": output}}
        server.state.faults.requests.append(HttpFault(body=job, path=f"GET /v1beta/{provider_id}"))
        with pytest.raises(ModelUnavailable, match="unusable answer"):
            await outcomes(model.batches, provider_id)
        assert len(answered(await outcomes(model.batches, provider_id))) == 2


async def test_google_address_comes_from_the_deployment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {
        "GEMINI_API_KEY": KEY,
        "GOOGLE_API_KEY": "another",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GENAI_API_VERSION": "v7",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1",
    }.items():
        monkeypatch.setenv(name, value)
    with ProviderServer() as server:
        server.state.key = KEY
        async with open_google(None, Deployment(google_url=f"{server.url}/")) as model:
            assert facts(await model.complete(asking("I like tea"))) == ["User likes tea"]
        assert server.state.requests == [f"POST /v1beta/models/{USUAL_MODEL}:generateContent"]


async def test_a_key_is_needed_for_google_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelNotConfigured, match="set GEMINI_API_KEY or GOOGLE_API_KEY"):
        async with open_google(None, Deployment()):
            pass


async def test_a_key_that_cannot_be_sent_is_refused_without_showing_it() -> None:
    deployment = Deployment(google_api_key="ключ\n1")
    with pytest.raises(ModelNotConfigured) as raised:
        async with open_google(None, deployment):
            pass
    assert "ключ" not in "".join(traceback.format_exception(raised.value))
