"""The applied position of a consumer, also on a server that is slow or has an older state."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest
from nats.aio.client import Client

from mnemon_consumers.retrieve.verbs.facts import save
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_memory_subject, build_thing_filter
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision, reset_durable
from mnemon_infra.broker.streams import log_reader
from mnemon_infra.broker.streams.applied_position import AppliedPosition, read_applied_position
from mnemon_infra.embedded.nats_server import NatsServer
from tests.support.servers.log_server import LogServer, await_reconnection
from tests.support.stock_client import Stock, acknowledge_messages

T = TypeVar("T")


class Silent:
    """A server whose process can be suspended."""

    def __init__(self, process: psutil.Process, connection: Client) -> None:
        self.connection = connection
        self._process = process

    async def during(self, question: Coroutine[Any, Any, T]) -> T:
        """Start `question` with the server suspended, resume the server after 0.5 s, return the result."""
        try:
            self._process.suspend()
            async with asyncio.timeout(60):
                while not has_stopped(self._process):
                    await asyncio.sleep(0.01)
            asking = asyncio.create_task(question)
            assert not (await asyncio.wait([asking], timeout=0.5))[0]
        finally:
            self._process.resume()
        return await asking


def has_stopped(process: psutil.Process) -> bool:
    """Return whether all threads have stopped: the signal stops them one after another."""
    threads = (psutil.Process(thread.id) for thread in process.threads())
    return all(thread.status() == psutil.STATUS_STOPPED for thread in threads)


@asynccontextmanager
async def a_server(folder: Path) -> AsyncIterator[Silent]:
    server = NatsServer(folder, None)
    await server.start()
    connection = await connect(server.url, name="test")
    await provision(connection)
    try:
        yield Silent(psutil.Process(int(server.pid_path.read_text())), connection)
    finally:
        await connection.close()
        await server.stop()


async def test_requests_to_a_suspended_server_are_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reader, "TIMEOUT", 0.2)
    monkeypatch.setattr(save, "DECISION_TIMEOUT", 60)
    async with a_server(tmp_path) as server:
        context = server.connection.jetstream(timeout=0.2)
        subject = build_memory_subject("acme", "u1", "fact.rejected")
        decided = b'{"proposal_id": "p1", "reason": "too_short"}'
        said = await server.connection.jetstream().publish(subject, decided, stream=LOG)
        persist = await server.connection.jetstream().pull_subscribe_bind("persist", LOG)
        (message,) = await persist.fetch(1, 60)
        await message.ack_sync()

        assert await server.during(AppliedPosition().wait_for(context, said.seq, 60)) == said.seq

        woken = asyncio.Event()
        facts = build_thing_filter("acme", "u1", "fact")
        found = await server.during(save._wait_for_decision(server.connection, facts, "p1", 0, woken))
        assert (found[0], found[1].decision) == (said.seq, "rejected")


async def test_reset_of_a_consumer_lowers_the_position(connection: Client) -> None:
    seq = await Stock(connection).say("hello")
    await acknowledge_messages(connection, "index", 1)
    position = AppliedPosition("index")
    assert await position.refresh(connection.jetstream()) == seq
    await reset_durable(connection, LOG, "index")
    assert await position.refresh(connection.jetstream()) == 0
    await acknowledge_messages(connection, "index", 1)
    assert await position.wait_for(connection.jetstream(), seq, 60) == seq


async def test_deleted_consumer_keeps_its_position_until_it_is_created_again(connection: Client) -> None:
    seq = await Stock(connection).say("hello")
    await acknowledge_messages(connection, "index", 1)
    position = AppliedPosition("index")
    assert await position.refresh(connection.jetstream()) == seq
    await connection.jetstream().delete_consumer(LOG, "index")
    assert await position.refresh(connection.jetstream()) == seq
    await provision(connection)
    assert await position.refresh(connection.jetstream()) == 0


async def test_server_that_lags_does_not_lower_the_position(log_server: LogServer) -> None:
    """The server loads an older state of the consumer, as a new leader of a cluster may have."""
    connection = await connect(log_server.server.url, name="test")
    await provision(connection)
    stock = Stock(connection)
    first = await stock.say("one")
    seq = await stock.say("two")
    await acknowledge_messages(connection, "index", 1)
    await log_server.keep_state()
    await await_reconnection(connection)
    await acknowledge_messages(connection, "index", 1)
    position = AppliedPosition("index")
    assert await position.refresh(connection.jetstream()) == seq
    await log_server.restore_state()
    await await_reconnection(connection)
    assert await read_applied_position(connection.jetstream(), "index") == first
    assert await position.refresh(connection.jetstream()) == seq
    await connection.close()
