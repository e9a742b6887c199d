"""Anthropic's wire format: messages, Message Batches and models, as documented on 2026-10-21."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from mnemon_bench.provider_server.answers import ReceivedRequest
from mnemon_bench.provider_server.faults import Damage
from mnemon_bench.provider_server.state import (
    AnsweredLine,
    BatchLine,
    GeneratedAnswer,
    ProviderBatch,
    ProviderState,
)
from mnemon_bench.provider_server.wire import HttpRequest, HttpResponse, Route, build_results_file

FORMAT = "anthropic"
BATCHES = "/v1/messages/batches"

THINKER = "thinker"
"""Part of the name of a model whose thinking cannot be disabled."""

THOUGHTS = 3000
"""Number of tokens of thinking, unless thinking is disabled. An answer needs a higher `max_tokens`."""

FORBIDDEN = "a weapon"
"""Words in the text of a request that give the answer the stop reason `refusal`."""

PAGE, MAX_PAGE, MAX_LINES = 20, 1000, 100_000

_FIELDS = {"model", "max_tokens", "system", "messages", "metadata", "output_config", "thinking"}
_UNSUPPORTED = {"minimum", "maximum", "minLength", "maxLength", "maxItems", "multipleOf", "pattern"}
_LINE_ID = re.compile("[a-zA-Z0-9_-]{1,64}")
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _build_refusal(status: int, message: str) -> HttpResponse:
    return HttpResponse(
        {**_build_error(_ERRORS.get(status, "api_error"), message), "request_id": "req_1"}, status
    )


def _build_error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _create_message(state: ProviderState, request: HttpRequest) -> HttpResponse:
    body = _read_body(request)
    question = _parse_request(body)
    return HttpResponse(_build_message(question, state.ask(question), _is_thinking(body)))


def _read_body(request: HttpRequest) -> dict[str, Any]:
    if "anthropic-version" not in request.headers:
        raise ValueError("anthropic-version: header is required; send it with each request")
    return request.json()


def _parse_request(body: Mapping[str, Any]) -> ReceivedRequest:
    """Return the request in a body.

    Raises:
        ValueError, KeyError, TypeError: the API would not accept the body.
    """
    if unknown := body.keys() - _FIELDS:
        raise ValueError(f"{min(unknown)}: Extra inputs are not permitted; leave the field out")
    if _get_thinking(body) not in ("adaptive", "adaptive" if THINKER in body["model"] else "disabled"):
        raise ValueError(
            f'"thinking.type.{_get_thinking(body)}" is not supported for this model; leave it out'
        )
    if body["max_tokens"] < 1 or body["messages"][-1]["role"] != "user":
        raise ValueError("max_tokens must be at least 1, and the last message must have the role user")
    form = body.get("output_config", {}).get("format")
    if form is not None:
        _check_schema(form["schema"])
    system = body.get("system", [])
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    marked = [number for number, block in enumerate(blocks, 1) if _is_marked(block)]
    return ReceivedRequest(
        model=body["model"],
        instructions="".join(block["text"] for block in blocks),
        text="".join(message["content"] for message in body["messages"]),
        schema=None if form is None else form["schema"],
        beginning="".join(block["text"] for block in blocks[: max(marked, default=0)]),
        most_tokens=body["max_tokens"],
    )


def _get_thinking(body: Mapping[str, Any]) -> str:
    return str(body.get("thinking", {"type": "adaptive"})["type"])


def _is_thinking(body: Mapping[str, Any]) -> bool:
    return _get_thinking(body) == "adaptive"


def _is_marked(block: Mapping[str, Any]) -> bool:
    mark = block.get("cache_control")
    if mark is None:
        return False
    if mark["type"] != "ephemeral" or mark.get("ttl", "5m") not in ("5m", "1h"):
        raise ValueError("cache_control: type must be ephemeral, and ttl 5m or 1h")
    return True


def _check_schema(schema: object) -> None:
    """Check the schema of an answer.

    Raises:
        ValueError: the schema has a keyword that the API does not accept, or an object without
            `"additionalProperties": false`.
    """
    if isinstance(schema, list):
        for part in schema:
            _check_schema(part)
    if isinstance(schema, dict):
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
            raise ValueError("output_config.format.schema: 'additionalProperties' must be false")
        if unsupported := _UNSUPPORTED & schema.keys():
            raise ValueError(
                f"output_config.format.schema: {min(unsupported)} is not supported; leave it out"
            )
        for part in schema.values():
            _check_schema(part)


def _build_message(question: ReceivedRequest, answered: GeneratedAnswer, thinks: bool) -> dict[str, Any]:
    tokens = answered.tokens
    has_room = not thinks or (question.most_tokens or 0) > THOUGHTS
    reason = "end_turn" if has_room and not answered.is_cut else "max_tokens"
    thoughts = [{"type": "thinking", "thinking": "", "signature": "c2lnbmVk"}] if thinks else []
    text = [{"type": "text", "text": answered.text, "citations": None}] if has_room else []
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": question.model,
        "content": [*thoughts, *text],
        "stop_reason": "refusal" if FORBIDDEN in question.text else reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": tokens.input - tokens.cached - tokens.written,
            "cache_creation_input_tokens": tokens.written,
            "cache_read_input_tokens": tokens.cached,
            "output_tokens": tokens.output,
            "service_tier": "standard",
        },
    }


def _show_model(state: ProviderState, request: HttpRequest) -> HttpResponse:
    name = request.names["id"]

    def build_support(supported: bool) -> dict[str, bool]:
        return {"supported": supported}

    types = {
        "adaptive": build_support(True),
        "between_tools": build_support(False),
        "disabled": build_support(THINKER not in name),
        "enabled": build_support(False),
    }
    efforts = {level: build_support(True) for level in ("low", "medium", "high", "xhigh", "max")}
    return HttpResponse(
        {
            "id": name,
            "type": "model",
            "display_name": name,
            "created_at": "2026-10-07T00:00:00Z",
            "lifecycle": "active",
            "max_input_tokens": 1_000_000,
            "max_tokens": 128_000,
            "capabilities": {
                "batch": build_support(state.has_batches),
                "effort": {**build_support(True), **efforts},
                "structured_outputs": build_support("json_schema" in state.formats),
                "thinking": {**build_support(True), "types": types},
            },
        }
    )


def _create_batch(state: ProviderState, request: HttpRequest) -> HttpResponse:
    requests = _read_body(request)["requests"]
    ids = Counter(each["custom_id"] for each in requests)
    if not 0 < len(requests) <= MAX_LINES or len(ids) < len(requests):
        raise ValueError("requests: must contain 1 to 100,000 requests with different custom_ids")
    if not all(_LINE_ID.fullmatch(line_id) for line_id in ids):
        raise ValueError("custom_id: must be 1 to 64 letters, digits, - or _")
    lines = [BatchLine(each["custom_id"], _parse_request(each["params"])) for each in requests]
    thinking = {each["custom_id"] for each in requests if _is_thinking(each["params"])}
    return HttpResponse(
        _show_batch(state, state.create_batch(FORMAT, lines, {"thinking": thinking}), request)
    )


def _list_batches(state: ProviderState, request: HttpRequest) -> HttpResponse:
    batches = state.list_batches(FORMAT)
    ids = [batch.id for batch in batches]
    start = ids.index(request.query["after_id"]) + 1 if "after_id" in request.query else 0
    limit = int(request.query.get("limit", PAGE))
    if not 0 < limit <= MAX_PAGE:
        raise ValueError(f"limit: must be 1 to {MAX_PAGE}")
    page = batches[start : start + limit]
    for batch in page:
        state.poll_batch(batch)
    return HttpResponse(
        {
            "data": [_show_batch(state, batch, request) for batch in page],
            "has_more": start + limit < len(batches),
            "first_id": page[0].id if page else None,
            "last_id": page[-1].id if page else None,
        }
    )


def _retrieve_batch(state: ProviderState, request: HttpRequest) -> HttpResponse:
    if (batch := state.find_batch(request.names["id"], FORMAT)) is None:
        return _build_refusal(404, "no such batch")
    state.poll_batch(batch)
    return HttpResponse(_show_batch(state, batch, request))


def _cancel_batch(state: ProviderState, request: HttpRequest) -> HttpResponse:
    if (batch := state.find_batch(request.names["id"], FORMAT)) is None:
        return _build_refusal(404, "no such batch")
    if batch.state != "running":
        raise ValueError("a batch that has ended cannot be cancelled; create another batch")
    state.cancel_batch(batch)
    return HttpResponse(_show_batch(state, batch, request))


def _show_batch(state: ProviderState, batch: ProviderBatch, request: HttpRequest) -> dict[str, Any]:
    """Return a batch as JSON.

    A failed batch is shown as archived, without results, because Anthropic has no state for a failed batch.
    """
    created_at = datetime.fromtimestamp(batch.created_at, UTC)
    has_ended = batch.state != "running"
    ended_at = datetime.now(UTC).isoformat() if has_ended else None
    is_kept = has_ended and batch.state != "failed"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if has_ended else "in_progress",
        "request_counts": _count_results(state, batch),
        "created_at": created_at.isoformat(),
        "expires_at": (created_at + timedelta(days=1)).isoformat(),
        "ended_at": ended_at,
        "archived_at": None if is_kept else ended_at,
        "cancel_initiated_at": ended_at if batch.state == "cancelled" else None,
        "results_url": f"{request.url}{BATCHES}/{batch.id}/results" if is_kept else None,
    }


def _count_results(state: ProviderState, batch: ProviderBatch) -> dict[str, int]:
    """Return the number of lines by result.

    A line with the damage `left out`, and every line of a running or failed batch, counts as `processing`.
    """
    done = state.list_results(batch) if batch.state not in ("running", "failed") else ()
    errored = sum(each.damage == "failed" for each in done)
    undone = len(batch.lines) - batch.done
    canceled, expired = (undone if batch.state == state_ else 0 for state_ in ("cancelled", "expired"))
    return {
        "processing": len(batch.lines) - len(done) - canceled - expired,
        "succeeded": len(done) - errored,
        "errored": errored,
        "canceled": canceled,
        "expired": expired,
    }


def _download_results(state: ProviderState, request: HttpRequest) -> HttpResponse:
    batch = state.find_batch(request.names["id"], FORMAT)
    if batch is None or batch.state in ("running", "failed"):
        return _build_refusal(404, "no results")
    return build_results_file(state, _generate_lines(state, batch))


def _generate_lines(
    state: ProviderState, batch: ProviderBatch
) -> Iterator[tuple[Mapping[str, Any], Damage | None]]:
    questions = {asked.line_id: asked.question for asked in batch.lines}
    for done in state.list_results(batch):
        result = _build_result(state, batch, done, questions[done.line_id])
        yield {"custom_id": done.line_id, "result": result}, done.damage
    ending = {"type": "canceled" if batch.state == "cancelled" else "expired"}
    for asked in batch.lines[batch.done :]:
        yield {"custom_id": asked.line_id, "result": ending}, None


def _build_result(
    state: ProviderState, batch: ProviderBatch, done: AnsweredLine, question: ReceivedRequest
) -> dict[str, Any]:
    if done.damage == "hollow":
        return {"type": "succeeded", "message": {}}
    if done.damage == "failed":
        is_long = state.longest is not None and len(question.text) > state.longest
        kind = "invalid_request_error" if is_long else "api_error"
        return {"type": "errored", "error": {**_build_error(kind, question.text), "request_id": "req_1"}}
    thinks = done.line_id in batch.given.get("thinking", ())
    return {"type": "succeeded", "message": _build_message(question, done.answered, thinks)}


_ONE = f"{BATCHES}/(?P<id>[^/]+)"

ROUTES = [
    Route(method, re.compile(pattern), answer, is_of_batches, _build_refusal)
    for method, pattern, answer, is_of_batches in (
        ("POST", "/v1/messages", _create_message, False),
        ("POST", BATCHES, _create_batch, True),
        ("GET", BATCHES, _list_batches, True),
        ("GET", _ONE, _retrieve_batch, True),
        ("POST", f"{_ONE}/cancel", _cancel_batch, True),
        ("GET", f"{_ONE}/results", _download_results, True),
        ("GET", "/v1/models/(?P<id>[^/]+)", _show_model, False),
    )
]
