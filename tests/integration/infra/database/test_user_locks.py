"""Locks of users: one holder at a time, and connections left for the holders' queries."""

import asyncio

import psycopg

from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Connection, Database
from mnemon_infra.database.locks import hold_lock, is_locked


async def _one(connection: Connection) -> int:
    row = await (await connection.execute("SELECT 1")).fetchone()
    assert row is not None
    return int(row[0])


async def test_holders_of_locks_leave_connections_for_their_queries(database_url: str) -> None:
    database = Database(Deployment(database_dsn=database_url, pg_pool_max=4))
    await database._pool.open()
    holding = asyncio.Barrier(2)

    async def hold(user: int) -> int:
        async with hold_lock(database, "acme", f"u{user}"):
            await holding.wait()  # two holders hold their locks
            return await database.run_query(_one)

    assert await asyncio.gather(*(hold(user) for user in range(16))) == [1] * 16
    await database.close()


async def test_one_connection_would_be_too_few_to_hold_a_lock(database_url: str) -> None:
    database = Database(Deployment(database_dsn=database_url, pg_pool_min=0, pg_pool_max=1))
    await database._pool.open()
    async with hold_lock(database, "acme", "u1"):
        assert await database.run_query(_one) == 1
    await database.close()


async def test_a_lock_is_seen_without_taking_it(database_url: str) -> None:
    database = Database(Deployment(database_dsn=database_url, pg_pool_max=4))
    await database._pool.open()
    for user in ("u1", "u5"):  # whose keys differ in sign
        async with hold_lock(database, "seen", user):
            assert await is_locked(database, "seen", user)
            assert not await is_locked(database, "seen", "u3")
        assert not await is_locked(database, "seen", user)
    await database.close()


async def test_a_lock_is_held_beyond_the_idle_timeout_of_the_server(database_url: str) -> None:
    database = Database(Deployment(database_dsn=database_url, pg_pool_max=4))
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as operator:
        await operator.execute("ALTER DATABASE mnemon SET idle_in_transaction_session_timeout = '100ms'")
        try:
            await database._pool.open()
            async with hold_lock(database, "acme", "u1") as lock:
                await operator.execute("SELECT pg_sleep(0.5)")
                assert await _one(lock) == 1
        finally:
            await operator.execute("ALTER DATABASE mnemon RESET idle_in_transaction_session_timeout")
            await database.close()
