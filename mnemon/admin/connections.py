"""What the pages read and ask: one connection to each server, opened when the first page needs it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from nats.aio.client import Client

from mnemon_infra.broker.connection import BrokerUnreachable, connect
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_producers.client import MemoryClient


class Parts:
    """The servers of a deployment, as the pages need them.

    Args:
        deployment: which servers.
        data: the folder that they keep their data in, where they are those of `mnemon up`.
    """

    def __init__(self, deployment: Deployment, data: Path | None = None) -> None:
        self.deployment = deployment
        self.data = data
        self._ends = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._connection: Client | None = None
        self._database: Database | None = None

    @asynccontextmanager
    async def used(self) -> AsyncIterator["Parts"]:
        """Close at the end of the block what was opened in it."""
        async with self._ends:
            yield self

    async def broker(self) -> Client:
        """The connection to NATS. Once it stands it is restored without end.

        Raises:
            BrokerUnreachable: no server answers, or it has gone and is not back yet.
        """
        async with self._lock:
            if self._connection is None:
                if self.deployment.nats_url is None:
                    raise BrokerUnreachable("no NATS server is configured: set MNEMON_NATS_URL")
                connection = await connect(self.deployment.nats_url, name="mnemon-admin")
                self._connection = await self._ends.enter_async_context(connection)
        if not self._connection.is_connected:
            raise BrokerUnreachable("the NATS server does not answer; it is tried again and again")
        return self._connection

    async def database(self) -> Database:
        """The database.

        Raises:
            DatabaseUnavailable: it does not answer, or is not migrated.
            mnemon_infra.database.engine.DatabaseNotConfigured: there is no address of one.
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

    async def memory(self, tenant: str) -> MemoryClient:
        """What a bot of the tenant has: questions, and changes of a user's memory.

        Raises:
            BrokerUnreachable: as `broker` does.
            mnemon_contracts.subjects.InvalidId: there can be no such tenant.
        """
        return MemoryClient(await self.broker(), tenant=tenant)
