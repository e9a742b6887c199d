"""Errors of request bodies name the one problem of the body and the next step."""

import json

import pytest
from pydantic import TypeAdapter, ValidationError

from mnemon.gateway.request_bodies import annotate_body
from mnemon_contracts.events.chat import MessageV1

BODY = TypeAdapter(annotate_body(MessageV1))


@pytest.mark.parametrize(
    ("value", "problem", "other"),
    [
        ("\ud800", "contains a lone surrogate", "nested"),
        (json.loads("[" * 300 + "]" * 300), "is nested too deeply; send JSON with fewer levels", "surrogate"),
    ],
    ids=["surrogate", "nested"],
)
def test_body_that_cannot_be_encoded_has_one_problem(value: object, problem: str, other: str) -> None:
    with pytest.raises(ValidationError) as refused:
        BODY.validate_python({"role": "user", "content": "x", "metadata": {"a": value}})
    assert problem in str(refused.value)
    assert other not in str(refused.value)
