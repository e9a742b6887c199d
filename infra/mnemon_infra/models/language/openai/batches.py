"""Batches in OpenAI's wire format: a file of requests is uploaded, files of results are downloaded."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Literal

from openai import APIStatusError, BadRequestError, ConflictError, NotFoundError, omit
from openai.types import Batch
from openai.types.batch_create_params import OutputExpiresAfter

from mnemon_infra.models.language.openai.endpoint import (
    OpenAIEndpoint,
    ParameterRefused,
    find_rejected_parameter,
    parse_completion,
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
)

COMPLETIONS: Literal["/v1/chat/completions"] = "/v1/chat/completions"

OURS = "mnemon_batch"
"""Key in a batch's metadata; the value is mnemon's id of the batch."""

PAGE = 100
"""Number of batches on one page of the list, the maximum that OpenAI allows."""

NO_SUCH_PATH = (404, 405, 501)

_KEPT: OutputExpiresAfter = {"anchor": "created_at", "seconds": 30 * 86_400}
"""Lifetime of a batch's results at OpenAI: 30 days, as long as OpenAI keeps the file of requests."""

_UNASKED_CODES = ("batch_expired", "batch_cancelled")
_LINE_ID = re.compile(rb'"custom_id": ?"([A-Za-z0-9-]{1,64})"')
_CODE = re.compile(r"[a-z0-9_]{1,64}")


