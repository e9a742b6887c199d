"""`mnemon rebuild` on a running and on a stopped stack."""

import asyncio
import json
import os
import signal
import sys
from typing import Any

import pytest
from psycopg import connect as connect_database

from mnemon_bench.workloads.all_events import fill_log
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.streams.applied_position import (
    find_first_event_from,
    read_applied_position,
    read_log_end,
)
from mnemon_infra.config import Deployment
from mnemon_infra.vectors.embedding_metadata import RECORD
from tests.support.processes.stack import TIMEOUT, Up, mnemon, until
from tests.support.processes.terminal import run_at_terminal
from tests.support.servers.qdrant import stack_environment
from tests.support.stock_client import Stock

FEW, MANY = 2_000, 20_000
"""Events of a log: a few of each kind, and so many that a rebuild can be killed while it runs."""


async def ended(stack: Up, *options: str, code: int = 0) -> str:
    """Run `mnemon rebuild`, check its exit code and return its output."""
    finished = await mnemon("rebuild", "--data", stack.data, *options)
    assert finished.code == code, finished.out + finished.err
    return finished.out + finished.err


async def value(stack: Up, *options: str, code: int = 0) -> Any:
    """Return the first line of the output, decoded from JSON."""
    return json.loads((await ended(stack, "--json", *options, code=code)).partition("\n")[0])


async def listed(stack: Up) -> dict[str, Any]:
    """Return the position of each generation."""
    return {row["generation"]: row["position"] for row in await value(stack, "--list")}


async def filled(stack: Up, events: int) -> None:
    """Fill the log with events of all kinds, and wait until they are applied."""
    assert stack.endpoints
    connection = await connect(stack.endpoints.nats, name="test")
    await fill_log(connection, events)
    async with asyncio.timeout(TIMEOUT):
        context = connection.jetstream()
        while await read_applied_position(context) < await read_log_end(context):
            await asyncio.sleep(0.1)
    await connection.close()


async def stop_with_a_fact(up: Up) -> None:
    """Start the stack, save a fact, and stop the stack."""
    await up.start()
    saved = await mnemon(
        "save", "Likes green tea", "--tenant", "acme", "--user", "u1", "--data", up.data, "--json"
    )
    assert saved.code == 0, saved.err
    assert await up.stop() == 0


async def test_next_step_of_a_refusal_names_the_folder(shared: Up) -> None:
    said = await ended(shared, "--drop", "unmade", code=1)
    listing = f"mnemon rebuild --list --data {shared.data}"
    assert said == f"mnemon: there is no generation 'unmade'\n  List the generations: {listing}\n"


async def test_time_before_the_log_is_refused_with_the_time_of_its_first_event(
    deployment: Deployment, stock: Stock
) -> None:
    async def refuse_until(time: str) -> str:
        refused = await mnemon(
            *("rebuild", "--until", time),
            MNEMON_NATS_URL=str(deployment.nats_url),
            DATABASE_URL=str(deployment.database_dsn),
            MNEMON_DATABASE_SCHEMA=deployment.database_schema,
        )
        assert (refused.code, refused.out) == (2, "")
        return refused.err

    for moment in "1", "2001-01-01":
        assert await refuse_until(moment) == "mnemon: the log is empty\n  Publish events first\n"
    first = await stock.publish("chat.acme.u1.-.message.v1", {"role": "user", "content": "Hi"})
    await stock.publish("chat.acme.u1.-.message.v1", {"role": "user", "content": "Hi again"})
    begun = await find_first_event_from(stock.connection.jetstream(), first)
    assert begun
    assert await refuse_until("2001-01-01T13:00:00+03:00") == (
        f"mnemon: the log has no event before {begun[1]:%Y-%m-%dT%H:%M:%SZ}\n"
        "  Give a later position or time\n"
    )
    assert await refuse_until("3") == "mnemon: the log has no position 3\n  The log goes from 1 to 2\n"


