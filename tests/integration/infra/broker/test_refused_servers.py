"""Servers that refuse the login or are unsuitable: one message each, with the next step."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from nats.aio.client import Client
from nats.js.errors import NotFoundError
from sqlalchemy import create_engine, make_url
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from mnemon.operations.health.report import examine_deployment
from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import DEAD, LOG
from mnemon_infra.broker.connection import BrokerRefused, BrokerTooOld, BrokerUnreachable, connect
from mnemon_infra.broker.provisioning.authorization import build_open_configuration
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.log_format import FORMAT, KNOWN_FORMAT, LogTooNew
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.migration import SchemaTooNew, find_head_revision, load_revision, migrate_schema
from mnemon_infra.embedded.nats_server import NatsServer

_BOT = "authorization { user: bot, password: secret }\n"


class PasswordServer(NatsServer):
    """A server that accepts one user, with a password."""

    async def prepare(self) -> None:
        await super().prepare()
        configuration = Path(self.mark)
        guarded = configuration.read_text("utf-8").replace(build_open_configuration(), _BOT)
        assert _BOT in guarded
        configuration.write_text(guarded, "utf-8")


@asynccontextmanager
async def server_of_version(version: str) -> AsyncIterator[str]:
    """Address of a server that sends the greeting of a NATS version and answers pings."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        about = {"server_id": "A", "version": version, "max_payload": 1048576, "headers": True, "proto": 1}
        writer.write(b"INFO " + json.dumps(about).encode() + b"\r\n")
        while line := await reader.readline():
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        yield f"nats://bot:secret@127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_server_that_is_too_old_is_refused() -> None:
    async with server_of_version("2.11.4") as url:
        with pytest.raises(
            BrokerTooOld, match=r"2\.11\.4 is too old: mnemon needs 2\.14 or newer"
        ) as refused:
            await connect(url, name="test")
    assert "secret" not in str(refused.value)


async def test_consumers_do_not_start_on_a_server_that_is_too_old(deployment: Deployment) -> None:
    async with server_of_version("2.13.0") as url:
        with pytest.raises(BrokerTooOld):
            async with run_consumers(["persist"], deployment.model_copy(update={"nats_url": url})):
                pass


@pytest.mark.parametrize("who", ["bot:wrong@", ""])
async def test_wrong_credentials_of_nats_are_named_and_not_shown(tmp_path: Path, who: str) -> None:
    server = PasswordServer(tmp_path, None)
    await server.start()
    place = server.url.removeprefix("nats://")
    try:
        with pytest.raises(BrokerRefused, match="credentials: check name and password") as refused:
            await connect(f"nats://{who}{place}", name="test")
        await (await connect(f"nats://bot:secret@{place}", name="test")).close()
    finally:
        await server.stop()
    assert "wrong" not in str(refused.value)


async def test_unreachable_address_is_no_refusal() -> None:
    with pytest.raises(BrokerUnreachable, match=r"Start the server, or check MNEMON_NATS_URL") as refused:
        await connect("nats://127.0.0.1:1", name="test")
    assert type(refused.value) is BrokerUnreachable


@pytest.fixture
def role(database_url: str) -> URL:
    """Address of the database with the login of a role without privileges."""
    url = make_url(database_url).set(drivername="postgresql+psycopg")
    name = f"role_{uuid4().hex[:12]}"
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {name} LOGIN")
    return url.set(username=name)


async def test_refused_database_login_names_cause_and_address(database_url: str) -> None:
    url = make_url(database_url).set(drivername="postgresql+psycopg", username="nobody", password="secret")
    with pytest.raises(DatabaseUnavailable, match=r"nobody.*Check DATABASE_URL") as refused:
        migrate_schema(url, "mnemon")
    assert "secret" not in str(refused.value)
    database = Database(Deployment(database_dsn=url.render_as_string(hide_password=False)))
    with pytest.raises(DatabaseUnavailable, match=r"nobody.*Check DATABASE_URL") as refused:
        await database.open()
    assert "secret" not in str(refused.value)


