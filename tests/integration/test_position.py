"""How far the log is projected is found out, also while the server takes its time."""

import asyncio
from pathlib import Path

import psutil

from contracts.streams import LOG
from infra.broker.connect import connect
from infra.broker.position import Position
from infra.broker.topology import provision
from infra.embedded.nats_server import NatsServer


def has_stopped(process: psutil.Process) -> bool:
    """The signal reaches one thread after the other: until then some of them answer."""
    threads = (psutil.Process(thread.id) for thread in process.threads())
    return all(thread.status() == psutil.STATUS_STOPPED for thread in threads)


async def test_a_server_that_is_silent_for_a_while_is_asked_again(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, None)
    await server.start()
    process = psutil.Process(int(server.pid_path.read_text()))
    connection = await connect(server.url, name="test")
    await provision(connection)
    said = await connection.jetstream().publish("chat.acme.u1.-.message.v1", b"{}", stream=LOG)
    persist = await connection.jetstream().pull_subscribe_bind("persist", LOG)
    (message,) = await persist.fetch(1)
    await message.ack_sync()
    try:
        process.suspend()
        async with asyncio.timeout(60):
            while not has_stopped(process):
                await asyncio.sleep(0.01)
        reaching = asyncio.create_task(Position().reach(connection.jetstream(timeout=0.2), said.seq, 60))
        # Longer than an answer is waited for, and shorter than the patience.
        assert not (await asyncio.wait([reaching], timeout=0.5))[0]
    finally:
        process.resume()
    assert await reaching == said.seq
    await connection.close()
    await server.stop()
