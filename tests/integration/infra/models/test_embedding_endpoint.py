"""Embedding through the real SDK, against a local endpoint with the wire format and its faults."""

import asyncio
import logging
import time
import traceback
from collections.abc import AsyncIterator, Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from mnemon_consumers.model_reports import list_refusals
from mnemon_contracts.settings.groups import Embedding
from mnemon_infra.config import Deployment
from mnemon_infra.models.embedders.embedder_choice import open_embedder
from mnemon_infra.models.embedders.openai_embeddings import OpenAIEmbeddings, open_openai
from mnemon_infra.models.embedding import (
    TRANSFORMER,
    EmbeddingNotConfigured,
    EmbeddingRefused,
    EmbeddingUnavailable,
    normalise_length,
)
from tests.support.servers.embedding_server import (
    DIMENSION,
    KEY,
    Body,
    Endpoint,
    EndpointAnswer,
    refusal,
    right,
    vector,
)

MODEL = "a-model-of-our-own"


@pytest.fixture
async def model(embedding_endpoint: Endpoint) -> AsyncIterator[OpenAIEmbeddings]:
    async with open_openai(MODEL, embedding_endpoint.deployment) as model:
        embedding_endpoint.requests.clear()
        yield model


def expected(*texts: str) -> NDArray[np.float32]:
    rows = np.stack([vector(text) for text in texts])
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


async def test_settings_select_the_endpoint(embedding_endpoint: Endpoint) -> None:
    settings = Embedding(provider="openai", model=MODEL)
    async with open_embedder(settings, embedding_endpoint.deployment) as model:
        assert model is not None
        assert (model.model, model.dimension) == (f"openai/{MODEL}", DIMENSION)
        assert model.thresholds == TRANSFORMER
        assert await model.embed(["tea", "чай"]) == pytest.approx(expected("tea", "чай"), abs=1e-6)
        assert await model.embed_query("tea", await model.compute_statistics(["tea"])) == pytest.approx(
            expected("tea")[0], abs=1e-6
        )
    assert embedding_endpoint.keys == [f"Bearer {KEY}"] * 3
    assert {request["model"] for request in embedding_endpoint.requests} == {MODEL}


async def test_dimension_of_models_of_openai_is_known(embedding_endpoint: Endpoint) -> None:
    async with open_openai(None, embedding_endpoint.deployment) as model:
        assert (model.model, model.dimension) == ("openai/text-embedding-3-small", 1536)
        assert embedding_endpoint.requests == []
        with pytest.raises(EmbeddingRefused, match=r"8 dimensions, and openai/.*3-small has 1536"):
            await model.embed(["tea"])


async def test_no_texts_make_no_request(embedding_endpoint: Endpoint, model: OpenAIEmbeddings) -> None:
    vectors = await model.embed(["", "tea", " \n"])
    assert not vectors[[0, 2]].any()
    assert vectors[1] == pytest.approx(expected("tea")[0], abs=1e-6)
    assert not (await model.embed_query("")).any()
    assert (await model.embed([])).shape == (0, DIMENSION)
    assert [request["input"] for request in embedding_endpoint.requests] == [["tea"]]


async def test_batches_are_bounded_by_texts_by_bytes_and_in_number(
    embedding_endpoint: Endpoint, model: OpenAIEmbeddings
) -> None:
    texts = [f"message {number}" for number in range(3000)] + [
        f"{number} ё{'й' * 20_000}" for number in range(100)
    ]
    embedding_endpoint.released.clear()
    embedding = asyncio.create_task(model.embed(texts))
    async with asyncio.timeout(60):
        while embedding_endpoint.in_flight < 4:
            await asyncio.sleep(0.01)
    embedding_endpoint.released.set()
    vectors = await embedding
    asked = [request["input"] for request in embedding_endpoint.requests]
    assert vectors[:3000] == pytest.approx(expected(*texts[:3000]), abs=1e-6)
    assert sum(map(len, asked)) == len(texts)
    assert max(map(len, asked)) == 256
    assert max(len("".join(batch).encode()) for batch in asked) <= 250_000
    assert max(len(text.encode()) for batch in asked for text in batch) <= 8000
    assert embedding_endpoint.most_in_flight == 4


async def test_a_query_does_not_wait_behind_batches(
    embedding_endpoint: Endpoint, model: OpenAIEmbeddings
) -> None:
    embedding_endpoint.released.clear()
    embedding_endpoint.most_in_flight = 0
    async with asyncio.TaskGroup() as group:
        group.create_task(model.embed([f"message {number}" for number in range(3000)]))
        group.create_task(model.embed_query("tea"))
        async with asyncio.timeout(60):
            while embedding_endpoint.most_in_flight < 5:
                await asyncio.sleep(0.01)
        assert ["tea"] in [request["input"] for request in embedding_endpoint.requests]
        embedding_endpoint.released.set()


