"""Batches of Anthropic's models, which Anthropic calls Message Batches."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from datetime import datetime
from typing import get_args

from anthropic import APIStatusError, NotFoundError
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from anthropic.types.shared import ErrorType

from mnemon_infra.models.language.anthropic.endpoint import (
    AnthropicEndpoint,
    ModelCapabilities,
    build_params,
    parse_message,
)
from mnemon_infra.models.language.port import (
    CLOCK_TOLERANCE,
    REFUSED_BATCH,
    BatchProgress,
    BatchRequest,
    BatchResult,
    LineFailed,
    ModelAnswer,
    ModelRefused,
    ModelUnavailable,
    RequestRefused,
)

PAGE = 100
"""Maximum number of batches on one page of the list."""

_ERRORS: tuple[str, ...] = get_args(ErrorType)
_FAILURES = ("api_error", "overloaded_error", "timeout_error", "unknown")
_LINE_ID = re.compile(rb'"custom_id": ?"([A-Za-z0-9-]{1,64})"')


class AnthropicBatches:
    """Anthropic's Message Batches; see `BatchApi`.

    A batch of mnemon is identified by the ids of its lines, which Anthropic returns only with the results.
    """

    most_lines = 100_000
    most_bytes = 256_000_000

    def __init__(self, endpoint: AnthropicEndpoint) -> None:
        self._endpoint = endpoint
        self._batches = endpoint.client.messages.batches
        self._submitted: dict[str, str] = {}

    async def submit(self, batch_id: str, lines: Sequence[BatchRequest]) -> str:
        """Submit a batch, without retries; see `BatchApi.submit`.

        A submission that seems to have failed may have created a batch, which costs money: look for it with
        `find`.
        """
        capabilities = await self._endpoint.read_capabilities()
        # In another thread and in pieces: the body may be long, and a bot may be waiting meanwhile.
        pieces = await asyncio.to_thread(_write_body, self._endpoint.model, capabilities, lines)
        length = sum(map(len, pieces))
        client = self._endpoint.client.with_options(max_retries=0)
        with self._translate_errors():
            try:
                batch = await client.post(
                    "/v1/messages/batches",
                    cast_to=MessageBatch,
                    content=_iterate_pieces(pieces),
                    options={"headers": {"Content-Type": "application/json", "Content-Length": str(length)}},
                )
            except APIStatusError as error:
                if error.status_code not in (404, 405, 501):
                    raise
                self._endpoint.has_batches = False
                raise ModelRefused(
                    f"{self._endpoint.at} does not support batches (HTTP {error.status_code}), so windows "
                    "are requested online: set extraction.mode=online, so that no batch is tried after a "
                    "restart"
                ) from None
            self._submitted[batch.id] = batch_id
            return batch.id

    async def find(self, batch_id: str, lines: int, since: datetime) -> str | None:
        """Return Anthropic's id of a batch that may have been submitted; see `BatchApi.find`.

        Candidates are batches with the same number of lines that were created at most `CLOCK_TOLERANCE`
        before `since`, or later. The ids in the results identify an ended batch, and this process knows the
        batches that it submitted. Any other candidate may be the batch `batch_id` or another batch. If
        another batch were returned, that batch could be lost; if the batch `batch_id` were reported as
        missing, it could be paid for twice. So the caller has to wait until the candidate has ended, which
        takes at most a day.

        Raises:
            ModelUnavailable: a candidate has not ended yet, or Anthropic gives no usable answer.
        """
        is_open = False
        with self._translate_errors():
            async for batch in self._batches.list(limit=PAGE):
                if batch.created_at < since - CLOCK_TOLERANCE:
                    break
                if self._submitted.get(batch.id) == batch_id:
                    return batch.id
                if batch.id in self._submitted or _count_lines(batch) != lines:
                    continue
                if batch.processing_status != "ended":
                    is_open = True
                elif batch.results_url is not None and await self._has_lines_of(batch.id, batch_id):
                    return batch.id
        if is_open:
            raise ModelUnavailable(
                f"{self._endpoint.at} has a running batch of {lines} lines, which may be mnemon's batch "
                f"{batch_id}: wait until that batch has ended"
            )
        return None

    async def load_progress(self, provider_batch_id: str) -> BatchProgress:
        """Ask Anthropic for the state of a batch; see `BatchApi.load_progress`.

        Anthropic keeps the results of an ended batch for 29 days; after that, the batch counts as failed.
        """
        with self._translate_errors():
            try:
                batch = await self._batches.retrieve(provider_batch_id)
            except NotFoundError:
                return BatchProgress("unknown")
            done = _count_lines(batch) - batch.request_counts.processing
            if batch.processing_status != "ended":
                return BatchProgress("running", done)
            if batch.results_url is None:
                return BatchProgress("failed", done, "Anthropic no longer keeps the results of the batch")
            return BatchProgress("ended", done)

    async def read_results(self, provider_batch_id: str) -> AsyncIterator[BatchResult]:
        """Yield the results of an ended batch; see `BatchApi.read_results`.

        If lines are missing at the end, `ModelUnavailable` is raised; the results can be read again.
        """
        with self._translate_errors():
            batch = await self._batches.retrieve(provider_batch_id)
            done = _count_lines(batch) - batch.request_counts.processing
        read = 0
        async with aclosing(self._read_lines(provider_batch_id)) as lines:
            async for line in lines:
                read += 1
                if (response := _parse_response(line)) is not None:
                    yield BatchResult(response.custom_id, _parse_outcome(response))
                elif found := _LINE_ID.search(line):
                    yield BatchResult(found[1].decode(), LineFailed("the line is broken"))
        if read < done:
            raise ModelUnavailable(
                f"{self._endpoint.at} has sent only {read} of {done} results: they are requested again; if "
                "this repeats, check the connection to the server"
            )

    async def cancel(self, provider_batch_id: str) -> None:
        """Cancel a batch, unless it has ended or is unknown."""
        with self._translate_errors():
            try:
                await self._batches.cancel(provider_batch_id)
            except NotFoundError:
                return
            except APIStatusError:
                if (await self._batches.retrieve(provider_batch_id)).processing_status == "in_progress":
                    raise

    async def _has_lines_of(self, provider_batch_id: str, batch_id: str) -> bool:
        """Return whether the first readable line of the results belongs to mnemon's batch `batch_id`."""
        async with aclosing(self._read_lines(provider_batch_id)) as lines:
            async for line in lines:
                if (response := _parse_response(line)) is not None:
                    return response.custom_id.startswith(f"{batch_id}-")
        return False

    async def _read_lines(self, provider_batch_id: str) -> AsyncGenerator[bytes]:
        """Yield the lines of the results, unparsed: the SDK's own reader stops at the first invalid line."""
        with self._translate_errors():
            async with self._batches.with_streaming_response.results(provider_batch_id) as response:
                rest = b""
                async for piece in response.iter_bytes():
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        yield line
                if rest:
                    yield rest

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate errors within the block; `RequestRefused` becomes `ModelRefused` for the whole batch."""
        try:
            with self._endpoint.translate_errors():
                yield
        except RequestRefused as error:
            raise ModelRefused(f"{error}: {REFUSED_BATCH}") from None


def _write_body(model: str, capabilities: ModelCapabilities, lines: Sequence[BatchRequest]) -> list[bytes]:
    """Return the JSON body of a batch in pieces: one for each line, and one for the end."""
    pieces = []
    before = b'{"requests":['
    for line in lines:
        asked = {
            "custom_id": line.id,
            "params": build_params(line.request, model, capabilities, cached_for="1h"),
        }
        pieces.append(before + json.dumps(asked, ensure_ascii=False).encode(errors="replace"))
        before = b","
    return [*pieces, b"]}"]


async def _iterate_pieces(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _count_lines(batch: MessageBatch) -> int:
    counts = batch.request_counts
    return counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired


def _parse_response(line: bytes) -> MessageBatchIndividualResponse | None:
    """Parse a line of the results; None if it is not a result."""
    try:
        response = MessageBatchIndividualResponse.construct(**json.loads(line))
        return response if isinstance(response.custom_id, str) else None
    except (TypeError, ValueError, RecursionError):
        return None


def _parse_outcome(response: MessageBatchIndividualResponse) -> ModelAnswer | LineFailed:
    try:
        match response.result.type:
            case "succeeded":
                return parse_message(response.result.message)
            case "errored":
                error = response.result.error.error.type
                kind = error if error in _ERRORS else "unknown"
                return LineFailed(f"refused: {kind}", is_refused=kind not in _FAILURES)
            case "canceled":
                return LineFailed("the batch was cancelled", is_unasked=True)
            case "expired":
                return LineFailed("the batch has expired", is_unasked=True)
    except (AttributeError, TypeError):
        return LineFailed("the line has no answer")
    return LineFailed("the line has neither an answer nor an error")
