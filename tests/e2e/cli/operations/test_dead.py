"""`mnemon dead`: dead letters are listed, shown, redriven and dropped."""

import json
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from mnemon_consumers.app import run_consumers
from mnemon_infra.broker.dead_letters.writer import store_letter
from mnemon_infra.broker.outcomes import Dead
from mnemon_infra.config import Deployment
from tests.support.log.dead_letters import bury_next, bury_said, bury_trigger, kept
from tests.support.processes.stack import CommandResult, mnemon
from tests.support.processes.terminal import run_at_terminal
from tests.support.stock_client import Stock

COMES_BACK = (
    "  a message that still cannot be handled becomes a dead letter again, with a new id: mnemon dead list"
)

Run = Callable[..., Awaitable[CommandResult]]


def name_servers(deployment: Deployment) -> dict[str, str]:
    return {
        "MNEMON_NATS_URL": str(deployment.nats_url),
        "DATABASE_URL": str(deployment.database_dsn),
        "MNEMON_DATABASE_SCHEMA": deployment.database_schema,
    }


@pytest.fixture
def run(deployment: Deployment) -> Run:
    async def run(*arguments: str) -> CommandResult:
        return await mnemon("dead", *arguments, **name_servers(deployment), COLUMNS="240")

    return run


async def test_dead_letter_is_listed_shown_and_redriven(
    run: Run, stock: Stock, deployment: Deployment
) -> None:
    nothing = await run("list")
    assert (nothing.code, nothing.out) == (0, "no dead letters\n")
    await bury_said(stock, "Привет")
    await bury_said(stock, "x", "globex.u1.-")

    listed = await run("list", "--tenant", "acme")
    assert listed.code == 0
    head, line, *_ = listed.out.splitlines()
    assert head.split() == ["id", "at", "consumer", "reason", "subject", "error"]
    assert line.split()[0] == "1"
    assert "invalid_body  chat.acme.u1.-.message.v1  an older version could not read it" in line
    found = json.loads((await run("list", "--json", "--limit", "1")).out)
    assert (found["count"], [each["id"] for each in found["letters"]]) == (2, [2])
    assert found["letters"][0]["tenant"] == "globex"

    shown = await run("show", "1")
    assert shown.code == 0
    assert "next      this version can read it" in shown.out
    assert "mnemon dead redrive 1" in shown.out
    assert "sequence  1" in shown.out
    all_of_it = json.loads((await run("show", "1", "--json")).out)
    assert json.loads(all_of_it["body"])["content"] == "Привет"
    assert (all_of_it["in_log"], all_of_it["kind"]) == (True, "event")

    done = await run("redrive", "1")
    assert (done.code, done.out.splitlines()) == (0, ["1 redriven", COMES_BACK])
    async with run_consumers(("persist", "retrieve"), deployment):
        end = (await stock.connection.jetstream().stream_info("LOG")).state.last_seq
        assert await stock.contents(min_seq=end) == ["Привет"]
    assert [each.id for each in await kept(stock.connection)] == [2]


async def test_dead_redrive_all_redrives_every_letter(run: Run, stock: Stock) -> None:
    for tenant in ("acme", "acme", "globex"):
        await bury_said(stock, "x", f"{tenant}.u1.-")
    await bury_trigger(stock.connection, "work.index.acme.u1", b"1", "index-sweep")
    unreadable = Dead("unreadable", "no JSON")
    await store_letter(
        stock.connection, "extract", "memory.acme.u1.window.answered.v1", unreadable, {"answer": "?"}, "w"
    )

    asked = await run("redrive", "--all", "--yes", "--consumer", "persist", "--tenant", "acme", "--json")
    assert asked.code == 0, asked
    assert json.loads(asked.out) == {
        "redriven": [
            {"id": 1, "stream": "LOG", "sequence": 4},
            {"id": 2, "stream": "LOG", "sequence": 5},
        ],
        "applied_already": [],
        "kept": [],
    }
    rest = await run("redrive", "--all", "--yes")
    assert rest.code == 1
    assert rest.out.splitlines() == ["2 redriven", COMES_BACK]
    assert "dead letter 5 was not redriven: the letter does not name" in rest.err
    assert "mnemon dead drop 5" in (await run("show", "5")).out

    dropped = await run("drop", "5", "--json")
    assert (dropped.code, json.loads(dropped.out)) == (0, {"dropped": [5]})
    assert await kept(stock.connection) == []
    for command in ("redrive", "drop"):
        nothing = await run(command, "--all", "--yes")
        assert (nothing.code, nothing.out) == (0, "no dead letters\n")


