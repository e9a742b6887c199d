"""Reranker: a model behind an endpoint that scores texts by their relevance to a query.

Jina, Cohere and vLLM take a request with `documents`; text-embeddings-inference takes one with `texts`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

import msgspec

from mnemon_infra.config import Deployment
from mnemon_infra.models.status_messages import describe_failure, describe_temporary_failure
from mnemon_infra.telemetry import metrics

if TYPE_CHECKING:
    import httpx

TEXT_CHARACTERS: Final = 2_000
"""Maximum characters of the query and of each text that are sent."""

ANSWER_BYTES: Final = 2 * 1024 * 1024
"""Maximum bytes of an answer: 100 texts of 2,000 characters, which some servers repeat, and their scores."""

LONGEST: Final = 10.0
"""Maximum seconds of each step of a request, such as the connection; callers limit the request as a whole."""

_CHECK: Final = "Check the server, and MNEMON_RERANKER_URL"

_Format: TypeAlias = Literal["documents", "texts"]


class RerankerUnavailable(Exception):
    """The endpoint gives no usable answer now; a later attempt may succeed."""


class RerankerRefused(RerankerUnavailable):
    """The endpoint refuses key, model or request, or no endpoint with a valid address is configured."""


class Reranker(Protocol):
    """A model that scores texts by their relevance to a query."""

    async def score_texts(
        self, model: str, query: str, texts: Sequence[str], seconds: float
    ) -> Sequence[float]:
        """Return a score for each text, in the order of the texts; a higher score is more relevant.

        Most models give scores between 0 and 1, but some scores lie outside.

        Args:
            model: name of the model.
            query: words, a question or a sentence; the model reads its beginning.
            texts: texts that are not blank; the model reads their beginnings.
            seconds: maximum time for connection, request and answer.

        Raises:
            RerankerUnavailable: the endpoint gives no usable answer within this time.
            RerankerRefused: the endpoint refuses the request, or no endpoint with a valid address is
                configured.
        """


class RerankerEndpoint:
    """The reranker at `MNEMON_RERANKER_URL`; see `Reranker`.

    Error messages of this class contain neither the key nor the server's messages: some servers repeat the
    key.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._url = deployment.reranker_url
        secret = deployment.reranker_api_key
        self._key = secret.get_secret_value() if secret else None
        self._client: httpx.AsyncClient | None = None
        self._format: _Format = "documents"

    @asynccontextmanager
    async def open_connections(self) -> AsyncIterator[None]:
        """Keep connections to the endpoint open until the block ends. Without an address, do nothing."""
        if self._url is None:
            yield
            return
        # The import takes 0.1 s: skip it where no endpoint is configured.
        import httpx

        # An answer that is not compressed cannot grow beyond its limit. Redirects are not followed.
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        async with httpx.AsyncClient(headers=headers, timeout=LONGEST, follow_redirects=False) as client:
            self._client = client
            try:
                yield
            finally:
                self._client = None

    async def score_texts(
        self, model: str, query: str, texts: Sequence[str], seconds: float
    ) -> Sequence[float]:
        """Return a score for each text; see `Reranker.score_texts`."""
        begun, outcome = time.perf_counter(), "unavailable"
        try:
            async with asyncio.timeout(seconds):
                scores = await self._request_scores(model, query, texts)
            outcome = "answered"
        except TimeoutError:
            raise RerankerUnavailable(
                f"{self._at} did not answer within {seconds:.3g} s. Check the server at MNEMON_RERANKER_URL, "
                "or raise retrieval.reranker_timeout_ms"
            ) from None
        except RerankerRefused:
            outcome = "refused"
            raise
        finally:
            metrics.RERANKER_SECONDS.observe(time.perf_counter() - begun)
            metrics.RERANKER_CALLS.add(outcome)
        return scores

    async def _request_scores(self, model: str, query: str, texts: Sequence[str]) -> Sequence[float]:
        status, body = await self._post(_build_request(self._format, model, query, texts))
        if status == 422:
            other: _Format = "texts" if self._format == "documents" else "documents"
            status, body = await self._post(_build_request(other, model, query, texts))
            if status == 200:
                self._format = other
        if status != 200:
            raise self._translate_status(status, model)
        try:
            return parse_scores(body, len(texts))
        except ValueError as error:
            raise RerankerUnavailable(f"{self._at} gave an unusable answer: {error}. {_CHECK}") from None

    async def _post(self, request: bytes) -> tuple[int, bytes]:
        """Return the status and the body of the answer; the body is empty unless the status is 200."""
        if self._client is None or self._url is None:
            raise RerankerRefused("no reranker is configured: set MNEMON_RERANKER_URL")
        import httpx

        try:
            async with self._client.stream("POST", self._url, content=request) as answer:
                if answer.status_code != 200:
                    return answer.status_code, b""
                body = bytearray()
                async for piece in answer.aiter_raw():
                    body += piece
                    if len(body) > ANSWER_BYTES:
                        raise RerankerUnavailable(
                            f"{self._at} gave an answer of more than {ANSWER_BYTES:,} bytes. {_CHECK}"
                        )
                return 200, bytes(body)
        except httpx.InvalidURL:
            raise RerankerRefused(
                "the address of the reranker is invalid: check MNEMON_RERANKER_URL"
            ) from None
        except (httpx.HTTPError, OSError) as error:
            raise RerankerUnavailable(
                f"{self._at} does not answer: {type(error).__name__}. {_CHECK}"
            ) from None

    @property
    def _at(self) -> str:
        return f"the reranker at {urlsplit(self._url or '').hostname}"

    def _translate_status(self, status: int, model: str) -> RerankerUnavailable:
        match status:
            case 401 | 403 if self._key is None:
                why = f"requires a key, and none is set (HTTP {status}): set MNEMON_RERANKER_API_KEY"
            case 401 | 403:
                why = f"refuses the key (HTTP {status}): check MNEMON_RERANKER_API_KEY"
            case 404:
                why = (
                    f"has no model {model}, or lacks this path (HTTP 404): check the setting "
                    "retrieval.reranker, and MNEMON_RERANKER_URL"
                )
            case 408 | 409 | 429:
                return RerankerUnavailable(describe_temporary_failure(self._at, status))
            case _ if status < 500:
                why = (
                    f"refuses requests to model {model} (HTTP {status}): check the setting "
                    "retrieval.reranker, and MNEMON_RERANKER_URL"
                )
            case _:
                return RerankerUnavailable(describe_failure(self._at, status))
        return RerankerRefused(f"{self._at} {why}")


