"""Leases: one holder at a time, named in the error for others; a lease ends with its holder."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from mnemon_infra.config import Deployment
from mnemon_infra.database import lease
from mnemon_infra.database.engine import Connection, Database, DatabaseUnavailable
from mnemon_infra.database.lease import LeaseHeld, LeaseLost, hold_lease


@asynccontextmanager
async def open_database(url: str, schema: str = "public") -> AsyncIterator[Database]:
    database = Database(Deployment(database_dsn=url, database_schema=schema, pg_pool_max=4))
    await database._pool.open()
    try:
        yield database
    finally:
        await database.close()


async def test_second_holder_learns_who_holds_the_lease_and_since_when(database_url: str) -> None:
    async with open_database(database_url) as first, open_database(database_url) as second:
        begun = datetime.now(UTC)
        async with hold_lease(first, "move", "t1"):
            with pytest.raises(LeaseHeld) as held:
                async with hold_lease(second, "move", "t1"):
                    pytest.fail("two hold it")
            assert held.value.holder == f"process {os.getpid()} on {socket.gethostname()}"
            assert held.value.since
            assert abs(held.value.since - begun) < timedelta(minutes=1)
            async with hold_lease(second, "move", "t2"):
                pass
        async with hold_lease(second, "move", "t1"):
            pass


async def test_leases_in_two_schemas_do_not_exclude_each_other(database_url: str) -> None:
    async with (
        open_database(database_url, "one") as first,
        open_database(database_url, "two") as second,
        hold_lease(first, "move", "t3"),
        hold_lease(second, "move", "t3"),
    ):
        pass


async def test_block_is_cancelled_when_the_lease_is_lost(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEWALS", 300)

    async def end_holder(connection: Connection) -> None:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)"
            " WHERE locktype = 'advisory' AND granted AND application_name = %s",
            (lease._describe_process(),),
        )

    async with open_database(database_url) as first, open_database(database_url) as second:

        async def hold_until_cancelled() -> None:
            async with hold_lease(first, "move", "t4"):
                await second.run_query(end_holder)
                await asyncio.Event().wait()

        with pytest.raises(LeaseLost, match=r"lost its lease on move t4, .*: run the command again"):
            await hold_until_cancelled()
        async with hold_lease(first, "move", "t4"):
            pass


async def test_lease_of_a_holder_that_does_not_renew_it_ends(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_database(database_url) as first, open_database(database_url) as second:
        has_ended = False
        monkeypatch.setattr(lease, "LEASE_SECONDS", 0.5)
        monkeypatch.setattr(lease, "RENEWALS", 1e-6)

        async def hold_without_renewal() -> None:
            nonlocal has_ended
            async with hold_lease(first, "move", "t5"):
                monkeypatch.undo()
                await wait_for_lease(second, "move", "t5")
                has_ended = True

        with pytest.raises(DatabaseUnavailable):  # no connection is left for the commit
            await hold_without_renewal()
        assert has_ended, "the block begins, and its lease ends"


async def wait_for_lease(database: Database, *of: str) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                async with hold_lease(database, *of):
                    return
            except LeaseHeld:
                await asyncio.sleep(0.05)
