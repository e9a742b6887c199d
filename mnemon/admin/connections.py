"""Connections of the pages to NATS and PostgreSQL, each opened when a page first needs it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from nats.aio.client import Client

from mnemon_infra.broker.connection import BrokerUnreachable, connect_deployment
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable


class ServerConnections:
    """Connections to the servers of a deployment.

    `data` is the folder of the servers if `mnemon up` runs them; otherwise None.
    """

    def __init__(self, deployment: Deployment, data: Path | None = None) -> None:
        self.deployment = deployment
        self.data = data
        self._ends = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._connection: Client | None = None
        self._database: Database | None = None

    @asynccontextmanager
    async def close_at_end(self) -> AsyncIterator["ServerConnections"]:
        """Close all connections at the end of the block."""
        async with self._ends:
            yield self

    async def get_broker(self) -> Client:
        """Return the connection to NATS, which reconnects without limit while it is open.

        If the connection was closed, for example after a change of the password, open a new one.

        Raises:
            BrokerUnreachable: no server answers, or the connection is lost and not restored yet.
        """
        async with self._lock:
            if self._connection is None or self._connection.is_closed:
                connection = await connect_deployment(self.deployment, name="mnemon-admin")
                self._connection = await self._ends.enter_async_context(connection)
        if not self._connection.is_connected:
            raise BrokerUnreachable(
                "the NATS server does not answer, and mnemon tries to reconnect; check that the server runs"
            )
        return self._connection

    async def get_database(self) -> Database:
        """Return the database, which the first call opens.

        Raises:
            DatabaseUnavailable: the database does not answer, or is not migrated.
            mnemon_infra.database.engine.DatabaseNotConfigured: no address of a database is configured.
        """
        async with self._lock:
            if self._database is None:
                small = self.deployment.model_copy(update={"pg_pool_min": 0, "pg_pool_max": 4})
                database = Database(small, name="mnemon-admin")
                try:
                    await self._ends.enter_async_context(database)
                except DatabaseUnavailable:
                    await database.close()
                    raise
                self._database = database
        return self._database
