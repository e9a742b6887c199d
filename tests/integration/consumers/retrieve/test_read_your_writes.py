"""A reply to a request with `min_seq` reflects the event at that position, projected or not."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import nats.errors
import psutil
import pytest
import pytest_asyncio
from nats.aio.client import Client
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from mnemon_consumers.app import run_consumers
from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.config import Deployment
from mnemon_infra.database import engine
from mnemon_infra.database.engine import Database
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.embedded.postgres import Postgres
from mnemon_infra.embedded.process import ServerProcess
from mnemon_producers.timeouts import DEFAULTS
from tests.support.stock_client import Stock, persisted

TIMEOUT = 60.0


@pytest_asyncio.fixture
async def retrieve(deployment: Deployment) -> AsyncIterator[Deployment]:
    """Run `retrieve` without `persist`."""
    async with run_consumers(("retrieve",), deployment):
        yield deployment


async def crash(server: ServerProcess) -> None:
    """Kill a server and its child processes, and wait for their end: a surviving child could still answer."""
    processes = [each for own in server.list_orphans() for each in (own, *own.children(recursive=True))]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    await asyncio.to_thread(psutil.wait_procs, processes)
    await server.wait_for_end()


async def answer(stock: Stock, verb: str, owner: str = "acme.u1", **request: Any) -> dict[str, Any]:
    """Repeat the request until there is a reply: client and consumer may have to reconnect first."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            try:
                return await stock.ask(verb, owner, **request)
            except nats.errors.Error:
                await asyncio.sleep(0.05)


def tables(deployment: Deployment) -> dict[str, int]:
    """Return the number of rows of each projection."""
    assert deployment.database_url is not None
    engine = create_engine(deployment.database_url, poolclass=NullPool)
    names = ("messages", "starts", "clears", "profile_sets")
    with engine.connect() as connection:
        counts = {
            name: connection.exec_driver_sql(
                f"SELECT count(*) FROM {deployment.database_schema}.{name}"
            ).scalar()
            for name in names
        }
    return {name: int(count or 0) for name, count in counts.items()}


async def persist(connection: Client, deployment: Deployment, up_to: int) -> None:
    """Run `persist` until it has applied the log up to a position."""
    async with run_consumers(("persist",), deployment):
        assert await AppliedPosition().wait_for(connection.jetstream(), up_to, TIMEOUT) >= up_to


@pytest.mark.usefixtures("mnemon")
async def test_read_right_after_publish_sees_the_event(stock: Stock) -> None:
    expected = []
    for number in range(50):
        seq = await stock.say(str(number))
        expected.append(str(number))
        reply = await stock.ask("history", limit=100, min_seq=seq)
        assert [message["content"] for message in reply["messages"]] == expected
        assert reply["seen_seq"] >= seq


@pytest.mark.long
async def test_unprojected_events_are_read_from_the_log(
    connection: Client, stock: Stock, deployment: Deployment
) -> None:
    await stock.say("projected")
    projected = await stock.publish(
        "memory.acme.u1.profile.set.v1", {"fields": {"name": "Anna", "city": "Perm"}}
    )
    await persist(connection, deployment, projected)
    before = tables(deployment)

    async with run_consumers(("retrieve",), deployment):
        asked = {
            "said": await stock.say("beyond"),
            "cleared": await stock.publish("chat.acme.u1.-.cleared.v1"),
            "after": await stock.say("after the clear"),
            "named": await stock.say("in a conversation that nobody started", "acme.u1.trip"),
            "current": await stock.say("and so it is the current one"),
            "profile": await stock.publish(
                "memory.acme.u1.profile.set.v1", {"fields": {"city": None, "age": 30}}
            ),
            "discarded": await stock.publish("chat.acme.u1.work.started.v1", {"discard_previous": True}),
            "last": await stock.say("at work"),
        }
        seq = asked["last"]

        assert await stock.contents(min_seq=seq) == ["at work"]
        assert await stock.contents(min_seq=seq, conversation="trip") == []
        context = await stock.ask("context", min_seq=seq)
        assert [message["content"].rpartition("] ")[2] for message in context["messages"]] == [
            "User data:\n- age: 30\n- name: Anna",
            "at work",
        ]
        profile = await stock.ask("profile", min_seq=seq)
        assert profile["profile"] == {"name": "Anna", "age": 30}
        status = await stock.ask("status", min_seq=seq)
        assert (status["conversation"], status["conversations"], status["messages"]) == ("work", 1, 1)
        assert min(reply["seen_seq"] for reply in (context, profile, status)) >= seq

        # Without `min_seq`, replies show the projected state and its position.
        old = await stock.ask("history")
        assert [message["content"] for message in old["messages"]] == ["projected"]
        assert old["seen_seq"] == projected
        assert (await stock.ask("profile"))["profile"] == {"name": "Anna", "city": "Perm"}
        status = await stock.ask("status")
        assert (status["messages"], status["seen_seq"], status["log_seq"]) == (1, projected, seq)
        assert tables(deployment) == before

    await persist(connection, deployment, seq)
    async with run_consumers(("retrieve",), deployment):
        assert await stock.contents() == ["at work"]
        assert (await stock.ask("profile"))["profile"] == {"name": "Anna", "age": 30}