def test_missing_privileges_of_the_role_are_named_with_the_next_step(role: URL) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"permission denied.*grant the right to the role"):
        migrate_schema(role, f"test_{uuid4().hex[:12]}")


def test_exhausted_connections_are_named_with_the_next_step(role: URL, database_url: str) -> None:
    url = make_url(database_url).set(drivername="postgresql+psycopg")
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"ALTER ROLE {role.username} CONNECTION LIMIT 0")
    with pytest.raises(DatabaseUnavailable, match=r"too many connections.*lower MNEMON_PG_POOL_MAX"):
        migrate_schema(role, "mnemon")


def test_read_only_database_is_refused_with_the_next_step(database_url: str) -> None:
    url = make_url(database_url).set(drivername="postgresql+psycopg")
    standby = url.update_query_dict({"options": "-cdefault_transaction_read_only=on"})
    with pytest.raises(DatabaseUnavailable, match=r"read-only transaction: name the primary server"):
        migrate_schema(standby, f"test_{uuid4().hex[:12]}")


def _set_revision(deployment: Deployment, revision: str) -> None:
    assert deployment.database_url
    engine = create_engine(deployment.database_url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            f'UPDATE "{deployment.database_schema}".alembic_version SET version_num = %s', (revision,)
        )


async def test_a_schema_from_the_future_is_left_alone(deployment: Deployment) -> None:
    url, schema = deployment.database_url, deployment.database_schema
    assert url
    _set_revision(deployment, "9001")
    with pytest.raises(SchemaTooNew, match=r"newer mnemon .*9001.*Upgrade mnemon"):
        migrate_schema(url, schema)
    with pytest.raises(SchemaTooNew):
        async with run_consumers(["persist"], deployment):
            pass
    assert load_revision(url, schema) == "9001"
    _set_revision(deployment, find_head_revision())
    async with run_consumers(["persist"], deployment):
        pass


async def _set_log_format(connection: Client, number: str | None) -> None:
    stream_context = connection.jetstream()
    config = (await stream_context.stream_info(LOG)).config
    others = {name: value for name, value in (config.metadata or {}).items() if name != FORMAT}
    await stream_context.update_stream(
        config.evolve(metadata=others if number is None else {**others, FORMAT: number})
    )


@pytest.mark.parametrize("number", ["2", "two"])
async def test_log_of_newer_format_is_refused_and_unchanged(
    connection: Client, deployment: Deployment, number: str
) -> None:
    await _set_log_format(connection, number)
    await connection.jetstream().delete_stream(DEAD)
    with pytest.raises(LogTooNew, match=rf"newer mnemon \(format {number}, .*Upgrade mnemon"):
        await provision(connection)
    with pytest.raises(NotFoundError):
        await connection.jetstream().stream_info(DEAD)
    await _set_log_format(connection, None)
    await provision(connection)
    await _set_log_format(connection, number)
    with pytest.raises(LogTooNew):
        async with run_consumers(["persist"], deployment):
            pass
    found = await examine_deployment(deployment)
    assert not found.healthy
    assert str(LogTooNew(number)) in found.problems


async def test_known_format_of_the_log_survives_provisioning(
    connection: Client, deployment: Deployment
) -> None:
    await _set_log_format(connection, str(KNOWN_FORMAT))
    await provision(connection)
    metadata = (await connection.jetstream().stream_info(LOG)).config.metadata
    assert metadata is not None
    assert metadata[FORMAT] == str(KNOWN_FORMAT)
    async with run_consumers(["persist"], deployment):
        pass


async def test_consumers_do_not_start_on_a_schema_from_the_past(deployment: Deployment) -> None:
    _set_revision(deployment, "0001")
    with pytest.raises(DatabaseUnavailable, match="run `mnemon migrate`"):
        async with run_consumers(["persist"], deployment):
            pass
