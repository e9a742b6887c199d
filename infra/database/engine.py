"""The connection pool, and what database errors mean to a caller."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from infra.config import Deployment

Value = TypeVar("Value")
Query = Callable[[AsyncConnection], Awaitable[Value]]
"""Something to be read on a connection."""


class DatabaseUnavailable(Exception):
    """Not now: no connection, a deadlock, a time-out, a server that restarts. The same may work later."""


class DatabaseRefused(Exception):
    """Never: the values cannot be stored. The same will fail again."""


class DatabaseNotConfigured(Exception):
    """Neither DATABASE_URL nor PG_HOST is set."""


class Database:
    """A pool of connections to one generation of the projections (one schema)."""

    def __init__(self, deployment: Deployment, *, name: str = "mnemon") -> None:
        if deployment.database_url is None:
            raise DatabaseNotConfigured("set DATABASE_URL, or PG_HOST and its companions")
        self._engine: AsyncEngine = create_async_engine(
            deployment.database_url,
            pool_size=max(deployment.pg_pool_min, 1),
            max_overflow=max(deployment.pg_pool_max - max(deployment.pg_pool_min, 1), 0),
            pool_timeout=10,
            pool_use_lifo=True,
            connect_args={
                "connect_timeout": 5,
                "application_name": name,
                "options": f"-csearch_path={deployment.database_schema} -cstatement_timeout=10s -cjit=off",
            },
        )

        self._reading = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """A connection in a transaction, committed at the end of the block.

        Raises:
            DatabaseUnavailable: the database cannot do it now.
            DatabaseRefused: the database will never take these values.
        """
        try:
            async with self._engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise _meaning(error) from error
        except (NoConnectionFree, OSError) as error:
            raise DatabaseUnavailable(str(error)) from error

    async def read(self, query: Query[Value]) -> Value:
        """What a query finds.

        Raises:
            DatabaseUnavailable: the database cannot answer now.
        """
        try:
            try:
                return await self._read(query)
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                # The connection was from before a restart of the database; the pool has new ones now.
                return await self._read(query)
        except DBAPIError as error:
            raise DatabaseUnavailable(_said(error)) from error
        except (NoConnectionFree, OSError) as error:
            raise DatabaseUnavailable(str(error)) from error

    async def _read(self, query: Query[Value]) -> Value:
        async with self._reading.connect() as connection:
            return await query(connection)

    async def warm(self) -> None:
        """Open the first connection.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        await self.read(_nothing)

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.dispose()


# https://www.postgresql.org/docs/current/errcodes-appendix.html: class 22 is a value that a type cannot
# hold, 23 a broken constraint, 54 a program limit (an index row too long, nesting too deep).
_VALUES = ("22", "23", "54")


def _meaning(error: DBAPIError) -> DatabaseUnavailable | DatabaseRefused:
    state: str = getattr(error.orig, "sqlstate", None) or ""
    return DatabaseRefused(_said(error)) if state.startswith(_VALUES) else DatabaseUnavailable(_said(error))


def _said(error: DBAPIError) -> str:
    return str(error.orig).partition("\n")[0]


async def _nothing(connection: AsyncConnection) -> None:
    await connection.exec_driver_sql("SELECT 1")