async def test_rate_limited_request_is_retried_after_the_stated_delay(
    embedding_endpoint: Endpoint, model: OpenAIEmbeddings
) -> None:
    embedding_endpoint.faults = [lambda _: refusal(429, {"Retry-After": "1"})]
    started = time.monotonic()
    assert await model.embed(["tea"]) == pytest.approx(expected("tea"), abs=1e-6)
    assert time.monotonic() - started >= 1
    assert len(embedding_endpoint.requests) == 2


async def test_failed_request_is_retried(embedding_endpoint: Endpoint, model: OpenAIEmbeddings) -> None:
    embedding_endpoint.faults = [lambda _: refusal(500)]
    assert await model.embed(["tea"]) == pytest.approx(expected("tea"), abs=1e-6)
    assert len(embedding_endpoint.requests) == 2


async def test_lasting_failure_is_raised(embedding_endpoint: Endpoint) -> None:
    async with open_openai(MODEL, embedding_endpoint.deployment, retries=1) as model:
        embedding_endpoint.faults = [lambda _: refusal(503)] * 2
        with pytest.raises(EmbeddingUnavailable, match=r"127\.0\.0\.1 failed \(HTTP 503\)") as raised:
            await model.embed(["tea"])
        assert not isinstance(raised.value, EmbeddingRefused)
        assert await model.embed(["tea"]) == pytest.approx(expected("tea"), abs=1e-6)


async def test_refused_embedding_key_is_a_fault_until_the_endpoint_answers(
    embedding_endpoint: Endpoint, model: OpenAIEmbeddings
) -> None:
    embedding_endpoint.faults = [lambda _: refusal(401)]
    with pytest.raises(EmbeddingRefused):
        await model.embed(["tea"])
    (fault,) = list_refusals()
    assert fault.problem.startswith(f"{MODEL} refuses requests: the embedding endpoint at 127.0.0.1 refuses")
    assert "MNEMON_EMBEDDING_API_KEY" in fault.problem
    assert "`embedding.model`" in fault.next_step
    await model.embed(["tea"])
    assert list_refusals() == []


async def test_one_batch_that_fails_fails_all_of_them(embedding_endpoint: Endpoint) -> None:
    async with open_openai(MODEL, embedding_endpoint.deployment, retries=0) as model:
        embedding_endpoint.faults = [right, lambda _: refusal(500)]
        with pytest.raises(EmbeddingUnavailable):
            await model.embed([f"message {number}" for number in range(1000)])


async def test_slow_server_times_out(embedding_endpoint: Endpoint) -> None:
    async with open_openai(MODEL, embedding_endpoint.deployment, try_seconds=0.2, retries=1) as model:
        embedding_endpoint.requests.clear()
        embedding_endpoint.released.clear()
        with pytest.raises(EmbeddingUnavailable, match="APITimeoutError"):
            await model.embed(["tea"])
        assert len(embedding_endpoint.requests) == 2


async def test_unreachable_server_is_reported(embedding_endpoint: Endpoint) -> None:
    embedding_endpoint.server.server_close()
    with pytest.raises(EmbeddingUnavailable, match="APIConnectionError"):
        async with open_openai(MODEL, embedding_endpoint.deployment, retries=0):
            pass


def turned_round(request: Body) -> EndpointAnswer:
    answer = right(request)
    assert isinstance(answer.body, dict)
    return EndpointAnswer(200, {**answer.body, "data": answer.body["data"][::-1]})


def in_numbers(request: Body) -> EndpointAnswer:
    return right({**request, "encoding_format": "float"})


@pytest.mark.parametrize("way", [turned_round, in_numbers])
async def test_alternative_answer_formats_are_accepted(
    way: Callable[[Body], EndpointAnswer], embedding_endpoint: Endpoint, model: OpenAIEmbeddings
) -> None:
    embedding_endpoint.faults = [way]
    texts = ["one", "two", "три"]
    assert await model.embed(texts) == pytest.approx(expected(*texts), abs=1e-6)


