"""One at a time, over all processes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256

from sqlalchemy import BigInteger, bindparam, func, select

from infra.database.engine import Database, Statement

_LOCK = Statement(select(func.pg_advisory_xact_lock(bindparam("key", type_=BigInteger)).is_(None)))


@asynccontextmanager
async def locked(database: Database, *of: str) -> AsyncIterator[None]:
    """Hold a lock as long as the block lasts; it ends with its process, or with the database.

    Args:
        database: where all who want it look.
        of: what is locked, such as a tenant and a user.

    Raises:
        DatabaseUnavailable: the database cannot answer, or somebody else held the lock for too long.
    """
    key = int.from_bytes(sha256("\0".join(of).encode()).digest()[:8], signed=True)
    async with database.lock_places, database.transaction() as connection:
        await _LOCK.row(connection, {"key": key})
        yield
