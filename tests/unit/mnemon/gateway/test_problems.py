"""Problem details of errors."""

import json

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


def test_refusal_of_an_older_retrieve_names_no_field() -> None:
    reply = b'{"seen_seq": 0, "error": {"code": "bad_request", "message": "text: no", "retryable": false}}'
    response = build_problem(AskFailed(ErrorReply.parse(reply).error)).to_response()
    assert (response.status_code, "field" in json.loads(bytes(response.body))) == (422, False)
