"""Answers parsed from responses of Google's models."""

from typing import Any

import pytest

from mnemon_infra.models.language.google.answers import parse_response
from mnemon_infra.models.language.port import ModelAnswer, Usage


def response(*texts: str, end: str = "STOP", **usage: object) -> dict[str, Any]:
    parts = [{"text": text} for text in texts]
    return {"candidates": [{"content": {"parts": parts}, "finishReason": end}], "usageMetadata": usage}


def test_parts_are_one_answer_and_thoughts_are_none() -> None:
    said = response("hmm", "tea", " и чай")
    said["candidates"][0]["content"]["parts"][0]["thought"] = True
    assert parse_response(said).text == "tea и чай"


def test_thoughts_are_output_tokens_and_cached_tokens_are_input_tokens() -> None:
    used = response(
        "tea",
        promptTokenCount=1000,
        cachedContentTokenCount=900,
        candidatesTokenCount=7,
        thoughtsTokenCount=30,
        totalTokenCount=1037,
    )
    assert parse_response(used).usage == Usage(input=1000, cached=900, output=37)


@pytest.mark.parametrize("count", [None, "many", -1, 0.5, [1]])
def test_missing_token_count_keeps_the_answer(count: object) -> None:
    assert parse_response(response("tea", promptTokenCount=count)) == ModelAnswer("tea", Usage())


def test_answer_that_ends_at_the_maximum_of_tokens_is_marked_cut() -> None:
    assert parse_response(response("te", end="MAX_TOKENS")).is_cut
    thoughts_only = {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]}
    assert parse_response(thoughts_only) == ModelAnswer("", Usage(), is_cut=True)


def test_a_request_that_is_blocked_is_refused() -> None:
    blocked = {"promptFeedback": {"blockReason": "OTHER"}, "usageMetadata": {"promptTokenCount": 7}}
    assert parse_response(blocked) == ModelAnswer(
        "", Usage(7), problem="Google blocks the request", is_refused=True
    )


@pytest.mark.parametrize("end", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII"])
def test_an_answer_that_is_blocked_is_refused_and_shows_nothing_of_it(end: str) -> None:
    blocked = parse_response(response("a secret", end=end))
    assert blocked.is_refused
    assert end in str(blocked.problem)
    assert "secret" not in repr(blocked)


@pytest.mark.parametrize(
    "said",
    [
        {"candidates": []},
        {"candidates": None},
        {"candidates": ["tea"]},
        {"candidates": [{"content": "tea"}]},
        {"candidates": [{"content": {"parts": [{"text": 7}]}}]},
        {"candidates": [{"content": {"parts": "tea"}}]},
        {"promptFeedback": "no"},
        {"usageMetadata": {}},
    ],
)
def test_an_answer_without_a_text_is_one_that_cannot_be_used(said: Any) -> None:
    assert parse_response(said) == ModelAnswer("", Usage(), problem=parse_response(said).problem)
    assert parse_response(said).problem


@pytest.mark.parametrize("said", [{}, {"error": "no"}, [], "tea"])
def test_malformed_answer_is_transient(said: Any) -> None:
    with pytest.raises((LookupError, AttributeError)):
        parse_response(said)
