"""Problem details of errors."""

import json

from mnemon.gateway.problems import build_problem
from mnemon_contracts.verbs.ask import AskError
from mnemon_producers.errors import TenantMoved


def test_moved_tenant_is_told_where_to() -> None:
    error = AskError(code="moved", message="it moved", retryable=False, moved_to="nats://there:4222")
    response = build_problem(TenantMoved(error)).to_response()
    assert response.status_code == 409
    assert json.loads(bytes(response.body))["moved_to"] == "nats://there:4222"
