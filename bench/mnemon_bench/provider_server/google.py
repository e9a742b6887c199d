"""Google's wire format, the Gemini Developer API: answers, batches of answers, cached contents and files."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from mnemon_bench.provider_server.answers import ReceivedRequest
from mnemon_bench.provider_server.faults import Damage
from mnemon_bench.provider_server.state import BatchLine, GeneratedAnswer, ProviderBatch, ProviderState
from mnemon_bench.provider_server.wire import HttpRequest, HttpResponse, Route, build_results_file

FORMAT, PAGE = "google", 50

STATES = {
    "running": "BATCH_STATE_RUNNING",
    "ended": "BATCH_STATE_SUCCEEDED",
    "expired": "BATCH_STATE_EXPIRED",
    "failed": "BATCH_STATE_FAILED",
    "cancelled": "BATCH_STATE_CANCELLED",
}

STATUSES = {
    400: "INVALID_ARGUMENT",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}

MIN_CACHED_CHARACTERS = 1024
"""Minimum length of the instructions in a cached content, in characters."""


def build_refusal(status: int, message: str) -> HttpResponse:
    """Return an error in Google's format, in which an invalid key has the status 400 in place of 401."""
    details = []
    if status == 401:
        status = 400
        details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    error = {
        "code": status,
        "message": message,
        "status": STATUSES.get(status, "UNKNOWN"),
        "details": details,
    }
    return HttpResponse({"error": error}, status)


def _generate_content(state: ProviderState, request: HttpRequest) -> HttpResponse:
    model, body = request.names["model"], request.json()
    name = body.get("cachedContent")
    if name is None:
        return HttpResponse(_build_response(state.ask(_parse_request(model, body)), model))
    cached = _find_cache(state, name)
    if cached is None or cached["model"] != f"models/{model}":
        return build_refusal(403, "CachedContent not found (or permission denied)")
    if "systemInstruction" in body:
        return build_refusal(
            400, "CachedContent can not be used with GenerateContent request setting system_instruction"
        )
    return HttpResponse(_build_response(state.ask(_parse_request(model, cached | body)), model))


def _parse_request(model: str, body: Mapping[str, Any]) -> ReceivedRequest:
    """Return the request to `model` in a body.

    The server may cache the instructions, even if the client requests no cache.
    """
    instructions = _join_text(body.get("systemInstruction", {}))
    generation = body.get("generationConfig", {})
    return ReceivedRequest(
        model,
        instructions,
        "\n".join(_join_text(content) for content in body["contents"]),
        generation.get("responseJsonSchema"),
        beginning=instructions,
        most_tokens=generation.get("maxOutputTokens"),
    )


def _join_text(content: Mapping[str, Any]) -> str:
    return "".join(part["text"] for part in content.get("parts", ()))


def _build_response(answered: GeneratedAnswer, model: str) -> dict[str, Any]:
    tokens = answered.tokens
    usage = {
        "promptTokenCount": tokens.input,
        "candidatesTokenCount": tokens.output,
        "totalTokenCount": tokens.input + tokens.output,
    }
    content = {"role": "model", "parts": [{"text": answered.text}]}
    end = "MAX_TOKENS" if answered.is_cut else "STOP"
    return {
        "candidates": [{"content": content, "finishReason": end, "index": 0}],
        "usageMetadata": usage | ({"cachedContentTokenCount": tokens.cached} if tokens.cached else {}),
        "modelVersion": model,
        "responseId": uuid4().hex,
    }


def _create_cache(state: ProviderState, request: HttpRequest) -> HttpResponse:
    body = request.json()
    size = len(_join_text(body["systemInstruction"]))
    if size < MIN_CACHED_CHARACTERS:
        return build_refusal(
            400,
            f"Cached content is too small. total_token_count={size}, "
            f"min_total_token_count={MIN_CACHED_CHARACTERS}",
        )
    return _keep_cache(state, body | {"name": f"cachedContents/{uuid4().hex}"}, body["ttl"])


def _keep_cache(state: ProviderState, content: dict[str, Any], ttl: str) -> HttpResponse:
    now = datetime.now(UTC)
    expires = now + timedelta(seconds=float(ttl.removesuffix("s")))
    content |= {"updateTime": _format_time(now), "expireTime": _format_time(expires)}
    state.files[content["name"]] = json.dumps(content).encode()
    return HttpResponse(_show_cache(content))


