"""`mnemon dead redrive` after an upgrade, and with logins."""

from pathlib import Path

import nats
import pytest
from nats.aio.client import Client
from psycopg.sql import SQL, Identifier

from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_inbox_prefix
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision, reset_durable
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.embedded.logins import FolderLogins
from mnemon_infra.embedded.nats_server import NatsServer
from tests.support.log.dead_letters import bury_next, kept
from tests.support.processes.runner import Runner
from tests.support.processes.runner import running as upgraded
from tests.support.processes.stack import mnemon
from tests.support.stock_client import Stock, handled

IN_V2 = "chat.acme.u1.-.message.v2"


def environment(deployment: Deployment) -> dict[str, str]:
    return {
        "MNEMON_NATS_URL": str(deployment.nats_url),
        "DATABASE_URL": str(deployment.database_dsn),
        "MNEMON_DATABASE_SCHEMA": deployment.database_schema,
    }


async def rows(deployment: Deployment) -> list[tuple[str, str]]:
    """Return event id and content of every message."""
    async with Database(deployment) as database, database.transaction() as connection:
        table = Identifier(deployment.database_schema, "messages")
        statement = SQL("SELECT event_id, content FROM {} ORDER BY content").format(table)
        found = await connection.execute(statement)
        return [(event_id, content) for event_id, content in await found.fetchall()]


@pytest.mark.long
async def test_event_of_newer_version_is_redriven_after_the_upgrade(
    connection: Client, deployment: Deployment, tmp_path: Path
) -> None:
    stock = Stock(connection)
    body = {"role": "user", "content": "without an id", "mood": "glad"}
    async with run_consumers(("persist",), deployment):
        await stock.publish(IN_V2, body)
        await stock.publish(IN_V2, body | {"content": "with one", "id": "m2"})
        await stock.say("good")
        await handled(connection, "persist")
    assert [each.reason for each in await kept(connection)] == ["unknown_event"] * 2

    newer = Runner(
        ["persist"],
        tmp_path / "newer.log",
        module="tests.support.processes.newer_mnemon",
        **environment(deployment),
    )
    async with upgraded([newer]):
        redriven = await mnemon("dead", "redrive", "--all", "--yes", **environment(deployment))
        assert (redriven.code, redriven.out.splitlines()[:1]) == (0, ["2 redriven"]), redriven
        for _ in range(2):
            await handled(connection, "persist")
            once = [("LOG:3", "good"), ("m2", "with one"), ("LOG:1", "without an id")]
            assert await rows(deployment) == once
            await reset_durable(connection, LOG, "persist")
    assert await kept(connection) == []


async def test_redrive_works_with_logins(database_url: str, tmp_path: Path) -> None:
    with FolderLogins(tmp_path).edit() as users:
        acme = users.issue_tenant_login("acme")
    server = NatsServer(tmp_path, None)
    await server.start()
    operator = Deployment(
        nats_url=server.build_login_url("operator"),
        database_dsn=database_url,
        database_schema="redriven_with_logins",
    )
    worker = operator.model_copy(update={"nats_url": server.build_login_url("worker")})
    assert operator.database_url is not None
    migrate_schema(operator.database_url, operator.database_schema)
    async with await connect(str(operator.nats_url), name="operator") as connection:
        await provision(connection)
        async with await nats.connect(
            acme.add_to_url(server.url), inbox_prefix=build_inbox_prefix("acme")
        ) as bot:
            for content, fields in {"nameless": {}, "named": {"id": "m2"}}.items():
                await Stock(bot).say(content, **fields)
                await bury_next(connection)
            async with run_consumers(("persist",), worker):
                await Stock(bot).say("good")
                redriven = await mnemon("dead", "redrive", "--all", "--yes", **environment(operator))
                assert (redriven.code, redriven.out.splitlines()[:1]) == (0, ["2 redriven"]), redriven
                await handled(connection, "persist")
        assert await rows(worker) == [("LOG:3", "good"), ("m2", "named"), ("LOG:1", "nameless")]
        assert await kept(connection) == []
    await server.stop()