async def test_shown_letter_says_where_its_body_is_from(run: Run, stock: Stock) -> None:
    body = b'{"role": "user", "content": "my card is 4111'
    await stock.publish("chat.acme.u1.-.message.v1", body)
    await bury_next(stock.connection, dead=Dead("invalid_body", "no JSON", is_confidential=True))
    shown = (await run("show", "1")).out
    assert f"bytes     {len(body)}\n" in shown
    assert "left_out  headers and body: not in the letter\n" in shown
    assert "body_from the log, at position 1\n" in shown
    assert shown.endswith(f"\n\n{body.decode()}\n")
    assert json.loads((await run("show", "1", "--json")).out)["body_from"] == "log"
    await stock.connection.jetstream().purge_stream("LOG")
    gone = (await run("show", "1")).out
    assert "bytes     0\n" in gone
    assert "body_from the letter; the log no longer has the event\n" in gone


async def test_invalid_dead_command_changes_nothing(run: Run, stock: Stock) -> None:
    for _ in range(2):
        await bury_said(stock, "x")
    for arguments, code, said in (
        (("show", "9"), 1, "there is no dead letter 9"),
        (("redrive", "9"), 1, "there is no dead letter 9"),
        (("drop", "1", "9"), 1, "there is no dead letter 9"),
        (("drop", "1", "--all"), 2, "ids of dead letters, or --all"),
        (("drop", "1", "--tenant", "acme"), 2, "ids of dead letters, or --all"),
        (("redrive", "--all"), 2, "Redrive 2 dead letters?"),
    ):
        refused = await run(*arguments)
        assert (refused.code, said in refused.err) == (code, True), (arguments, refused)
    assert [each.id for each in await kept(stock.connection)] == [1, 2]


@pytest.mark.parametrize(
    ("typed", "code", "left"),
    [
        ("y\n", 0, []),
        ("perhaps\nYES\n", 0, []),
        ("\n", 1, [1, 2]),
        ("n\n", 1, [1, 2]),
        ("\x04", 1, [1, 2]),
        ("y\x04", 0, []),
        ("ok\x04\x04", 1, [1, 2]),
    ],
    ids=[
        "yes",
        "yes after another word",
        "empty line",
        "no",
        "Ctrl-D",
        "yes and Ctrl-D",
        "another word and Ctrl-D twice",
    ],
)
async def test_drop_of_several_letters_is_confirmed_at_the_terminal(
    stock: Stock, deployment: Deployment, typed: str, code: int, left: list[int]
) -> None:
    for _ in range(2):
        await bury_said(stock, "x")
    async with run_at_terminal("dead", "drop", "--all", **name_servers(deployment)) as command:
        await command.await_question("Delete for good 2 dead letters? [y/N]")
        command.type(typed)
        done = await command.await_end()
    assert done.code == code, done.err
    assert [each.id for each in await kept(stock.connection)] == left


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_signal_ends_a_command_that_waits_for_confirmation(
    stock: Stock, deployment: Deployment, number: signal.Signals, code: int
) -> None:
    for _ in range(2):
        await bury_said(stock, "x")
    async with run_at_terminal("dead", "drop", "--all", **name_servers(deployment)) as command:
        await command.await_question("Delete for good 2 dead letters? [y/N]")
        command.send_signal(number)
        assert (await command.await_end()).code == code
    assert [each.id for each in await kept(stock.connection)] == [1, 2]


async def test_redrive_of_unreadable_event_keeps_the_letter(run: Run, stock: Stock) -> None:
    await stock.publish("chat.acme.u1.-.message.v9", b"\x1b[2J" + b"x" * 7_000_000)
    await bury_next(stock.connection)
    shown = json.loads((await run("show", "1", "--json")).out)
    assert "message v9 is not known" in shown["next"]
    assert shown["bytes"] == 7_000_004
    await stock.connection.jetstream().purge_stream("LOG")
    gone = (await run("show", "1")).out
    assert "the log no longer has the event" in gone
    assert "\N{REPLACEMENT CHARACTER}[2Jxxx" in gone, "it would clear the terminal"


async def test_status_names_consumers_stopped_by_dead_letters(stock: Stock, deployment: Deployment) -> None:
    until = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    await stock.connection.jetstream().pause_consumer("LOG", "persist", until)
    status = await mnemon("status", "--json", **name_servers(deployment))
    found = json.loads(status.out)
    assert status.code == 1
    assert found["broker"]["consumers"]["persist"]["paused_until"] == until
    [problem] = found["problems"]
    assert f"persist was paused by hand until {until}" in problem
    assert "nats consumer resume LOG persist" in problem