def _show_cache(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cached content without its instructions, which the API does not return."""
    return {name: content[name] for name in ("name", "model", "updateTime", "expireTime")}


def _find_cache(state: ProviderState, name: str) -> dict[str, Any] | None:
    content = json.loads(state.files.get(name, b"null"))
    return content if content and datetime.fromisoformat(content["expireTime"]) > datetime.now(UTC) else None


def _list_caches(state: ProviderState, request: HttpRequest) -> HttpResponse:
    names = [name for name in list(state.files) if name.startswith("cachedContents/")]
    contents = [content for name in names if (content := _find_cache(state, name)) is not None]
    return HttpResponse({"cachedContents": [_show_cache(content) for content in contents]})


def _serve_cache(state: ProviderState, request: HttpRequest) -> HttpResponse:
    content = _find_cache(state, f"cachedContents/{request.names['id']}")
    if content is None:
        return build_refusal(403, "CachedContent not found (or permission denied)")
    match request.method:
        case "PATCH":
            return _keep_cache(state, content, request.json()["ttl"])
        case "DELETE":
            del state.files[content["name"]]
            return HttpResponse({})
        case _:
            return HttpResponse(_show_cache(content))


def _start_upload(state: ProviderState, request: HttpRequest) -> HttpResponse:
    file_id = uuid4().hex
    headers = {
        "X-Goog-Upload-Status": "active",
        "X-Goog-Upload-URL": f"{request.url}/upload/v1beta/files/{file_id}?upload_id={file_id}",
    }
    return HttpResponse({}, headers=headers)


def _receive_upload(state: ProviderState, request: HttpRequest) -> HttpResponse:
    name = f"files/{request.names['id']}"
    stored = state.files.get(name, b"")
    if int(request.headers["x-goog-upload-offset"]) != len(stored):
        return build_refusal(400, f"{len(stored)} bytes have come")
    state.files[name] = stored + request.body
    is_all = "finalize" in request.headers["x-goog-upload-command"]
    file = {"name": name, "sizeBytes": str(len(state.files[name])), "state": "ACTIVE"}
    headers = {"X-Goog-Upload-Status": "final" if is_all else "active"}
    return HttpResponse({"file": file} if is_all else {}, headers=headers)


def _delete_file(state: ProviderState, request: HttpRequest) -> HttpResponse:
    stored = state.files.pop(f"files/{request.names['id']}", None)
    return (
        HttpResponse({})
        if stored is not None
        else build_refusal(403, "You do not have permission to access the File")
    )


def _create_batch(state: ProviderState, request: HttpRequest) -> HttpResponse:
    model, body = request.names["model"], request.json()["batch"]
    source = body["inputConfig"]["fileName"]
    if source not in state.files:
        return build_refusal(404, f"no {source}")
    asked = [
        BatchLine(line["key"], _parse_request(model, line["request"]))
        for line in map(json.loads, state.files[source].splitlines())
    ]
    given = {"displayName": body["displayName"], "model": f"models/{model}", "source": source}
    return HttpResponse(_build_operation(state, state.create_batch(FORMAT, asked, given)))


def _build_operation(state: ProviderState, batch: ProviderBatch) -> dict[str, Any]:
    """Return a batch in the form of the API: counts are strings, and the output file is named twice."""
    failed = sum(done.damage == "failed" for done in state.list_results(batch)) if _has_results(batch) else 0
    counts = {
        "requestCount": len(batch.lines),
        "successfulRequestCount": batch.done - failed,
        "failedRequestCount": failed,
        "pendingRequestCount": len(batch.lines) - batch.done,
    }
    about = {
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "name": _name_batch(batch),
        "displayName": batch.given["displayName"],
        "model": batch.given["model"],
        "inputConfig": {"fileName": batch.given["source"]},
        "createTime": _format_time(datetime.fromtimestamp(batch.created_at, UTC)),
        "batchStats": {name: str(count) for name, count in counts.items() if count},
        "state": STATES[batch.state],
    }
    if batch.state == "running":
        return {"name": _name_batch(batch), "metadata": about}
    if not _has_results(batch):
        error = {"code": 13, "message": "no"}
        return {"name": _name_batch(batch), "metadata": about, "done": True, "error": error}
    output = {"responsesFile": f"files/batch-{batch.id}"}
    return {
        "name": _name_batch(batch),
        "metadata": about | {"output": output},
        "done": True,
        "response": output,
    }


def _has_results(batch: ProviderBatch) -> bool:
    return batch.state in ("ended", "cancelled", "expired")


def _name_batch(batch: ProviderBatch) -> str:
    return f"batches/{batch.id}"


def _format_time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _list_batches(state: ProviderState, request: HttpRequest) -> HttpResponse:
    batches = state.list_batches(FORMAT)
    first, size = int(request.query.get("pageToken", 0)), int(request.query.get("pageSize", PAGE))
    page = {"operations": [_build_operation(state, batch) for batch in batches[first : first + size]]}
    is_more = len(batches) > first + size
    return HttpResponse(page | ({"nextPageToken": str(first + size)} if is_more else {}))


def _retrieve_batch(state: ProviderState, request: HttpRequest) -> HttpResponse:
    batch = state.find_batch(request.names["id"], FORMAT)
    if batch is None:
        return build_refusal(404, "Requested entity was not found.")
    state.poll_batch(batch)
    return HttpResponse(_build_operation(state, batch))


def _cancel_batch(state: ProviderState, request: HttpRequest) -> HttpResponse:
    batch = state.find_batch(request.names["id"], FORMAT)
    if batch is None:
        return build_refusal(404, "Requested entity was not found.")
    if batch.state != "running":
        return build_refusal(400, "The batch has ended.")
    state.cancel_batch(batch)
    return HttpResponse({})


def _download_results(state: ProviderState, request: HttpRequest) -> HttpResponse:
    batch = state.find_batch(request.names["id"], FORMAT)
    if batch is None or not _has_results(batch):
        return build_refusal(404, "Requested entity was not found.")
    return build_results_file(state, _generate_lines(state, batch))


def _generate_lines(
    state: ProviderState, batch: ProviderBatch
) -> Iterator[tuple[Mapping[str, Any], Damage | None]]:
    questions = {asked.line_id: asked.question for asked in batch.lines}
    for line_id, answered, damage in state.list_results(batch):
        match damage:
            case "failed":
                is_long = state.longest is not None and len(questions[line_id].text) > state.longest
                error = {"code": 3, "message": "too long"} if is_long else {"code": 13, "message": "internal"}
                yield {"key": line_id, "error": error}, damage
            case "hollow":
                yield {"key": line_id, "response": {}}, damage
            case _:
                yield {"key": line_id, "response": _build_response(answered, batch.given["model"])}, damage


def _create_route(method: str, path: str, answer: Any, *, of_batches: bool = False) -> Route:
    pattern = path.replace("{model}", r"(?P<model>[^/:]+)").replace("{id}", r"(?P<id>[^/:]+)")
    return Route(method, re.compile(pattern), answer, of_batches, build_refusal)


ROUTES: Sequence[Route] = (
    _create_route("POST", "/v1beta/models/{model}:generateContent", _generate_content),
    _create_route("POST", "/v1beta/cachedContents", _create_cache),
    _create_route("GET", "/v1beta/cachedContents", _list_caches),
    _create_route("GET", "/v1beta/cachedContents/{id}", _serve_cache),
    _create_route("PATCH", "/v1beta/cachedContents/{id}", _serve_cache),
    _create_route("DELETE", "/v1beta/cachedContents/{id}", _serve_cache),
    _create_route("POST", "/upload/v1beta/files", _start_upload, of_batches=True),
    _create_route("POST", "/upload/v1beta/files/{id}", _receive_upload, of_batches=True),
    _create_route("DELETE", "/v1beta/files/{id}", _delete_file, of_batches=True),
    _create_route("POST", "/v1beta/models/{model}:batchGenerateContent", _create_batch, of_batches=True),
    _create_route("GET", "/v1beta/batches", _list_batches, of_batches=True),
    _create_route("GET", "/v1beta/batches/{id}", _retrieve_batch, of_batches=True),
    _create_route("POST", "/v1beta/batches/{id}:cancel", _cancel_batch, of_batches=True),
    _create_route("GET", "/v1beta/files/batch-{id}:download", _download_results, of_batches=True),
)
