"""What is made of a response of Google's models."""

from typing import Any

import pytest

from infra.models.language.google_answers import answer
from infra.models.language.port import Answer, ModelUnavailable, RequestRefused, Usage


def response(*texts: str, end: str = "STOP", **usage: object) -> dict[str, Any]:
    parts = [{"text": text} for text in texts]
    return {"candidates": [{"content": {"parts": parts}, "finishReason": end}], "usageMetadata": usage}


def test_parts_are_one_answer_and_thoughts_are_none() -> None:
    said = response("hmm", "tea", " и чай")
    said["candidates"][0]["content"]["parts"][0]["thought"] = True
    assert answer(said).text == "tea и чай"


def test_thoughts_are_paid_for_and_what_is_cached_was_asked() -> None:
    used = response(
        "tea",
        promptTokenCount=1000,
        cachedContentTokenCount=900,
        candidatesTokenCount=7,
        thoughtsTokenCount=30,
        totalTokenCount=1037,
    )
    assert answer(used).usage == Usage(input=1000, cached=900, output=37)


@pytest.mark.parametrize("count", [None, "many", -1, 0.5, [1]])
def test_a_count_that_is_none_costs_nobody_the_answer(count: object) -> None:
    assert answer(response("tea", promptTokenCount=count)) == Answer("tea", Usage())


def test_an_answer_that_wants_of_tokens_says_so() -> None:
    assert answer(response("te", end="MAX_TOKENS")).is_cut
    thoughts_only = {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]}
    assert answer(thoughts_only) == Answer("", Usage(), is_cut=True)


def test_a_request_that_is_blocked_is_refused() -> None:
    with pytest.raises(RequestRefused, match="blocks the request"):
        answer({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {}})


@pytest.mark.parametrize("end", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII"])
def test_an_answer_that_is_blocked_is_refused_with_what_was_said_until_then(end: str) -> None:
    with pytest.raises(RequestRefused, match=end) as raised:
        answer(response("a secret", end=end))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"candidates": []},
        {"candidates": None},
        {"candidates": ["tea"]},
        {"candidates": [{"content": "tea"}]},
        {"candidates": [{"content": {"parts": [{"text": 7}]}}]},
        {"candidates": [{"content": {"parts": "tea"}}]},
        {"promptFeedback": "no"},
        [],
        "tea",
    ],
)
def test_what_is_no_answer_may_be_one_later(said: Any) -> None:
    with pytest.raises(ModelUnavailable, match="does not answer with a text"):
        answer(said)
