"""`mnemon try`: save, read, find and forget a fact of a user."""

import json
from pathlib import Path

import nats
import pytest

from mnemon_infra.broker.streams.applied_position import read_log_end
from tests.support.processes.stack import Up, mnemon
from tests.support.stock_client import persisted


async def everything_persisted(up: Up) -> None:
    assert up.endpoints
    async with await nats.connect(up.endpoints.nats) as connection:
        await persisted(connection, await read_log_end(connection.jetstream()))


async def test_try_saves_reads_finds_and_forgets_a_fact(shared: Up) -> None:
    tried = await mnemon("try", "anna", "--json", "--data", str(shared.data))

    assert tried.code == 0, tried
    steps = {step["name"]: step for step in json.loads(tried.out)}
    assert list(steps) == ["save", "read", "search", "forget"]
    assert all(step["is_well"] for step in steps.values())
    await everything_persisted(shared)
    left = await mnemon("read", "--tenant", "try", "--user", "anna", "--json", "--data", str(shared.data))
    assert json.loads(left.out)["facts"] == []


async def test_try_keeps_existing_facts(shared: Up) -> None:
    where = ("--data", str(shared.data))
    bo = ("--tenant", "try", "--user", "bo", "--json", *where)
    saved = json.loads((await mnemon("save", "Keeps bees behind the house", *bo)).out)

    tried = await mnemon("try", "bo", "--text", "Keeps bees behind the house", *where)

    assert (tried.code, "existed before" in tried.out) == (0, True)
    left = await mnemon("read", "--min-seq", str(saved["seen_seq"]), *bo)
    assert len(json.loads(left.out)["facts"]) == 1


async def test_try_with_refused_text_exits_with_1(shared: Up) -> None:
    tried = await mnemon("try", "--text", "Her Wi-Fi password is Sunflower77", "--data", str(shared.data))

    assert (tried.code, "rejected" in tried.out) == (1, True)


async def test_try_with_text_that_cannot_be_sent_exits_with_2(shared: Up) -> None:
    tried = await mnemon("try", "--text", "\udcff", "--data", str(shared.data))

    assert (tried.code, tried.err.startswith("mnemon: text: contains a lone surrogate")) == (2, True), tried


@pytest.mark.long
async def test_try_starts_a_stack_where_none_runs(up: Up) -> None:
    tried = await mnemon("try", "--data", str(up.data))

    assert tried.code == 0, tried
    assert "Starting a stack" in tried.out


async def test_try_imports_a_given_file_first(shared: Up, tmp_path: Path) -> None:
    old, where = tmp_path / "42.md", ("--data", str(shared.data))
    old.write_text("- Plays chess on Sundays\n- What is my name?\n")

    tried = await mnemon("try", "42", "--file", old, "--json", *where)

    steps = {step["name"]: step for step in json.loads(tried.out)}
    assert list(steps) == ["import", "save", "read", "search", "forget"]
    assert [name for name, step in steps.items() if not step["is_well"]] == ["import"]
    assert "1 new, 0 already there, 1 refused\nline 2: The text is a question" in steps["import"]["result"]
    assert (tried.code, old.read_text()) == (1, "- Plays chess on Sundays\n- What is my name?\n")
    await everything_persisted(shared)
    left = await mnemon("read", "--tenant", "try", "--user", "42", "--json", *where)
    assert [fact["text"] for fact in json.loads(left.out)["facts"]] == ["Plays chess on Sundays"]

    old.write_text("- Plays chess on Sundays\n")
    again = await mnemon("try", "42", "--file", old, "--json", *where)
    assert (again.code, json.loads(again.out)[0]["result"]) == (0, "0 new, 1 already there, 0 refused")
    absent = await mnemon("try", "42", "--file", tmp_path / "absent.md", *where)
    assert (absent.code, "absent.md cannot be read" in absent.err) == (2, True)
