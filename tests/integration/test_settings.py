"""Settings reach every process, also one that lost its server for a while."""

import asyncio
from pathlib import Path

import pytest

from contracts.settings import SettingsV1
from contracts.streams import SETTINGS
from infra.broker.connect import connect
from infra.broker.topology import provision
from infra.embedded.nats_server import NatsServer
from infra.settings.bucket import SettingsNotProvisioned
from infra.settings.store import LiveSettings, read, write

PATIENCE = 60.0


async def until_recent(live: LiveSettings, messages: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while live.value.recent_messages != messages:
            await asyncio.sleep(0.02)


async def test_without_a_bucket_the_error_says_what_to_do(nats_url: str) -> None:
    connection = await connect(nats_url, name="test")
    with pytest.raises(SettingsNotProvisioned, match="mnemon provision"):
        await read(connection)
    await connection.close()


async def test_changes_arrive_and_rubbish_does_not(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, None)
    await server.start()
    connection = await connect(server.url, name="test")
    await provision(connection)
    live = LiveSettings()
    async with live.watched(connection):
        assert live.value == SettingsV1()
        await write(connection, SettingsV1(recent_messages=3))
        await until_recent(live, 3)
        bucket = await connection.jetstream().key_value(SETTINGS)
        await bucket.put("default", b'{"recent_messages": "many"}')
        await write(connection, SettingsV1(recent_messages=4))
        await until_recent(live, 4)

        server = await killed_and_started(server, tmp_path)
        async with asyncio.timeout(PATIENCE):
            while not connection.is_connected:
                await asyncio.sleep(0.02)
        await write(connection, SettingsV1(recent_messages=5))
        await until_recent(live, 5)
        await bucket.delete("default")
        await until_recent(live, SettingsV1().recent_messages)
    await connection.close()
    await server.stop()


async def killed_and_started(server: NatsServer, data: Path) -> NatsServer:
    """The same server after `kill -9`, at the same address."""
    assert server._process is not None
    server._process.kill()
    await server.ended()
    again = NatsServer(data, int(server.url.rpartition(":")[2]))
    await again.start()
    return again