def changed(change: Callable[[list[Body]], object]) -> Callable[[Body], EndpointAnswer]:
    def fault(request: Body) -> EndpointAnswer:
        answer = right({**request, "encoding_format": "float"})
        assert isinstance(answer.body, dict)
        return EndpointAnswer(200, {**answer.body, "data": change(answer.body["data"])})

    return fault


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(changed(lambda data: data[:-1]), id="one too few"),
        pytest.param(changed(lambda data: [*data, data[0]]), id="one twice"),
        pytest.param(changed(lambda data: [{**item, "index": 0} for item in data]), id="no order"),
        pytest.param(changed(lambda data: []), id="none"),
        pytest.param(changed(lambda data: None), id="no list"),
        pytest.param(changed(lambda data: [{"index": item["index"]} for item in data]), id="no vectors"),
        pytest.param(
            changed(lambda data: [{**item, "embedding": [1.0] * (1 + item["index"])} for item in data]),
            id="of several lengths",
        ),
        pytest.param(
            changed(lambda data: [{**item, "embedding": [float("nan")] * DIMENSION} for item in data]),
            id="not numbers",
        ),
        pytest.param(
            lambda _: EndpointAnswer(200, b"<html>", {"Content-Type": "text/html"}), id="a web page"
        ),
        pytest.param(lambda _: EndpointAnswer(200, b"{"), id="half an answer"),
        pytest.param(lambda _: EndpointAnswer(200, b"[" * 100_000), id="too deep"),
    ],
)
async def test_malformed_answer_is_not_stored(
    fault: Callable[[Body], EndpointAnswer], embedding_endpoint: Endpoint, model: OpenAIEmbeddings
) -> None:
    embedding_endpoint.faults = [fault] * 4
    with pytest.raises(
        EmbeddingUnavailable,
        match=r"does not answer|gave an unusable answer|did not return a vector of finite numbers",
    ):
        await model.embed(["one", "two", "three"])


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, r"refuses the key \(HTTP 401\): check MNEMON_EMBEDDING_API_KEY"),
        (403, "refuses the key"),
        (404, f"has no model {MODEL}"),
        (405, "refuses requests"),
    ],
)
async def test_a_refusal_is_raised_at_once_without_the_key(
    status: int,
    words: str,
    embedding_endpoint: Endpoint,
    model: OpenAIEmbeddings,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    embedding_endpoint.faults = [lambda _: refusal(status)]
    with pytest.raises(EmbeddingRefused, match=words) as raised:
        await model.embed(["tea"])
    assert len(embedding_endpoint.requests) == 1
    assert KEY not in "".join(traceback.format_exception(raised.value))
    assert KEY not in caplog.text
    assert KEY not in repr(embedding_endpoint.deployment)


async def test_refused_text_does_not_affect_the_vectors_of_others(
    embedding_endpoint: Endpoint, model: OpenAIEmbeddings
) -> None:
    long = "tea " * 1000

    def short_ones_only(request: Body) -> EndpointAnswer:
        return refusal(400) if max(map(len, request["input"])) > 1000 else right(request)

    embedding_endpoint.faults = [short_ones_only] * 50
    vectors = await model.embed(["one", long, "two"])
    assert vectors[0] == pytest.approx(normalise_length(vector("one")[None])[0], abs=1e-6)
    assert vectors[2] == pytest.approx(normalise_length(vector("two")[None])[0], abs=1e-6)
    assert np.linalg.norm(vectors[1]) == pytest.approx(1, abs=1e-6)  # the vector of the text's beginning


async def test_text_above_the_batch_size_of_llama_cpp_gets_the_vector_of_its_beginning(
    embedding_endpoint: Endpoint,
) -> None:
    def short_ones_only(request: Body) -> EndpointAnswer:
        if max(map(len, request["input"])) <= 1000:
            return right(request)
        message = "input (992 tokens) is too large to process. increase the physical batch size"
        return EndpointAnswer(500, {"error": {"code": 500, "message": message, "type": "server_error"}})

    async with open_openai(MODEL, embedding_endpoint.deployment, retries=0) as model:
        embedding_endpoint.faults = [short_ones_only] * 50
        vectors = await model.embed(["one", "чай " * 1000])
    assert vectors[0] == pytest.approx(expected("one")[0], abs=1e-6)
    assert np.linalg.norm(vectors[1]) == pytest.approx(1, abs=1e-6)


async def test_refusal_of_every_text_blames_the_server(
    embedding_endpoint: Endpoint, model: OpenAIEmbeddings
) -> None:
    embedding_endpoint.faults = [lambda _: refusal(400)] * 10
    with pytest.raises(EmbeddingRefused, match=r"refuses each text for model .* \(HTTP 400\): check"):
        await model.embed(["one", "two"])
    assert len(embedding_endpoint.requests) == 2


async def test_a_key_is_needed_for_openai_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EmbeddingNotConfigured, match="set MNEMON_EMBEDDING_API_KEY or OPENAI_API_KEY"):
        async with open_embedder(Embedding(provider="openai"), Deployment()):
            pass


async def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(embedding_endpoint: Endpoint) -> None:
    deployment = Deployment(embedding_url=embedding_endpoint.url, embedding_api_key="ключ\n1")
    with pytest.raises(EmbeddingNotConfigured) as raised:
        async with open_openai(MODEL, deployment):
            pass
    assert "ключ" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("variables", "key"),
    [
        ({}, "none"),
        ({"OPENAI_API_KEY": "theirs"}, "theirs"),
        ({"OPENAI_API_KEY": "theirs", "MNEMON_EMBEDDING_API_KEY": "ours\n"}, "ours"),
    ],
)
async def test_the_key_comes_from_the_environment(
    variables: Mapping[str, str], key: str, embedding_endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, value in {"MNEMON_EMBEDDING_URL": embedding_endpoint.url, **variables}.items():
        monkeypatch.setenv(name, value)
    async with open_openai(MODEL, Deployment()):
        pass
    assert embedding_endpoint.keys == [f"Bearer {key}"]
