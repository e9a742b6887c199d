"""`mnemon try`: once through a user's memory."""

import json
from pathlib import Path

from tests.e2e.conftest import Up, mnemon


async def test_a_fact_is_saved_read_found_and_gone(stack: Up) -> None:
    tried = await mnemon("try", "anna", "--json", "--data", str(stack.data))

    assert tried.code == 0, tried
    steps = {step["name"]: step for step in json.loads(tried.out)}
    assert list(steps) == ["save", "read", "search", "forget"]
    assert all(step["is_well"] for step in steps.values())
    left = await mnemon("read", "--tenant", "try", "--user", "anna", "--json", "--data", str(stack.data))
    assert json.loads(left.out)["facts"] == []


async def test_a_fact_that_was_there_before_stays(stack: Up) -> None:
    where = ("--data", str(stack.data))
    await mnemon("save", "Keeps bees behind the house", "--tenant", "try", "--user", "bo", *where)

    tried = await mnemon("try", "bo", "--text", "Keeps bees behind the house", *where)

    assert (tried.code, "was there before" in tried.out) == (0, True)
    left = await mnemon("read", "--tenant", "try", "--user", "bo", "--json", *where)
    assert len(json.loads(left.out)["facts"]) == 1


async def test_what_is_refused_ends_with_1(stack: Up) -> None:
    tried = await mnemon("try", "--text", "Her Wi-Fi password is Sunflower77", "--data", str(stack.data))

    assert (tried.code, "rejected" in tried.out) == (1, True)


async def test_a_stack_is_started_where_none_runs(tmp_path: Path) -> None:
    tried = await mnemon("try", "--data", str(tmp_path / "memory"))

    assert tried.code == 0, tried
    assert "Starting a stack" in tried.out
