"""Embedder for OpenAI and servers with the same `/embeddings`: Ollama, LM Studio, vLLM, TEI."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import numpy as np
import structlog
from numpy.typing import NDArray
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAIError
from openai.types import CreateEmbeddingResponse

from mnemon_infra.config import Deployment
from mnemon_infra.models.api_key import NO_KEY, read_api_key
from mnemon_infra.models.embedding import (
    TRANSFORMER,
    CorpusStatistics,
    EmbeddingNotConfigured,
    EmbeddingRefused,
    EmbeddingUnavailable,
    normalise_length,
)
from mnemon_infra.models.refusals import EMBEDDING_REFUSALS
from mnemon_infra.models.status_messages import describe_failure, describe_temporary_failure
from mnemon_infra.telemetry import metrics

USUAL_MODEL = "text-embedding-3-small"
OPENAI = "https://api.openai.com/v1"

DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
"""Dimensions of known models; for other models, the answer to the first request has the dimension."""

TIMEOUT, RETRIES = 10.0, 3
"""Maximum seconds of each step of an attempt, such as the connection, and maximum number of retries.

Before a retry, the SDK waits as long as the server requests, else longer each time. The call fails if
the server requests more than two minutes.
"""

REQUESTS = 4
"""Maximum number of requests in flight for texts to store. Requests for queries are not limited."""

TEXT_BYTES, REQUEST_BYTES, REQUEST_TEXTS = 8_000, 250_000, 256
"""Maximum bytes of a text, and maximum bytes and texts of a request.

OpenAI takes 8,192 tokens a text and 300,000 a request, and a token has at least a byte.
"""

SHORTEST = 200
"""A refused text is halved until it has at most this many characters; if refused again, its vector is all
zeros."""

_TOO_LONG = "too large to process"
"""Part of the message with which llama.cpp refuses a text that exceeds its batch size, with HTTP 500."""

_CHECK = "Check the server, and MNEMON_EMBEDDING_URL"

log = structlog.get_logger("embeddings")

TextBatch = dict[int, str]
"""Texts by their row in the result."""


class _EmbeddingEndpoint:
    """One embedding model at one address.

    Error messages of this class contain neither the key nor the server's messages: some servers repeat the
    key.
    """

    def __init__(self, client: AsyncOpenAI, model: str) -> None:
        self._client = client
        self._model = model

    async def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of the texts, one row for each, not scaled to length 1.

        Raises:
            EmbeddingUnavailable: the endpoint gives no usable answer.
            EmbeddingRefused: the endpoint refuses the request.
        """
        begun, outcome = time.perf_counter(), "unavailable"
        try:
            found = await self._request_vectors(texts)
            outcome = "answered"
            metrics.EMBEDDING_TEXTS.add(by=len(texts))
            EMBEDDING_REFUSALS.pop(self._model, None)
        except EmbeddingRefused as error:
            outcome = "refused"
            if not isinstance(error, _TextRefused):
                EMBEDDING_REFUSALS[self._model] = str(error)
            raise
        finally:
            metrics.EMBEDDING_SECONDS.observe(time.perf_counter() - begun)
            metrics.EMBEDDING_CALLS.add(outcome)
        return found

    async def _request_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        try:
            answer = await self._client.embeddings.create(
                input=list(texts), model=self._model, encoding_format="base64"
            )
        except APIStatusError as error:
            if error.status_code == 500 and _TOO_LONG in str(error):
                raise _TextRefused(f"{self._at} refuses a text (HTTP 500)", 500) from None
            raise self._translate_status(error.status_code) from None
        except APIConnectionError as error:
            raise EmbeddingUnavailable(
                f"{self._at} does not answer: {type(error).__name__}. Check the network, and "
                "MNEMON_EMBEDDING_URL if it is set"
            ) from None
        except (OpenAIError, ValueError, RecursionError) as error:
            raise EmbeddingUnavailable(
                f"{self._at} gave an unusable answer: {type(error).__name__}. {_CHECK}"
            ) from None
        try:
            return _parse_rows(answer, len(texts))
        except (AttributeError, TypeError, ValueError):
            raise EmbeddingUnavailable(
                f"{self._at} did not return a vector of finite numbers for each text. {_CHECK}"
            ) from None

    async def measure_dimension(self) -> int:
        """Return the dimension of the model's vectors, from a request with a test text.

        Raises:
            EmbeddingUnavailable: the endpoint gives no usable answer.
            EmbeddingRefused: the endpoint refuses the request.
        """
        try:
            return int((await self.embed_texts(["dimension"])).shape[1])
        except _TextRefused as refused:
            raise self.build_refusal(
                f"refuses each text for model {self._model} (HTTP {refused.status}): check the setting "
                "embedding.model, and MNEMON_EMBEDDING_URL"
            ) from None

    def build_refusal(self, why: str) -> EmbeddingRefused:
        """Return an error whose message is the address of the endpoint, followed by `why`."""
        return EmbeddingRefused(f"{self._at} {why}")

    @property
    def _at(self) -> str:
        return f"the embedding endpoint at {self._client.base_url.host}"

    def _translate_status(self, status: int) -> EmbeddingUnavailable:
        match status:
            case 401 | 403 if self._client.api_key == NO_KEY:
                return self.build_refusal(
                    f"requires a key, and none is set (HTTP {status}): set MNEMON_EMBEDDING_API_KEY"
                )
            case 401 | 403:
                return self.build_refusal(
                    f"refuses the key (HTTP {status}): check MNEMON_EMBEDDING_API_KEY or OPENAI_API_KEY"
                )
            case 404:
                return self.build_refusal(
                    f"has no model {self._model}, or no /embeddings (HTTP 404): check the setting "
                    "embedding.model, and MNEMON_EMBEDDING_URL"
                )
            case 408 | 409 | 429:
                return EmbeddingUnavailable(describe_temporary_failure(self._at, status))
            case 400 | 413 | 422:
                return _TextRefused(f"{self._at} refuses a text (HTTP {status})", status)
            case _ if status < 500:
                return self.build_refusal(
                    f"refuses requests to model {self._model} (HTTP {status}): check "
                    "MNEMON_EMBEDDING_URL, the account at the provider, and the account's access to the model"
                )
            case _:
                return EmbeddingUnavailable(describe_failure(self._at, status))


