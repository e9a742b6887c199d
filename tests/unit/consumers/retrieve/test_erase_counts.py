"""Receipts of erasures: the counts of several erasures of a conversation, and the wait for the stores."""

import asyncio

import pytest
from pydantic import JsonValue

from mnemon_consumers.retrieve.verbs.erasure.receipt import sum_counts, wait_for_stores

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


async def test_stores_are_checked_once_if_no_time_is_left() -> None:
    checks = iter([("log", "vectors"), ()])

    async def not_done() -> tuple[str, ...]:
        return next(checks)

    assert await wait_for_stores(not_done, asyncio.get_running_loop().time() - 1) == ("log", "vectors")
