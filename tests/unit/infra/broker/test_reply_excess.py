"""Errors about replies that are larger than the server accepts."""

import pytest

from mnemon_contracts.registry import VERBS
from mnemon_infra.broker.service import _suggest_smaller_request

NEXT_STEPS = {"read": "smaller `limit`", "search": "smaller `limit`", "context": "smaller `budget`"}


@pytest.mark.parametrize("verb", VERBS)
def test_error_names_the_field_that_makes_a_reply_smaller(verb: str) -> None:
    step = _suggest_smaller_request(VERBS[verb].requests[-1])
    assert step.endswith("raise `max_payload` of the NATS server")
    assert NEXT_STEPS.get(verb, "") in step


def test_error_of_a_verb_without_a_limit_names_only_the_server() -> None:
    assert _suggest_smaller_request(VERBS["tasks"].requests[-1]) == "raise `max_payload` of the NATS server"
