"""Parsing of a reranker's answers, valid and invalid ones."""

import json

import pytest

from mnemon_infra.models.reranker import parse_scores


@pytest.mark.parametrize("name", ["relevance_score", "score"])
@pytest.mark.parametrize("has_envelope", [True, False])
def test_scores_have_the_order_of_the_texts(name: str, has_envelope: bool) -> None:
    results = [
        {"index": 1, name: 0.75, "document": {"text": "tea"}},
        {"index": 2, name: 0},
        {"index": 0, name: -3},
    ]
    body = {"id": "x", "results": results, "usage": {"total_tokens": 3}} if has_envelope else results
    assert parse_scores(json.dumps(body).encode(), 3) == [-3.0, 0.75, 0.0]


def results(*pairs: tuple[object, object]) -> bytes:
    return json.dumps({"results": [{"index": index, "score": score} for index, score in pairs]}).encode()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"<html>", id="web page"),
        pytest.param(b"{", id="cut off"),
        pytest.param(b"null", id="null"),
        pytest.param(b"\xff\xfe", id="not UTF-8"),
        pytest.param(b'{"results": null}', id="no results"),
        pytest.param(b'{"error": "overloaded"}', id="error"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"x": ' + b"[" * 100_000, id="deep in an unknown field"),
        pytest.param(b'{"results": [0.1, 0.2]}', id="bare numbers"),
        pytest.param(results((0, 0.5)), id="one too few"),
        pytest.param(results(), id="none"),
        pytest.param(results((0, 0.5), (1, 0.4), (2, 0.3)), id="one too many"),
        pytest.param(results((0, 0.5), (0, 0.4)), id="duplicate index"),
        pytest.param(results((0, 0.5), (1, 0.4), (1, 0.4)), id="duplicate index besides all others"),
        pytest.param(results((0, 0.5), (2, 0.4)), id="index beyond the texts"),
        pytest.param(results((0, 0.5), (-1, 0.4)), id="negative index"),
        pytest.param(results((0, 0.5), (10**30, 0.4)), id="huge index"),
        pytest.param(results((0, 0.5), (0.5, 0.4)), id="fractional index"),
        pytest.param(results((0, 0.5), (True, 0.4)), id="index is a boolean"),
        pytest.param(results((0, 0.5), ("1", 0.4)), id="index is a text"),
        pytest.param(results((0, 0.5), (1, None)), id="no score"),
        pytest.param(results((0, 0.5), (1, "0.4")), id="score is a text"),
        pytest.param(results((0, 0.5), (1, True)), id="score is a boolean"),
        pytest.param(results((0, 0.5), (1, [0.4])), id="score is a list"),
        pytest.param(results((0, 0.5), (1, float("nan"))), id="not a number"),
        pytest.param(results((0, 0.5), (1, float("inf"))), id="infinite"),
        pytest.param(results((0, 0.5), (1, 10**400)), id="integer beyond all floats"),
        pytest.param(results((0, 0.5), (1, 7)).replace(b"7", b"1e999"), id="float beyond all floats"),
    ],
)
def test_unusable_answer_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"no list of scores|one score for each text|nor `score`"):
        parse_scores(body, 2)
