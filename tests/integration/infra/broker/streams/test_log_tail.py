"""The log tail yields each event once, in log order, also when the server restarts."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from mnemon_bench.workloads.messages import fill_log
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams import log_tail as module
from mnemon_infra.broker.streams.log_tail import PAGE, PAGE_BYTES, stream_log_tail
from mnemon_infra.delivery import Delivery
from mnemon_infra.embedded.nats_server import NatsServer

SUBJECT = "memory.acme.u1.fact.saved.v1"


async def positions(tail: AsyncGenerator[list[Delivery], None], up_to: int) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(60):
        while not found or found[-1] < up_to:
            found += [each.sequence for each in await anext(tail)]
    return found


async def test_tail_yields_pages_then_new_events(connection: Client) -> None:
    await fill_log(connection, PAGE + 10)
    said = (await connection.jetstream().publish(SUBJECT, b"{}", stream=LOG)).seq
    async with aclosing(stream_log_tail(connection, "chat.>", 5)) as tail:
        assert await positions(tail, said - 1) == list(range(6, said))
    async with aclosing(stream_log_tail(connection, "memory.>", 0)) as tail:
        [first] = await anext(tail)
        assert (first.sequence, first.subject, first.body) == (said, SUBJECT, b"")
        next_page = asyncio.create_task(anext(tail))
        await connection.jetstream().publish("chat.acme.u1.-.message.v1", b"{}", stream=LOG)
        later = (await connection.jetstream().publish(SUBJECT, b"{}", stream=LOG)).seq
        assert [each.sequence for each in await next_page] == [later]


async def test_tail_continues_after_an_expired_request(
    connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.09)
    async with aclosing(stream_log_tail(connection, "memory.>", 0)) as tail:
        next_page = asyncio.create_task(anext(tail))
        done, _ = await asyncio.wait({next_page}, timeout=1)
        assert not done
        said = (await connection.jetstream().publish(SUBJECT, b"{}", stream=LOG)).seq
        assert [each.sequence for each in await next_page] == [said]


async def test_tail_holds_few_large_events_for_a_slow_reader(connection: Client) -> None:
    bodies = [*[b"x" * 1_000_000] * 30, b"y" * (PAGE_BYTES + 1), b"z"]
    said = [(await connection.jetstream().publish(SUBJECT, each, stream=LOG)).seq for each in bodies]
    found: list[Delivery] = []
    async with aclosing(stream_log_tail(connection, "memory.>", 0, headers_only=False)) as tail:
        async with asyncio.timeout(60):
            while len(found) < len(said):
                page = await anext(tail)
                assert len(page) == 1 or sum(len(each.body) for each in page) <= PAGE_BYTES
                found += page
                await asyncio.sleep(0.1)  # as a slow client, while the server could send
    assert [(each.sequence, len(each.body)) for each in found] == [
        (seq, len(body)) for seq, body in zip(said, bodies, strict=True)
    ]


@pytest.mark.long
async def test_tail_loses_and_doubles_no_event_over_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.5)
    server = NatsServer(tmp_path, None)
    await server.start()
    connection = await connect(server.url, name="test")
    try:
        await provision(connection)
        jetstream = connection.jetstream()
        said = [(await jetstream.publish(SUBJECT, b"{}", stream=LOG)).seq for _ in range(3)]
        async with aclosing(stream_log_tail(connection, "memory.>", 0)) as tail:
            assert await positions(tail, said[-1]) == said
            next_one = asyncio.create_task(positions(tail, said[-1] + 2))
            port = int(server.url.rpartition(":")[2])
            await server.stop()
            server = NatsServer(tmp_path, port)
            await server.start()
            other = await connect(server.url, name="other")
            later = [(await other.jetstream().publish(SUBJECT, b"{}", stream=LOG)).seq for _ in range(2)]
            await other.close()
            assert await next_one == later
    finally:
        await connection.close()
        await server.stop()


async def test_tail_without_log_fails(connection: Client) -> None:
    await connection.jetstream().delete_stream(LOG)
    with pytest.raises(NotFoundError):
        await anext(stream_log_tail(connection, "memory.>", 0))
