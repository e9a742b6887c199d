"""OpenAI's wire format: files and batches."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from email.parser import BytesParser
from typing import Any
from uuid import uuid4

from mnemon_bench.provider_server.answers import ReceivedRequest
from mnemon_bench.provider_server.faults import Damage
from mnemon_bench.provider_server.openai_bodies import (
    COMPLETIONS,
    UnsupportedParameter,
    build_completion,
    build_parameter_error,
    parse_request,
)
from mnemon_bench.provider_server.state import BatchLine, ProviderBatch, ProviderState
from mnemon_bench.provider_server.wire import (
    HttpRequest,
    HttpResponse,
    Route,
    build_refusal,
    build_results_file,
)

FORMAT = "openai"

PAGE = 20
"""Number of batches per page, if the client gives no limit."""

_ENDED = {"ended": "completed", "expired": "expired", "failed": "failed", "cancelled": "cancelled"}


def _upload_file(state: ProviderState, request: HttpRequest) -> HttpResponse:
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    parts = {
        str(part.get_param("name", header="content-disposition")): part
        for part in BytesParser().parsebytes(head + request.body).walk()
        if not part.is_multipart()
    }
    content = parts["file"].get_payload(decode=True)
    if parts["purpose"].get_payload(decode=True) != b"batch" or not isinstance(content, bytes):
        raise ValueError(
            "the upload must have a file in the part `file`, and the value `batch` in the part `purpose`"
        )
    file = {
        "id": f"file-{uuid4().hex}",
        "object": "file",
        "bytes": len(content),
        "created_at": int(time.time()),
        "filename": parts["file"].get_filename(),
        "purpose": "batch",
        "status": "processed",
    }
    with state.lock:
        state.files[str(file["id"])] = content
    return HttpResponse(file)


def _create_batch(state: ProviderState, request: HttpRequest) -> HttpResponse:
    body = request.json()
    metadata = body.get("metadata") or {}
    if body["endpoint"] != COMPLETIONS or body["completion_window"] != "24h":
        raise ValueError(f"endpoint must be {COMPLETIONS}, and completion_window 24h")
    if any(len(key) > 64 or len(value) > 512 for key, value in metadata.items()):
        raise ValueError("metadata: a key may have at most 64 characters, and a value at most 512")
    refused: dict[str, UnsupportedParameter] = {}
    lines = []
    for line in state.files[body["input_file_id"]].splitlines():
        given = json.loads(line)
        line_id, wanted = given["custom_id"], given["body"]
        if (given["method"], given["url"]) != ("POST", COMPLETIONS):
            raise ValueError(f"every line must have the method POST and the url {COMPLETIONS}")
        try:
            question = parse_request(wanted, state)
        except UnsupportedParameter as error:
            refused[line_id] = error
            question = ReceivedRequest(wanted["model"], "", line_id)
        lines.append(BatchLine(line_id, question))
    if len({line.line_id for line in lines}) < len(lines):
        raise ValueError("custom_id: two lines have the same custom_id; give each line its own")
    given = {"metadata": metadata, "refused": refused, "input_file_id": body["input_file_id"]}
    return HttpResponse(_show_batch(state, state.create_batch(FORMAT, lines, given)))


def _list_batches(state: ProviderState, request: HttpRequest) -> HttpResponse:
    batches = state.list_batches(FORMAT)
    ids = [batch.id for batch in batches]
    first = ids.index(request.query["after"]) + 1 if "after" in request.query else 0
    page = batches[first : first + int(request.query.get("limit", PAGE))]
    return HttpResponse(
        {
            "object": "list",
            "data": [_show_batch(state, batch) for batch in page],
            "first_id": page[0].id if page else None,
            "last_id": page[-1].id if page else None,
            "has_more": first + len(page) < len(batches),
        }
    )


def _retrieve_batch(state: ProviderState, request: HttpRequest) -> HttpResponse:
    batch = state.find_batch(request.names["id"], FORMAT)
    if batch is None:
        return build_refusal(404, "no such batch")
    state.poll_batch(batch)
    return HttpResponse(_show_batch(state, batch))


def _cancel_batch(state: ProviderState, request: HttpRequest) -> HttpResponse:
    batch = state.find_batch(request.names["id"], FORMAT)
    if batch is None:
        return build_refusal(404, "no such batch")
    if batch.state != "running":
        return build_refusal(409, f"Cannot cancel a batch with status {_ENDED[batch.state]}")
    state.cancel_batch(batch)
    return HttpResponse({**_show_batch(state, batch), "status": "cancelling"})


def _download_results(state: ProviderState, request: HttpRequest) -> HttpResponse:
    kind, _, batch_id = request.names["id"].partition("-of-")
    batch = state.find_batch(batch_id, FORMAT)
    if batch is None or batch.state in ("running", "failed"):
        return build_refusal(404, "no such file")
    return build_results_file(
        state, _generate_answers(state, batch) if kind == "output" else _generate_errors(state, batch)
    )


ResultLines = Iterator[tuple[Mapping[str, Any], Damage | None]]


def _generate_answers(state: ProviderState, batch: ProviderBatch) -> ResultLines:
    questions = {line.line_id: line.question for line in batch.lines}
    for done in state.list_results(batch):
        if done.damage == "failed" or done.line_id in batch.given["refused"]:
            continue
        question = questions[done.line_id]
        if state.faults.refused(question.text):
            continue
        completed = state.faults.rewrite(question.text, build_completion(question, done.answered))
        body = {} if done.damage == "hollow" else completed
        for _ in range(2 if done.damage == "twice" else 1):
            yield (
                _build_result(done.line_id, {"status_code": 200, "request_id": "r", "body": body}),
                done.damage,
            )


def _generate_errors(state: ProviderState, batch: ProviderBatch) -> ResultLines:
    questions = {line.line_id: line.question for line in batch.lines}
    for done in state.list_results(batch):
        if error := batch.given["refused"].get(done.line_id):
            body: object = build_parameter_error(error)
            yield _build_result(done.line_id, {"status_code": 400, "request_id": "r", "body": body}), None
        elif refused := state.faults.refused(questions[done.line_id].text):
            status, body = refused
            yield _build_result(done.line_id, {"status_code": status, "request_id": "r", "body": body}), None
        elif done.damage == "failed":
            body = build_refusal(500, "The server had an error while processing your request.").body
            yield _build_result(done.line_id, {"status_code": 500, "request_id": "r", "body": body}), None
    if batch.state == "expired":
        for line in batch.lines[batch.done :]:
            yield _build_result(line.line_id, None, {"code": "batch_expired", "message": "too late"}), None


def _build_result(line_id: str, response: object, error: object = None) -> dict[str, Any]:
    return {
        "id": f"batch_req_{uuid4().hex}",
        "custom_id": line_id,
        "response": response,
        "error": error,
    }


def _show_batch(state: ProviderState, batch: ProviderBatch) -> dict[str, Any]:
    has_files = batch.state not in ("running", "failed")
    failed = len(batch.lines) - batch.done if batch.state == "expired" else 0
    is_running = {0: "finalizing", state.polls: "validating"}.get(batch.polls, "in_progress")
    errors = [{"code": "token_limit_exceeded", "message": f"Enqueued token limit reached. {state.key}"}]
    answered = next(_generate_answers(state, batch), None) if has_files else None
    refused = next(_generate_errors(state, batch), None) if has_files else None
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": COMPLETIONS,
        "completion_window": "24h",
        "created_at": int(batch.created_at),
        "input_file_id": batch.given["input_file_id"],
        "metadata": batch.given["metadata"] or None,
        "status": _ENDED.get(batch.state, is_running),
        "request_counts": {"total": len(batch.lines), "completed": batch.done, "failed": failed},
        "output_file_id": answered and f"output-of-{batch.id}",
        "error_file_id": refused and f"errors-of-{batch.id}",
        "errors": {"object": "list", "data": errors} if batch.state == "failed" else None,
    }


_BATCH = "/v1/batches/(?P<id>[^/]+)"

ROUTES = (
    Route("POST", re.compile("/v1/files"), _upload_file, of_batches=True),
    Route("GET", re.compile("/v1/files/(?P<id>[^/]+)/content"), _download_results, of_batches=True),
    Route("POST", re.compile("/v1/batches"), _create_batch, of_batches=True),
    Route("GET", re.compile("/v1/batches"), _list_batches, of_batches=True),
    Route("GET", re.compile(_BATCH), _retrieve_batch, of_batches=True),
    Route("POST", re.compile(f"{_BATCH}/cancel"), _cancel_batch, of_batches=True),
)
