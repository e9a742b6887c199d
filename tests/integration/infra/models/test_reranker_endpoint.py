"""Reranking by an endpoint, against a local server with the wire formats and their faults."""

import asyncio
import gc
import socket
import traceback
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from mnemon_infra.config import Deployment
from mnemon_infra.models.reranker import (
    ANSWER_BYTES,
    TEXT_CHARACTERS,
    RerankerEndpoint,
    RerankerRefused,
    RerankerUnavailable,
)
from tests.support.servers.embedding_server import KEY, Body, EndpointAnswer, refusal
from tests.support.servers.ports import free_port
from tests.support.servers.reranker_server import RerankerServer, build_results, build_tei_answer

MODEL = "a-reranker-of-our-own"
TEXTS = ["tea", "zzz", "zz"]
SCORES = [0.0, 0.3, 0.2]
SECONDS = 10.0


@pytest_asyncio.fixture
async def reranker(reranker_endpoint: RerankerServer) -> AsyncIterator[RerankerEndpoint]:
    reranker = RerankerEndpoint(reranker_endpoint.deployment)
    async with reranker.open_connections():
        yield reranker


async def test_texts_are_scored(reranker_endpoint: RerankerServer, reranker: RerankerEndpoint) -> None:
    assert await reranker.score_texts(MODEL, "quiz", TEXTS, SECONDS) == SCORES
    assert reranker_endpoint.requests == [
        {"model": MODEL, "query": "quiz", "documents": TEXTS, "top_n": len(TEXTS)}
    ]
    assert reranker_endpoint.keys == [f"Bearer {KEY}"]


async def test_beginnings_of_texts_are_sent(
    reranker_endpoint: RerankerServer, reranker: RerankerEndpoint
) -> None:
    long = "й" * 10_000
    await reranker.score_texts(MODEL, long, [long, "\ud800z"], SECONDS)
    (request,) = reranker_endpoint.requests
    cut = long[:TEXT_CHARACTERS]
    assert (request["query"], request["documents"]) == (cut, [cut, "?z"])


async def test_without_a_key_none_is_sent(reranker_endpoint: RerankerServer) -> None:
    reranker = RerankerEndpoint(Deployment(reranker_url=reranker_endpoint.address))
    reranker_endpoint.faults = [reranker_endpoint.build_answer, lambda _: refusal(401)]
    async with reranker.open_connections():
        assert await reranker.score_texts(MODEL, "quiz", TEXTS, SECONDS) == SCORES
        with pytest.raises(RerankerRefused, match=r"none is set .* set MNEMON_RERANKER_API_KEY"):
            await reranker.score_texts(MODEL, "quiz", TEXTS, SECONDS)
    assert reranker_endpoint.keys == [None, None]