class OpenAIEmbeddings:
    """An embedding model of OpenAI, or of a server with the same API; see `Embedder`.

    Only the first 8,000 bytes of a text count.

    Attributes:
        model, dimension, thresholds, is_loading: see `Embedder`.
    """

    thresholds = TRANSFORMER
    is_loading = False

    def __init__(self, endpoint: _EmbeddingEndpoint, model: str, dimension: int) -> None:
        self.model = f"openai/{model}"
        self.dimension = dimension
        self._endpoint = endpoint
        self._free = asyncio.Semaphore(REQUESTS)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors to store, one row for each text; see `Embedder.embed`.

        White space at the ends of a text is not sent; a blank text gives zeros. A text also gives zeros if
        the endpoint refuses even a short beginning of it, but accepts other texts.
        """
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        try:
            async with asyncio.TaskGroup() as requests:
                for batch in _split_batches(texts):
                    requests.create_task(self._embed_batch(batch, vectors))
        except* EmbeddingUnavailable as errors:
            first = errors.exceptions[0]
        else:
            return vectors
        raise first

    async def compute_statistics(self, texts: Sequence[str]) -> None:
        """Return None: a transformer weighs words itself."""

    async def embed_query(self, text: str, statistics: CorpusStatistics | None = None) -> NDArray[np.float32]:
        """Return the vector of a query; see `Embedder.embed_query`."""
        vectors = np.zeros((1, self.dimension), dtype=np.float32)
        for batch in _split_batches([text]):
            await self._fill_rows(batch, vectors)
        (vector,) = vectors
        return vector

    async def _embed_batch(self, batch: TextBatch, vectors: NDArray[np.float32]) -> None:
        async with self._free:
            await self._fill_rows(batch, vectors)

    async def _fill_rows(self, batch: TextBatch, vectors: NDArray[np.float32]) -> None:
        try:
            found = await self._endpoint.embed_texts(list(batch.values()))
        except _TextRefused as error:
            await self._fill_refused_rows(batch, vectors, error)
            return
        if found.shape[1] != self.dimension:
            raise self._endpoint.build_refusal(
                f"returns vectors of {found.shape[1]} dimensions, and {self.model} has {self.dimension}: "
                "check that MNEMON_EMBEDDING_URL is the address of this model"
            )
        vectors[list(batch)] = normalise_length(found)

    async def _fill_refused_rows(
        self, batch: TextBatch, vectors: NDArray[np.float32], refused: "_TextRefused"
    ) -> None:
        """Embed a refused batch in halves, and a refused text by its first half, repeatedly.

        Thus a refused text does not keep the others from being embedded, and a text that is too long gets the
        vector of its beginning. A text of at most `SHORTEST` characters that is refused keeps its zeros.

        Raises:
            EmbeddingUnavailable: the endpoint gives no usable answer.
            EmbeddingRefused: a test text is refused too, so no text of the batch is the reason, or the
                vectors have another dimension.
        """
        await self._endpoint.measure_dimension()  # if this is refused too, no text is the reason
        rows = list(batch)
        if len(rows) > 1:
            for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
                await self._fill_rows({row: batch[row] for row in half}, vectors)
            return
        (row,) = rows
        if len(batch[row]) > SHORTEST:
            await self._fill_rows({row: batch[row][: len(batch[row]) // 2]}, vectors)
            return
        log.warning("text refused by embedder, using words only", error=str(refused))


class _TextRefused(EmbeddingRefused):
    """The endpoint refuses at least one text of a request, perhaps because the text is too long."""

    def __init__(self, problem: str, status: int) -> None:
        super().__init__(problem)
        self.status = status


@asynccontextmanager
async def open_openai(
    model: str | None, deployment: Deployment, *, try_seconds: float = TIMEOUT, retries: int = RETRIES
) -> AsyncIterator[OpenAIEmbeddings]:
    """Open `model` for the duration of the block; None opens `USUAL_MODEL`.

    If `DIMENSIONS` does not have the model, a first request finds the dimension of its vectors. `try_seconds`
    and `retries` replace `TIMEOUT` and `RETRIES`.

    Raises:
        EmbeddingNotConfigured: the key is missing, or has characters that no request can carry.
        EmbeddingUnavailable: the endpoint gives no usable answer.
        EmbeddingRefused: the endpoint refuses the request.
    """
    name = model or USUAL_MODEL
    async with AsyncOpenAI(
        api_key=read_api_key(deployment, "embedding", EmbeddingNotConfigured),
        base_url=deployment.embedding_url or OPENAI,
        timeout=try_seconds,
        max_retries=retries,
    ) as client:
        endpoint = _EmbeddingEndpoint(client, name)
        dimension = DIMENSIONS.get(name) or await endpoint.measure_dimension()
        yield OpenAIEmbeddings(endpoint, name, dimension)


def _split_batches(texts: Sequence[str]) -> Iterator[TextBatch]:
    batch: TextBatch = {}
    room = REQUEST_BYTES
    for row, text in enumerate(texts):
        body = text.strip().encode(errors="replace")[:TEXT_BYTES]
        if not body:
            continue
        if len(body) > room or len(batch) == REQUEST_TEXTS:
            yield batch
            batch, room = {}, REQUEST_BYTES
        batch[row] = body.decode(errors="ignore")
        room -= len(body)
    if batch:
        yield batch


def _parse_rows(answer: CreateEmbeddingResponse, count: int) -> NDArray[np.float32]:
    """Return the vectors in the order of the texts.

    Raises:
        AttributeError, TypeError, ValueError: the answer does not have a vector of finite numbers for
            each text.
    """
    by_index = {item.index: _parse_vector(item.embedding) for item in answer.data}
    if len(answer.data) != count or by_index.keys() != set(range(count)):
        raise ValueError("the response does not have a vector for each text")
    rows = np.stack([by_index[index] for index in range(count)])
    if not np.isfinite(rows).all():
        raise ValueError("a vector of the response has values that are not finite numbers")
    return rows


def _parse_vector(vector: list[float] | str) -> NDArray[np.float32]:
    """Decode a vector. Some servers answer with numbers although base64 was requested."""
    if isinstance(vector, str):
        return np.frombuffer(base64.b64decode(vector), dtype="<f4")
    return np.asarray(vector, dtype=np.float32)
