"""Counts of what several erasures of a conversation left."""

import pytest
from pydantic import JsonValue

from mnemon_consumers.retrieve.verbs.erasure.receipt import sum_counts

COUNTS: dict[str, JsonValue] = {"log": 1, "database": 2}
VECTORS: dict[str, JsonValue] = {"vectors": 3}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (VECTORS, VECTORS, {"vectors": 6}),
        (VECTORS, {}, {}),
        ({}, VECTORS, {}),
        ({"generations": 4}, VECTORS, {"generations": 4}),
    ],
    ids=["all stores", "vectors of the first only", "vectors of the second only", "generations of one"],
)
def test_vectors_are_counted_only_if_every_erasure_has_their_count(
    first: dict[str, JsonValue], second: dict[str, JsonValue], expected: dict[str, JsonValue]
) -> None:
    assert sum_counts([COUNTS | first, COUNTS | second]) == {"log": 2, "database": 4, **expected}
