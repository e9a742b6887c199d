"""Consumers and bots connect over TLS with an NKey and a certificate authority from the environment."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import nkeys
import pytest
import pytest_asyncio

from mnemon_contracts.login import AUTHORITY, CREDENTIALS, NKEY_SEED
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.connection import BrokerRefused, connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.config import Deployment
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.process.data_folder import replace_file
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import NotConnected
from tests.support.servers.certificate import create_certificate

_TLS = """
tls {{
  cert_file: "{certificate}"
  key_file: "{key}"
}}
"""


class EncryptedNatsServer(NatsServer):
    """A server that accepts one NKey and requires TLS."""

    def __init__(self, data: Path, public: str) -> None:
        super().__init__(data, None)
        self.certificate, self._key_path = create_certificate(data)
        self._public = public

    async def prepare(self) -> None:
        await super().prepare()
        configuration = Path(self.mark).read_text().replace("no_auth_user: anybody", "")
        configuration = configuration.replace('{"user": "anybody"}', f'{{"nkey": "{self._public}"}}')
        files = _TLS.format(certificate=self.certificate, key=self._key_path)
        replace_file(Path(self.mark), configuration + files)


def _seed(path: Path) -> str:
    """Write the seed of a new NKey to `path`, and return its public key."""
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    path.write_bytes(seed)
    return str(nkeys.from_seed(bytearray(seed)).public_key.decode())


@pytest_asyncio.fixture
async def encrypted_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[EncryptedNatsServer]:
    """The server; environment variables name its certificate and the file with the accepted seed."""
    server = EncryptedNatsServer(tmp_path, _seed(tmp_path / "seed"))
    monkeypatch.setenv(AUTHORITY, str(server.certificate))
    monkeypatch.setenv(NKEY_SEED, str(tmp_path / "seed"))
    await server.start()
    yield server
    await server.stop()


async def test_consumers_and_bots_connect_over_tls(encrypted_server: EncryptedNatsServer) -> None:
    connection = await connect(encrypted_server.url, name="test")
    await provision(connection)
    await connection.close()
    async with Broker(Deployment(nats_url=encrypted_server.url), "test").connect() as connection:
        await connection.flush()
    async with MemoryClient.connect(encrypted_server.url, tenant="acme") as memory:
        assert await memory.publish("u1", "user", "hi") == 1


async def test_end_of_an_encrypted_connection_logs_no_warning(
    encrypted_server: EncryptedNatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    connection = await connect(encrypted_server.url, name="test")
    await connection.close()
    assert [record.getMessage() for record in caplog.records] == []


async def test_another_key_is_refused_and_not_repeated(
    encrypted_server: EncryptedNatsServer, tmp_path: Path
) -> None:
    _seed(tmp_path / "seed")
    with pytest.raises(BrokerRefused, match=NKEY_SEED) as refused:
        await connect(encrypted_server.url, name="test")
    with pytest.raises(NotConnected) as refused_bot:
        async with MemoryClient.connect(encrypted_server.url, tenant="acme"):
            pass
    seed = (tmp_path / "seed").read_text()
    assert seed not in f"{refused.value!r}{refused_bot.value!r}"


@pytest.mark.long
async def test_server_without_trusted_certificate_is_refused(
    encrypted_server: EncryptedNatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(AUTHORITY)
    with pytest.raises(BrokerRefused, match=AUTHORITY):
        await connect(encrypted_server.url, name="test")
    with pytest.raises(NotConnected, match="certificate"):
        async with MemoryClient.connect(encrypted_server.url, tenant="acme"):
            pass


@pytest.mark.parametrize("variable", [AUTHORITY, CREDENTIALS, NKEY_SEED])
async def test_missing_key_file_is_named(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "nowhere.pem")
    with pytest.raises(BrokerRefused, match=f"{variable}: nowhere.pem cannot be read"):
        await connect("nats://127.0.0.1:1", name="test")
    with pytest.raises(NotConnected, match=f"{variable}: nowhere.pem cannot be read"):
        async with MemoryClient.connect("nats://127.0.0.1:1", tenant="acme"):
            pass