class OpenAIBatches:
    """Batches of an OpenAI-compatible server; see `BatchApi`."""

    most_lines = 50_000
    most_bytes = 200_000_000

    def __init__(self, endpoint: OpenAIEndpoint) -> None:
        self._endpoint = endpoint
        self._client = endpoint.client

    async def submit(self, batch_id: str, lines: Sequence[BatchRequest]) -> str:
        """Upload the lines and create a batch of them; see `BatchApi.submit`."""
        # In another thread: the encoding may take seconds, and a bot may be waiting for something else.
        content = await asyncio.to_thread(self._encode_lines, lines)
        with self._translate_errors():
            file_id = await self._upload(batch_id, content)
            # Once only: if just the answer was lost, a repetition would create a second batch.
            batch = await self._client.with_options(max_retries=0).batches.create(
                input_file_id=file_id,
                endpoint=COMPLETIONS,
                completion_window="24h",
                metadata={OURS: batch_id},
                output_expires_after=_KEPT if self._endpoint.is_openai else omit,
            )
            return batch.id

    async def find(self, batch_id: str, lines: int, since: datetime) -> str | None:
        """Return the id of the batch whose metadata contain `batch_id`; see `BatchApi.find`.

        Batches that were created more than `CLOCK_TOLERANCE` before `since` do not count.
        """
        earliest = (since - CLOCK_TOLERANCE).timestamp()
        former: Batch | None = None
        seen: set[str] = set()
        with self._translate_errors():
            async for batch in self._client.batches.list(limit=PAGE):
                if batch.id in seen:  # a server without pages returns the same one again and again
                    return None
                seen.add(batch.id)
                if batch.created_at < earliest:
                    # The list is sorted by age, newest first; a list in another order is read to the end.
                    if former is not None and former.created_at >= batch.created_at:
                        return None
                elif (batch.metadata or {}).get(OURS) == batch_id:
                    return batch.id
                former = batch
        return None

    async def load_progress(self, provider_batch_id: str) -> BatchProgress:
        """Ask the server for the state of a batch; see `BatchApi.load_progress`."""
        with self._translate_errors():
            try:
                batch = await self._client.batches.retrieve(provider_batch_id)
            except NotFoundError:
                return BatchProgress("unknown")
            counts = batch.request_counts
            done = counts.completed + counts.failed if counts else 0
            match batch.status:
                case "completed" | "expired" | "cancelled":
                    return BatchProgress("ended", done)
                case "failed":
                    return BatchProgress("failed", done, _describe_errors(batch))
                case _:
                    return BatchProgress("running", done)

    async def read_results(self, provider_batch_id: str) -> AsyncIterator[BatchResult]:
        """Yield the results of an ended batch; see `BatchApi.read_results`.

        If a file ends within a line, complete lines are yielded before `ModelUnavailable` is raised. Read the
        results again for the rest, which is paid for. After the last line, the endpoint adapts the parameters
        that the server refused in these results.
        """
        rejected: set[str] = set()
        with self._translate_errors():
            batch = await self._client.batches.retrieve(provider_batch_id)
            for file_id in (batch.output_file_id, batch.error_file_id):
                if file_id:
                    async for line in self._read_lines(file_id):
                        if result := self._parse_line(line, rejected):
                            yield result
        for parameter in rejected:
            self._endpoint.adapt_parameter(parameter)

    async def cancel(self, provider_batch_id: str) -> None:
        """Cancel a batch, unless it has ended or is unknown."""
        with self._translate_errors(), suppress(BadRequestError, ConflictError, NotFoundError):
            await self._client.batches.cancel(provider_batch_id)

    async def _upload(self, batch_id: str, content: bytes) -> str:
        try:
            file = await self._client.files.create(file=(f"{batch_id}.jsonl", content), purpose="batch")
        except APIStatusError as error:
            self._endpoint.has_batches = error.status_code not in NO_SUCH_PATH
            raise
        if not isinstance(getattr(file, "id", None), str):
            # Some servers answer every unknown path with a success.
            self._endpoint.has_batches = False
            raise ModelRefused(
                f"{self._endpoint.at} does not support batches, so windows are requested online: set "
                "extraction.mode=online, so that no batch is tried after a restart"
            )
        return file.id

    def _encode_lines(self, lines: Iterable[BatchRequest]) -> bytes:
        """Return the content of a batch's file of requests in JSON Lines."""
        return b"".join(
            json.dumps(
                {
                    "custom_id": line.id,
                    "method": "POST",
                    "url": COMPLETIONS,
                    "body": self._endpoint.build_body(line.request),
                },
                ensure_ascii=False,
            ).encode(errors="replace")
            + b"\n"
            for line in lines
        )

    async def _read_lines(self, file_id: str) -> AsyncIterator[bytes]:
        """Yield the lines of a file of any size.

        The SDK's own reader would also split at U+2028, which JSON may contain.

        Raises:
            ValueError: the file ends within a line.
        """
        rest = b""
        async with self._client.files.with_streaming_response.content(file_id) as response:
            async for chunk in response.iter_bytes():
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    yield line
        if rest.strip():
            json.loads(rest)
            yield rest

    def _parse_line(self, line: bytes, rejected: set[str]) -> BatchResult | None:
        """Parse a line of the results; None if the line has no readable id.

        If the line says that the server refuses a parameter that requests can adapt, add the parameter to
        `rejected`.
        """
        try:
            given = json.loads(line)
            return BatchResult(str(given["custom_id"]), self._parse_outcome(given, rejected))
        except (LookupError, AttributeError, TypeError, ValueError, RecursionError):
            found = _LINE_ID.search(line)
            return BatchResult(found[1].decode(), LineFailed("the line is broken")) if found else None

    def _parse_outcome(self, given: Mapping[str, Any], rejected: set[str]) -> ModelAnswer | LineFailed:
        response = given["response"]
        if response is None:
            code = _check_code(given["error"]["code"])
            return LineFailed(code, is_unasked=code in _UNASKED_CODES)
        status = int(response["status_code"])
        if status == 200:
            return parse_completion(response["body"])
        parameter = find_rejected_parameter(response["body"]) if status in (400, 422) else None
        if is_adapted := parameter is not None and self._endpoint.can_adapt(parameter):
            rejected.add(parameter)
        return LineFailed(f"HTTP {status}", is_refused=400 <= status < 500, is_adapted=is_adapted)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            with self._endpoint.translate_errors("batches"):
                yield
        except ParameterRefused as error:
            raise ModelRefused(f"{error}: {REFUSED_BATCH}") from None


def _describe_errors(batch: Batch) -> str:
    """Return the codes of a batch's errors. Their messages may contain the request or the key."""
    errors = (batch.errors.data if batch.errors else None) or ()
    return ", ".join(dict.fromkeys(_check_code(error.code) for error in errors)) or "unknown"


def _check_code(code: object) -> str:
    return code if isinstance(code, str) and _CODE.fullmatch(code) else "unknown"