@pytest.mark.long
@pytest.mark.usefixtures("retrieve")
async def test_read_follows_each_event_of_the_tail(stock: Stock) -> None:
    """No event is projected; `retrieve` reads each one from the log, and each changes the reply."""
    seq = await stock.say("one")
    assert await stock.contents(min_seq=seq) == ["one"]
    seq = await stock.publish("chat.acme.u1.-.cleared.v1")
    assert await stock.contents(min_seq=seq) == []
    seq = await stock.say("two", "acme.u1.trip")
    assert await stock.contents(min_seq=seq) == ["two"]
    seq = await stock.publish("chat.acme.u1.-.started.v1")
    assert await stock.contents(min_seq=seq) == []
    assert await stock.contents(min_seq=seq, conversation="trip") == ["two"]
    seq = await stock.publish("memory.acme.u1.profile.set.v1", {"fields": {"name": "Anna"}})
    assert (await stock.ask("profile", min_seq=seq))["profile"] == {"name": "Anna"}
    await stock.publish("chat.acme.u1.-.message.v1", b"not JSON")
    seq = await stock.say("three")
    assert await stock.contents(min_seq=seq) == ["three"]


@pytest.mark.long
@pytest.mark.usefixtures("retrieve")
async def test_reads_skip_unprojected_events_with_invalid_subjects(stock: Stock) -> None:
    await stock.say("one")
    await stock.publish("chat.acme.u1.-.Message.v1", {"role": "user", "content": "in capitals"})
    await stock.publish("chat.acme.u1.-.message", {"role": "user", "content": "without a version"})
    seq = await stock.publish("memory.acme.u1.profile.set.v1", {"fields": {"name": "Anna"}})
    assert await stock.contents(min_seq=seq) == ["one"]
    assert (await stock.ask("read", min_seq=seq))["facts"] == []
    assert (await stock.ask("profile", min_seq=seq))["profile"] == {"name": "Anna"}
    assert "error" not in await stock.ask("context", min_seq=seq)


@pytest_asyncio.fixture
async def persisting(deployment: Deployment) -> AsyncIterator[Process]:
    """Run `mnemon run persist` in a process of its own, and yield the process."""
    environment = {
        **os.environ,
        "MNEMON_NATS_URL": str(deployment.nats_url),
        "DATABASE_URL": str(deployment.database_dsn),
        "MNEMON_DATABASE_SCHEMA": deployment.database_schema,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mnemon", "run", "persist", env=environment, stdout=PIPE
    )
    yield process
    process.terminate()
    await process.wait()


@pytest.mark.long
@pytest.mark.usefixtures("retrieve", "persisting")
async def test_a_change_by_another_process_is_seen(connection: Client, stock: Stock) -> None:
    changes = await connection.subscribe("changed.acme.u1")
    expected: list[str] = []
    for number in range(20):
        assert await stock.contents() == expected, "and now it is at hand"
        seq = await stock.say(str(number))
        expected.append(str(number))
        while int((await changes.next_msg(TIMEOUT)).data.partition(b":")[2].rstrip(b"}")) < seq:
            pass
        assert await stock.contents() == expected


