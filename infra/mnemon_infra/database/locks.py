"""Advisory locks of PostgreSQL, which exclude each other across all processes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from hashlib import sha256

from sqlalchemy import func, select

from mnemon_infra.database.engine import Connection, Database, Lookup, Statement, make_parameter

_KEY = make_parameter("key", int)
_LOCK = Statement(select(func.pg_advisory_xact_lock(_KEY).is_(None)))
_LOCK_IF_FREE = Lookup(select(func.pg_try_advisory_xact_lock(_KEY)))
# pg_locks shows a key of 64 bits as its two halves.
_HOLDERS = """
    FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
      AND classid = %s::bigint::oid AND objid = %s::bigint::oid
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@asynccontextmanager
async def hold_lock(database: Database, *name_parts: str) -> AsyncIterator[Connection]:
    """Hold a lock for the duration of the block.

    The lock ends with its transaction, and therefore when the process or the database stops. Yields the
    connection that holds it.

    Args:
        database: the database that all contenders use.
        name_parts: the parts of the lock's name, such as a tenant and a user.

    Raises:
        DatabaseUnavailable: the database cannot answer, or another transaction held the lock for longer than
            `STATEMENT_TIMEOUT`.
    """
    async with database.lock_slots, database.transaction() as connection:
        await _LOCK.fetch_row(connection, {"key": _hash_name(name_parts)})
        yield connection


@asynccontextmanager
async def try_lock(database: Database, *name_parts: str) -> AsyncIterator[bool]:
    """Try to take a lock without waiting for its holder, and keep the lock for the duration of the block.

    Yields True if this transaction has the lock, False if another transaction holds it.
    """
    async with database.lock_slots, database.transaction() as connection:
        (is_mine,) = await try_locks(connection, [name_parts])
        yield is_mine


async def try_locks(connection: Connection, names: Sequence[Sequence[str]]) -> list[bool]:
    """Take those of several locks that are free, until the end of the connection's transaction.

    Returns:
        For each lock whether it was taken.
    """
    found = await _LOCK_IF_FREE.fetch_each(connection, [{"key": _hash_name(name)} for name in names])
    return [is_mine for ((is_mine,),) in found]


async def is_locked(database: Database, *name_parts: str) -> bool:
    """Return whether any transaction holds the lock with the name `name_parts` now.

    Unlike an attempt to take the lock, this check never blocks other processes.
    """

    async def query(connection: Connection) -> bool:
        cursor = await connection.execute(f"SELECT EXISTS (SELECT {_HOLDERS})", _split_key(name_parts))
        return await cursor.fetchone() == (True,)

    return await database.run_query(query)


async def find_lock_holder(
    connection: Connection, name_parts: Sequence[str]
) -> tuple[str | None, datetime | None]:
    """Return the name of the connection that holds a lock, and the time at which its transaction began.

    Both are None if no connection holds the lock any more; each is None if the role may not see it.
    """
    cursor = await connection.execute(
        f"SELECT application_name, xact_start {_HOLDERS} LIMIT 1", _split_key(name_parts)
    )
    return await cursor.fetchone() or (None, None)


def _split_key(name_parts: Sequence[str]) -> tuple[int, int]:
    key = _hash_name(name_parts)
    return key >> 32 & 0xFFFFFFFF, key & 0xFFFFFFFF


def _hash_name(name_parts: Sequence[str]) -> int:
    return int.from_bytes(sha256("\0".join(name_parts).encode()).digest()[:8], signed=True)