class _ScoredText(msgspec.Struct):
    index: int
    relevance_score: float | None = None
    score: float | None = None


class _Results(msgspec.Struct):
    results: list[_ScoredText]


_ANSWER: Final = msgspec.json.Decoder(_Results | list[_ScoredText])


def parse_scores(body: bytes, count: int) -> list[float]:
    """Return the score of each text, in the order of the texts.

    Raises:
        ValueError: the answer does not have exactly one number for each text.
    """
    try:
        answer = _ANSWER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("the answer has no list of scores") from None
    results = answer.results if isinstance(answer, _Results) else answer
    scores = {
        each.index: each.score if each.relevance_score is None else each.relevance_score for each in results
    }
    if len(results) != count or scores.keys() != set(range(count)):
        raise ValueError("the answer does not have exactly one score for each text")
    numbers = [score for index in range(count) if (score := scores[index]) is not None]
    if len(numbers) != count:
        raise ValueError("an item of the answer has neither `relevance_score` nor `score`")
    return numbers


def _build_request(form: _Format, model: str, query: str, texts: Sequence[str]) -> bytes:
    query, *texts = (text[:TEXT_CHARACTERS].encode(errors="replace").decode() for text in (query, *texts))
    request: dict[str, object]
    if form == "documents":
        request = {"model": model, "query": query, "documents": texts, "top_n": len(texts)}
    else:
        request = {"model": model, "query": query, "texts": texts, "truncate": True}
    return msgspec.json.encode(request)