async def test_read_recovers_after_a_broker_restart(tmp_path: Path, database_url: str) -> None:
    """`retrieve` has missed the notice of a change while it was disconnected."""
    server = NatsServer(tmp_path, None)
    await server.start()
    connection = await connect(server.url, name="test")
    await provision(connection)
    deployment = Deployment(
        nats_url=server.url, database_dsn=database_url, database_schema=f"test_{os.urandom(6).hex()}"
    )
    assert deployment.database_url is not None
    migrate_schema(deployment.database_url, deployment.database_schema)
    stock = Stock(connection)
    database = Database(deployment)
    await database.open()
    try:
        async with run_consumers(("persist", "retrieve"), deployment):
            first = await persisted(connection, await stock.say("first"))
            assert await stock.contents(min_seq=first) == ["first"]
            assert await stock.contents() == ["first"]

            await crash(server)
            missed = Delivery(
                "chat.acme.u1.-.message.v1", b'{"role":"user","content":"missed"}', None, LOG, 1000, 1, 1.8e9
            )
            await write_rows(database, plan_batch([missed]).rows)
            await server.start()
            reply = await answer(stock, "history")
            assert [message["content"] for message in reply["messages"]] == ["first", "missed"]

            seq = await stock.say("and on it goes")
            reply = await answer(stock, "history", min_seq=seq)
            assert "and on it goes" in [message["content"] for message in reply["messages"]]
    finally:
        await database.close()
        await connection.close()
        await server.stop()


@pytest.mark.long
async def test_stopped_database_is_named(
    connection: Client, nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error arrives within the timeout of a client. All waits are tripled for machines under load."""
    monkeypatch.setattr(engine, "CONNECTION_WAIT", 3 * engine.CONNECTION_WAIT)
    server = Postgres(tmp_path / "own", None)
    (tmp_path / "own").mkdir()
    await server.start()
    deployment = Deployment(nats_url=nats_url, database_dsn=server.url)
    assert deployment.database_url is not None
    migrate_schema(deployment.database_url, deployment.database_schema)
    stock = Stock(connection)
    try:
        async with run_consumers(("persist", "retrieve"), deployment):
            seq = await stock.say("before")
            assert await stock.contents(min_seq=seq) == ["before"]

            await crash(server)
            verbs = ("history", "context", "profile", "status")
            async with asyncio.timeout(3 * DEFAULTS.ask):
                replies = await asyncio.gather(*(stock.ask(verb, "acme.u2") for verb in verbs))
            for reply in replies:
                assert "error" in reply, reply
                error = reply["error"]
                assert (error["code"], error["retryable"]) == ("unavailable", True)
                assert "database" in error["message"]
            seq = await stock.say("meanwhile")

            await server.start()
            async with asyncio.timeout(TIMEOUT):
                while "error" in (reply := await stock.ask("history", min_seq=seq)):
                    assert reply["error"]["code"] == "unavailable"
            assert [message["content"] for message in reply["messages"]] == ["before", "meanwhile"]
            assert await AppliedPosition().wait_for(connection.jetstream(), seq, TIMEOUT) == seq
            assert await stock.contents() == ["before", "meanwhile"]
    finally:
        await server.stop()


@pytest.mark.parametrize("verb", ["history", "context", "read"])
async def test_first_reply_has_a_position(
    stock: Stock, connection: Client, deployment: Deployment, verb: str
) -> None:
    async with run_consumers(["persist"], deployment):
        seq = await stock.say("said")
        assert await AppliedPosition().wait_for(connection.jetstream(), seq, 20) >= seq
    await connection.jetstream().delete_consumer(LOG, "persist")
    await provision(connection)
    async with run_consumers(["retrieve"], deployment):
        assert await stock.contents() == ["said"]
        assert (await stock.ask(verb))["seen_seq"] >= seq