async def test_server_that_accepts_texts_receives_texts(
    reranker_endpoint: RerankerServer, reranker: RerankerEndpoint
) -> None:
    reranker_endpoint.faults = [build_tei_answer] * 3
    assert await reranker.score_texts(MODEL, "quiz", TEXTS, SECONDS) == SCORES
    assert await reranker.score_texts(MODEL, "quiz", TEXTS, SECONDS) == SCORES
    first, *others = reranker_endpoint.requests
    assert "documents" in first
    assert others == [{"model": MODEL, "query": "quiz", "texts": TEXTS, "truncate": True}] * 2


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (301, RerankerRefused, r"refuses requests to model .*\(HTTP 301\)"),
        (400, RerankerRefused, "refuses requests"),
        (401, RerankerRefused, r"refuses the key \(HTTP 401\): check MNEMON_RERANKER_API_KEY"),
        (403, RerankerRefused, "refuses the key"),
        (404, RerankerRefused, f"has no model {MODEL}, or lacks this path"),
        (422, RerankerRefused, "refuses requests"),
        (429, RerankerUnavailable, "limits the rate"),
        (503, RerankerUnavailable, r"127\.0\.0\.1 failed \(HTTP 503\)"),
    ],
)
async def test_refusal_is_raised_without_the_key(
    status: int,
    error: type[Exception],
    words: str,
    reranker_endpoint: RerankerServer,
    reranker: RerankerEndpoint,
) -> None:
    headers = {"Location": reranker_endpoint.address}
    reranker_endpoint.faults = [lambda _: refusal(status, headers)] * 2
    with pytest.raises(RerankerUnavailable, match=words) as raised:
        await reranker.score_texts(MODEL, "quiz", TEXTS, SECONDS)
    assert type(raised.value) is error
    assert KEY not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        pytest.param(
            lambda request: EndpointAnswer(200, {"results": build_results(request)[:-1]}),
            "the answer does not have exactly one score for each text",
            id="one too few",
        ),
        pytest.param(
            lambda _: EndpointAnswer(200, b" " * (ANSWER_BYTES + 1)), "more than 2,097,152 bytes", id="huge"
        ),
        pytest.param(
            lambda _: EndpointAnswer(200, b"x", {"Content-Encoding": "gzip"}),
            "no list of scores",
            id="compressed",
        ),
    ],
)
async def test_unusable_answer_is_reported(
    fault: Callable[[Body], EndpointAnswer],
    words: str,
    reranker_endpoint: RerankerServer,
    reranker: RerankerEndpoint,
) -> None:
    reranker_endpoint.faults = [fault]
    with pytest.raises(RerankerUnavailable, match=words):
        await reranker.score_texts(MODEL, "quiz", TEXTS, SECONDS)
    assert await reranker.score_texts(MODEL, "quiz", TEXTS, SECONDS) == SCORES


async def test_slow_server_times_out(reranker_endpoint: RerankerServer, reranker: RerankerEndpoint) -> None:
    reranker_endpoint.released.clear()
    with pytest.raises(RerankerUnavailable, match=r"did not answer within 0\.1 s"):
        await reranker.score_texts(MODEL, "quiz", TEXTS, 0.1)
    reranker_endpoint.released.set()
    assert await reranker.score_texts(MODEL, "quiz", TEXTS, SECONDS) == SCORES


# The HTTP library does not close the socket of a cancelled handshake; the garbage collector closes it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_limit_covers_the_connection() -> None:
    async def ask_silent_server() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            # The server accepts the connection and never answers the TLS handshake.
            reranker = RerankerEndpoint(
                Deployment(reranker_url=f"https://127.0.0.1:{silent.getsockname()[1]}/rerank")
            )
            async with reranker.open_connections():
                with pytest.raises(RerankerUnavailable, match=r"did not answer within 0\.1 s"):
                    await reranker.score_texts(MODEL, "quiz", TEXTS, 0.1)

    asyncio.run(ask_silent_server())
    gc.collect()


async def test_unreachable_server_is_reported() -> None:
    reranker = RerankerEndpoint(Deployment(reranker_url=f"http://127.0.0.1:{free_port()}/rerank"))
    async with reranker.open_connections():
        with pytest.raises(
            RerankerUnavailable,
            match=r"127\.0\.0\.1 does not answer: ConnectError\. Check .*MNEMON_RERANKER_URL",
        ):
            await reranker.score_texts(MODEL, "quiz", TEXTS, SECONDS)


async def test_address_that_cannot_be_asked_is_reported() -> None:
    reranker = RerankerEndpoint(Deployment(reranker_url="http://a\tb c/rerank"))
    async with reranker.open_connections():
        with pytest.raises(
            RerankerRefused, match="address of the reranker is invalid: check MNEMON_RERANKER_URL"
        ):
            await reranker.score_texts(MODEL, "quiz", TEXTS, SECONDS)


async def test_missing_address_is_reported() -> None:
    reranker = RerankerEndpoint(Deployment())
    async with reranker.open_connections():
        with pytest.raises(RerankerRefused, match="no reranker is configured: set MNEMON_RERANKER_URL"):
            await reranker.score_texts(MODEL, "quiz", TEXTS, SECONDS)
