"""Errors of the body of `POST /v1/events`."""

import json

import pytest

from mnemon.gateway.routes.events import EventsV1
from mnemon_contracts.base import InvalidBody

MESSAGE = {"user": "anna", "message": {"role": "user", "content": "hello"}}


@pytest.mark.parametrize(
    ("event", "field", "problem"),
    [
        ({"user": "anna", "message": {"role": "user"}}, "events.1.message.content", "Field required"),
        ({"user": "anna", "started": {"id": "\0"}}, "events.1.started.id", "U+0000"),
        ({"user": "anna", "cleared": {"id": 1}}, "events.1.cleared.id", "valid string"),
        ({"cleared": {}}, "events.1.user", "Field required"),
        ({"user": "anna"}, "events", "must have one of `message`, `started` and `cleared` (index 1)"),
        ("said", "events", "must have one of `message`, `started` and `cleared` (index 1)"),
        (MESSAGE | {"started": {}}, "events.1.started", "not permitted"),
    ],
)
def test_error_names_the_field_of_the_event_that_was_sent(event: object, field: str, problem: str) -> None:
    with pytest.raises(InvalidBody) as refused:
        EventsV1.parse_strict(json.dumps({"events": [MESSAGE, event]}).encode())
    assert refused.value.field == field
    assert problem in refused.value.problem
