"""Batches of Google's models: a file of requests is uploaded, a file of results downloaded."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import Any, TypeVar

import structlog
from google.genai.errors import APIError
from google.genai.types import (
    BatchJob,
    CreateBatchJobConfig,
    File,
    ListBatchJobsConfig,
    UploadFileConfig,
)

from mnemon_infra.models.language.google.answers import compute_token_limit, parse_response
from mnemon_infra.models.language.google.endpoint import GoogleEndpoint, refuses_key
from mnemon_infra.models.language.port import (
    CLOCK_TOLERANCE,
    REFUSED_BATCH,
    BatchProgress,
    BatchRequest,
    BatchResult,
    LineFailed,
    ModelRefused,
    ModelRequest,
    ModelUnavailable,
    RequestRefused,
)

MOST_LINES, MOST_BYTES = 50_000, 100_000_000
"""Maximum lines and bytes of a batch, to limit memory; Google allows 2 GB and any number of lines."""

IN_MEMORY = 10_000_000
"""Maximum bytes of results that are kept in memory; larger results are kept on disk."""

PAGE = 100

ENDED = frozenset({"SUCCEEDED", "PARTIALLY_SUCCEEDED", "CANCELLED", "EXPIRED"})

REFUSALS = frozenset({3, 5, 7, 8, 9, 11, 16})
"""Status codes (`google.rpc.Code`) of lines that Google would refuse again.

They are INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, OUT_OF_RANGE
and UNAUTHENTICATED.
"""

T = TypeVar("T")

log = structlog.get_logger("models")


class GoogleBatches:
    """Batches of one of Google's models; see `BatchApi`.

    Instructions are sent with each line instead of as cached content, which may expire before the batch has
    run. Google caches the common parts of lines, and deletes uploaded files after 48 hours.
    """

    most_lines = MOST_LINES
    most_bytes = MOST_BYTES

    def __init__(self, server: GoogleEndpoint) -> None:
        self._server = server
        self._client = server.client

    async def submit(self, batch_id: str, lines: Sequence[BatchRequest]) -> str:
        """Upload the lines and create a batch of them; see `BatchApi.submit`.

        The creation is requested once, without retries: two requests would create two batches.
        """
        requests = await asyncio.to_thread(_write_lines, lines)
        file = await self._send_request(partial(self._upload, batch_id, requests))
        job = await self._send_request(partial(self._create, batch_id, file), tries=1)
        if job.name is None:
            raise ModelUnavailable(
                "Google did not return the name of the batch. Check the server, and MNEMON_GOOGLE_URL"
            )
        return job.name

    async def find(self, batch_id: str, lines: int, since: datetime) -> str | None:
        """Return the id of the batch whose display name is `batch_id`; see `BatchApi.find`.

        Batches that were created more than `CLOCK_TOLERANCE` before `since` do not count.
        """
        return await self._send_request(partial(self._find_job, batch_id, since - CLOCK_TOLERANCE))

    async def load_progress(self, provider_batch_id: str) -> BatchProgress:
        """Ask Google for the state of a batch."""
        return await self._send_request(partial(self._read_progress, provider_batch_id))

    async def read_results(self, provider_batch_id: str) -> AsyncIterator[BatchResult]:
        """Download all results, then yield them; see `BatchApi.read_results`.

        A batch that has expired may have no results, and a batch that Google does not know has none. If a
        download breaks, the lines that have arrived are yielded before `ModelUnavailable` is raised.
        """
        name = await self._send_request(partial(self._find_results, provider_batch_id))
        if name is None:
            return
        unreadable = 0
        failed: ModelUnavailable | None = None
        with SpooledTemporaryFile(max_size=IN_MEMORY) as file:
            try:
                await self._send_request(partial(self._server.download_file, str(name), file))
            except ModelUnavailable as error:  # the lines received so far are valid
                failed = error
            file.seek(0)
            for line in file:
                result = _parse_line(line)
                if result is not None:
                    yield result
                elif line.strip():
                    unreadable += 1
        if unreadable:
            log.warning("batch result lines skipped as unreadable", batch=provider_batch_id, lines=unreadable)
        if failed is not None:
            raise failed

    async def cancel(self, provider_batch_id: str) -> None:
        """Cancel a batch, unless it has ended or is unknown."""
        await self._send_request(partial(self._cancel, provider_batch_id))

    async def _send_request(self, call: Callable[[], Awaitable[T]], tries: int | None = None) -> T:
        try:
            return await self._server.send_request(call, tries)
        except RequestRefused as error:
            raise ModelRefused(f"{error}: {REFUSED_BATCH}") from None

    async def _read_progress(self, provider_batch_id: str) -> BatchProgress:
        job = await self._read_job(provider_batch_id)
        if job is None:
            return BatchProgress("unknown")
        done = _count_finished_lines(job)
        state = str(job.get("state")).rpartition("STATE_")[2]  # BATCH_STATE_... or JOB_STATE_...
        if state == "FAILED":
            return BatchProgress("failed", done, "Google reports that the batch failed")
        return BatchProgress("ended" if state in ENDED else "running", done)

    async def _read_job(self, provider_batch_id: str) -> Mapping[str, Any] | None:
        """Return Google's description of a batch; None if Google does not know the id."""
        try:
            operation = await self._server.fetch_resource("batches", provider_batch_id)
        except APIError as error:
            if error.code != 404:
                raise
            return None
        return dict(operation["metadata"])

    async def _find_results(self, provider_batch_id: str) -> object:
        """Return the name of the file of results; None if there is none."""
        job = await self._read_job(provider_batch_id) or {}
        return job.get("output", {}).get("responsesFile")

    async def _upload(self, batch_id: str, requests: bytes) -> File:
        config = UploadFileConfig(mime_type="application/jsonl", display_name=batch_id)
        return await self._client.files.upload(file=BytesIO(requests), config=config)

    async def _create(self, batch_id: str, file: File) -> BatchJob:
        name = file.name or ""
        try:
            return await self._client.batches.create(
                model=self._server.model, src=name, config=CreateBatchJobConfig(display_name=batch_id)
            )
        except APIError as error:
            if error.code < 500:  # otherwise a batch may exist that reads the file
                with suppress(ModelUnavailable, RequestRefused):
                    await self._server.send_request(partial(self._client.files.delete, name=name), tries=1)
            raise

    async def _find_job(self, batch_id: str, since: datetime) -> str | None:
        config = ListBatchJobsConfig(page_size=PAGE)
        async for job in await self._client.batches.list(config=config):
            is_ours = job.display_name == batch_id and (job.create_time is None or job.create_time >= since)
            if is_ours and job.name is not None:
                return job.name
        return None

    async def _cancel(self, provider_batch_id: str) -> None:
        try:
            await self._client.batches.cancel(name=provider_batch_id)
        except APIError as error:
            if error.code not in (400, 404, 409) or refuses_key(error):
                raise  # otherwise the batch has ended or is unknown


