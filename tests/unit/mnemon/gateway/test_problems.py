"""Problem details of errors."""

import json

import httpx
import pytest

from mnemon.gateway.application import build_application
from mnemon.gateway.problems import build_problem
from mnemon_contracts.verbs.ask import AskError, ErrorReply
from mnemon_producers.errors import AskFailed, TenantMoved


def test_moved_tenant_is_told_where_to() -> None:
    error = AskError(code="moved", message="it moved", retryable=False, moved_to="nats://there:4222")
    response = build_problem(TenantMoved(error)).to_response()
    assert response.status_code == 409
    assert json.loads(bytes(response.body))["moved_to"] == "nats://there:4222"


def test_refused_request_names_the_invalid_field() -> None:
    error = AskError(code="bad_request", message="text: is missing", retryable=False, field="text")
    response = build_problem(AskFailed(error)).to_response()
    assert (response.status_code, json.loads(bytes(response.body))["field"]) == (422, "text")


@pytest.mark.parametrize(
    ("method", "path", "status", "next_step"),
    [
        ("POST", "/v1/users/u42/remember", 404, "there is no such address; `/docs`"),
        ("POST", "/openai/v1/embeddings", 404, "docs/proxy.md lists the paths of the proxy"),
        ("GET", "/v1/users/u42/context", 405, "send the request with POST"),
    ],
)
async def test_wrong_address_or_method_is_told_the_next_step(
    method: str, path: str, status: int, next_step: str
) -> None:
    transport = httpx.ASGITransport(build_application())
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        answer = await client.request(method, path)
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert next_step in answer.json()["detail"]
    assert answer.headers.get("Allow") == ("POST" if status == 405 else None)


@pytest.mark.parametrize(
    "address", ["/v1/users/%ff/read", "/v1/users/%ED%A0%80/read", "/v1/changes?user=%ff"]
)
async def test_id_that_is_not_utf8_is_refused(address: str) -> None:
    transport = httpx.ASGITransport(build_application())
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        answer = await client.request("GET" if "changes" in address else "POST", address)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_request")
    assert answer.json()["detail"].startswith("the address is not UTF-8")


def test_refusal_of_an_older_retrieve_names_no_field() -> None:
    reply = b'{"seen_seq": 0, "error": {"code": "bad_request", "message": "text: no", "retryable": false}}'
    response = build_problem(AskFailed(ErrorReply.parse(reply).error)).to_response()
    assert (response.status_code, "field" in json.loads(bytes(response.body))) == (422, False)


@pytest.mark.parametrize(
    ("method", "address", "field", "known"),
    [
        (
            "POST",
            "/v1/users/u42/events/message?conversatoin=a",
            "conversatoin",
            "the address takes conversation",
        ),
        ("POST", "/v1/users/u42/search?query=tea", "query", "the address takes no parameters"),
        ("POST", "/v1/events?a%0Ab&c=1", "a\nb", "the address takes no parameters"),
        ("PUT", "/v1/users/u42/documents/d1?titel=T&title=T", "titel", "takes collection, source, title"),
        ("GET", "/v1/changes?since=5", "since", "the address takes after, lastEventId, user"),
    ],
)
async def test_unknown_parameter_of_the_query_is_named(
    method: str, address: str, field: str, known: str
) -> None:
    transport = httpx.ASGITransport(build_application())
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        answer = await client.request(method, address)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert known in answer.json()["detail"]
