"""`mnemon batches`: the state of each batch at its provider, its times, and the error of a failed one."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.windows.batches import BatchState, StoredBatch, insert_batch
from tests.support.processes.stack import CommandResult, mnemon

NOW = datetime.now(UTC).replace(microsecond=0)
WHY = "insufficient_quota: \x1b]0;title\x07 raise the limit"

Run = Callable[..., Awaitable[CommandResult]]


@pytest.fixture
def run(deployment: Deployment) -> Run:
    async def run(*arguments: str) -> CommandResult:
        return await mnemon(
            *arguments,
            DATABASE_URL=str(deployment.database_dsn),
            MNEMON_DATABASE_SCHEMA=deployment.database_schema,
            COLUMNS="200",
        )

    return run


def batch(number: int, state: BatchState, error: str | None = None) -> StoredBatch:
    at = NOW - timedelta(hours=number)
    provider_id = None if state == "claimed" else f"batch_p{number}"
    times = at, at + timedelta(minutes=9), at + timedelta(hours=20)
    return StoredBatch(f"b{number}", "openai", "gpt-4o-mini", state, provider_id, 3, *times, error)


async def keep(deployment: Deployment, *batches: StoredBatch) -> None:
    async with Database(deployment) as database, database.transaction() as connection:
        for each in batches:
            await insert_batch(connection, each)


async def test_batches_lists_states_times_and_errors(run: Run, deployment: Deployment) -> None:
    none = await run("batches")
    assert (none.code, "no batches yet" in none.out) == (0, True)

    await keep(
        deployment, batch(0, "claimed"), batch(1, "submitted"), batch(2, "failed", WHY), batch(3, "completed")
    )
    found = json.loads((await run("batches", "--json")).out)
    assert [(each["batch_id"], each["state"]) for each in found["batches"]] == [
        ("b0", "claimed"), ("b1", "submitted"), ("b2", "failed"), ("b3", "completed"),
    ]  # fmt: skip
    failed = found["batches"][2]
    assert failed == {
        "batch_id": "b2", "provider": "openai", "model": "gpt-4o-mini", "state": "failed",
        "provider_batch_id": "batch_p2", "lines": 3, "error": WHY,
        "created_at": (NOW - timedelta(hours=2)).isoformat(),
        "changed_at": (NOW - timedelta(hours=2) + timedelta(minutes=9)).isoformat(),
        "deadline_at": (NOW + timedelta(hours=18)).isoformat(),
        "ended_at": (NOW - timedelta(hours=2) + timedelta(minutes=9)).isoformat(),
    }  # fmt: skip
    assert [each["ended_at"] is None for each in found["batches"]] == [True, True, False, False]
    assert found["next"] is None

    table = (await run("batches")).out
    assert "failed     openai/gpt-4o-mini" in table
    assert f"{failed['created_at'][:16].replace('T', ' ')}" in table
    assert "b2: insufficient_quota: \ufffd]0;title\ufffd raise the limit" in table
    assert "\x1b]0;" not in table


@pytest.mark.parametrize(
    ("state", "ids"), [("open", ["b0", "b1"]), ("failed", ["b2"]), ("completed", ["b3"])]
)
async def test_batches_filters_by_state(run: Run, deployment: Deployment, state: str, ids: list[str]) -> None:
    await keep(
        deployment,
        batch(0, "intended"),
        batch(1, "submitted"),
        batch(2, "failed", WHY),
        batch(3, "completed"),
    )
    found = json.loads((await run("batches", "--state", state, "--json")).out)
    assert [each["batch_id"] for each in found["batches"]] == ids


async def test_batches_lists_page_by_page(run: Run, deployment: Deployment) -> None:
    await keep(deployment, *(batch(number, "completed") for number in range(5)))
    first = json.loads((await run("batches", "--limit", "3", "--json")).out)
    assert [each["batch_id"] for each in first["batches"]] == ["b0", "b1", "b2"]
    then = json.loads((await run("batches", "--limit", "3", "--before", first["next"], "--json")).out)
    assert ([each["batch_id"] for each in then["batches"]], then["next"]) == (["b3", "b4"], None)
    assert f"mnemon batches --before {first['next']} --limit 3" in (await run("batches", "--limit", "3")).out


async def test_invalid_use_is_refused(run: Run) -> None:
    state = await run("batches", "--state", "done")
    assert (state.code, "open, completed, failed" in state.err) == (2, True)
    before = await run("batches", "--before", "noon")
    assert (before.code, "2026-11-21T10:00:00Z" in before.err) == (2, True)