def _write_lines(lines: Sequence[BatchRequest]) -> bytes:
    bodies = ({"key": line.id, "request": _build_body(line.request)} for line in lines)
    return b"".join(json.dumps(body, ensure_ascii=False).encode(errors="replace") + b"\n" for body in bodies)


def _build_body(request: ModelRequest) -> dict[str, Any]:
    """Return the body of a request as the SDK writes it for an online request."""
    generation: dict[str, Any] = {"maxOutputTokens": compute_token_limit(request)}
    if request.schema is not None:
        generation |= {"responseMimeType": "application/json", "responseJsonSchema": dict(request.schema)}
    return {
        "systemInstruction": {"parts": [{"text": request.instructions}]},
        "contents": [{"role": "user", "parts": [{"text": request.text}]}],
        "generationConfig": generation,
    }


def _count_finished_lines(job: Mapping[str, Any]) -> int:
    """Return the number of lines of a batch that have succeeded or failed."""
    counts = job.get("batchStats", {})
    return int(counts.get("successfulRequestCount", 0)) + int(counts.get("failedRequestCount", 0))


def _parse_line(line: bytes) -> BatchResult | None:
    """Parse a line of the results; None if the line has no readable id."""
    try:
        said = json.loads(line)
        line_id, response = said["key"], said.get("response")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(line_id, str):
        return None
    if response is None:
        return BatchResult(line_id, _parse_failure(said.get("error") or said.get("status")))
    try:
        return BatchResult(line_id, parse_response(response))
    except (LookupError, AttributeError, TypeError):
        return BatchResult(line_id, LineFailed("the line has no answer"))


def _parse_failure(error: object) -> LineFailed:
    code = error.get("code") if isinstance(error, dict) else None
    if not isinstance(code, int):
        return LineFailed("Google returned neither an answer nor an error")
    return LineFailed(f"Google returned an error (code {code})", code in REFUSALS or 400 <= code < 500)
