"""A NATS server whose storage is full: commands name the cause, and a restore continues later."""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import nats.errors
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.js.errors import APIError

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.restoration import ExactMessage, ExactWriter
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.process.data_folder import replace_file
from tests.support.processes.stack import mnemon

MESSAGES = [ExactMessage("chat.acme.u1.-.message.v1", {}, b"%03d" % number * 2000) for number in range(100)]
"""Messages of 6,000 bytes each."""


class SmallNatsServer(NatsServer):
    """A server whose JetStream has a limit of storage, in bytes."""

    limit = 300_000

    async def prepare(self) -> None:
        await super().prepare()
        configuration = Path(self.mark).read_text()
        limited = f"jetstream {{\n  max_file_store: {self.limit}\n"
        replace_file(Path(self.mark), configuration.replace("jetstream {\n", limited))


@pytest_asyncio.fixture
async def small_server(tmp_path: Path) -> AsyncIterator[SmallNatsServer]:
    server = SmallNatsServer(tmp_path, None)
    await server.start()
    yield server
    await server.stop()


async def write_messages(connection: Client) -> None:
    """Write those of `MESSAGES` that the log lacks, as a restore does."""
    written = (await connection.jetstream().stream_info(LOG)).state.last_seq
    writer = ExactWriter(connection, written)
    for message in MESSAGES[written:]:
        await writer.write(message)
    await writer.flush()


async def fill_storage(connection: Client) -> None:
    """Publish events until the server stores no more."""
    with suppress(APIError, nats.errors.TimeoutError):
        while True:
            await connection.jetstream(timeout=2).publish("chat.acme.u1.-.message.v1", b"x" * 6000)


@pytest.mark.long
async def test_restore_without_room_names_the_cause_and_continues(
    small_server: SmallNatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemon_infra.broker.provisioning.restoration.TIMEOUT", 2.0)
    monkeypatch.setattr("mnemon_infra.broker.provisioning.restoration.PAUSE", 0.01)
    connection = await connect(small_server.url, name="test")
    await provision(connection)
    with pytest.raises(APIError, match="insufficient resources"):
        await write_messages(connection)
    await connection.close()
    await small_server.stop()
    small_server.limit = 3_000_000
    await small_server.start()
    connection = await connect(small_server.url, name="test")
    await write_messages(connection)
    stored = [(await connection.jetstream().get_msg(LOG, seq)).data for seq in range(1, len(MESSAGES) + 1)]
    assert stored == [message.body for message in MESSAGES]
    await connection.close()


@pytest.mark.long
async def test_command_at_a_full_server_names_its_storage(small_server: SmallNatsServer) -> None:
    connection = await connect(small_server.url, name="test")
    await provision(connection)
    await fill_storage(connection)
    await connection.close()
    result = await mnemon("settings", "set", "recent_messages=20", MNEMON_NATS_URL=small_server.url)
    assert result.code == 3
    assert "the NATS server has no room: insufficient resources" in result.err
