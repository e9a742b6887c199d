"""Size of the connection pool, as configured; the address is given in parts."""

import asyncio
from uuid import uuid4

import pytest
from sqlalchemy.engine import make_url

from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Connection, Database, DatabaseUnavailable
from mnemon_infra.database.migration import migrate_schema


async def _named(connection: Connection) -> int:
    """Return the number of connections that the server has with the name of this pool."""
    found = await connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = current_setting('application_name')"
    )
    row = await found.fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.long
async def test_as_many_connections_as_configured_are_kept_and_no_more_are_made(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_url(database_url)
    parts = {"PG_HOST": url.host or str(url.query["host"]), "PG_PORT": url.port, "PG_DB": url.database}
    parts |= {"PG_USER": url.username, "PG_PASSWORD": url.password}
    for name, value in parts.items():
        if value is not None:
            monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("MNEMON_PG_POOL_MIN", "2")
    monkeypatch.setenv("MNEMON_PG_POOL_MAX", "3")
    deployment = Deployment(database_schema=f"test_{uuid4().hex[:12]}")
    assert deployment.database_url is not None
    migrate_schema(deployment.database_url, deployment.database_schema)

    async with Database(deployment, name=f"pool-{uuid4().hex[:8]}") as database:
        await database._pool.wait()
        assert await database.run_query(_named) == 2
        held, release = asyncio.Semaphore(0), asyncio.Event()

        async def hold() -> None:
            async with database.transaction():
                held.release()
                await release.wait()

        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(hold())
            for _ in range(3):
                await held.acquire()
            with pytest.raises(DatabaseUnavailable):
                await database.run_query(_named)
            release.set()
        assert await database.run_query(_named) == 3