@pytest.mark.long
async def test_killed_rebuild_resumes_at_its_position(up: Up) -> None:
    await up.start("--only", "persist")
    await filled(up, MANY)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "mnemon",
        "rebuild",
        "--data",
        up.data,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **stack_environment(up.data)},
    )
    assert up.endpoints
    with connect_database(up.endpoints.database, autocommit=True) as database:

        def has_begun() -> bool:
            if database.execute(f"SELECT to_regclass('{up.schema}_next.replay')").fetchone() == (None,):
                return False
            return database.execute(f"SELECT reached > 0 FROM {up.schema}_next.replay").fetchone() == (True,)

        await until(has_begun)
    process.kill()
    await process.wait()
    reached = (await listed(up))[f"{up.schema}_next"]
    assert 0 < reached < MANY

    said = await ended(up, "--verify", "--keep")
    assert f"continuing the rebuild of {up.schema}_next from position {reached:,}" in said
    assert f"Up to position {MANY:,}, the live generation agrees with the log." in said


@pytest.mark.long
async def test_rebuild_verifies_switches_and_drops(up: Up) -> None:
    await up.start("--only", "persist")
    await filled(up, FEW)
    assert up.endpoints
    said = await ended(up, "--verify", "--keep")
    assert f"Up to position {FEW:,}, the live generation agrees with the log." in said

    with connect_database(up.endpoints.database) as database:
        database.execute(f"UPDATE {up.schema}.profile_sets SET fields = '{{\"planted\": 1}}' WHERE seq < 500")
    found = await value(up, "--verify", "--keep", code=1)
    assert found["by_table"] == {"profile_sets": found["differences"]}
    assert found["first"][0]["live"] == {"fields": {"planted": 1}}
    said = await ended(up, "--verify", "--keep", code=1)
    assert "planted" in said
    assert f"To swap in a rebuilt generation: mnemon rebuild --data {up.data}\n" in said

    done = await value(up)
    assert (done["live"], done["former"], done["position"]) == (up.schema, f"{up.schema}_before", FEW)
    assert "still exists" in await ended(up, code=2)
    await ended(up, "--drop", "before")
    assert "dropped" in await ended(up, "--verify")

    dropping = f"`mnemon rebuild --drop {up.schema}_until_700 --data {up.data}`"
    assert dropping in await ended(up, "--until", "700")
    assert await listed(up) == {up.schema: FEW, f"{up.schema}_until_700": 700}
    assert "no generation 'until_701'" in await ended(up, "--drop", "until_701", code=1)
    assert f"{up.schema} is live" in await ended(up, "--drop", up.schema, code=2)
    assert "no former generation" in await ended(up, "--back", code=2)

    # The servers keep running, as after a killed command on a stopped stack.
    await up.kill()
    (up.data / "endpoints.json").unlink()
    assert await listed(up) == {up.schema: FEW, f"{up.schema}_until_700": 700}


@pytest.mark.long
async def test_verify_names_outdated_term_weights(up: Up) -> None:
    await stop_with_a_fact(up)
    assert "term weights" not in await ended(up, "--verify")

    record = up.data / "vectors" / RECORD
    record.write_text(json.dumps({**json.loads(record.read_text()), "terms": 1}))
    assert "version 1 of the term weights" in (said := await ended(up, "--verify"))
    assert f"run `mnemon rebuild --data {up.data}`, then verify again" in said


@pytest.mark.long
async def test_signal_ends_reembed_that_waits_for_confirmation(up: Up) -> None:
    await stop_with_a_fact(up)
    command = ("rebuild", "--reembed", "none", "--data", str(up.data))
    async with run_at_terminal(*command, **stack_environment(up.data)) as terminal:
        await terminal.await_question("Swap in these vectors? [y/N]")
        terminal.send_signal(signal.SIGTERM)
        assert (await terminal.await_end()).code == 128 + signal.SIGTERM
    async with run_at_terminal(*command, **stack_environment(up.data)) as terminal:
        await terminal.await_question("Swap in these vectors? [y/N]")
        terminal.type("y\n")
        assert (await terminal.await_end()).code == 0
    assert set(await listed(up)) == {up.schema, f"{up.schema}_before"}
