"""What is rare among a tenant's texts, for embedding models that weigh the words of a query by it."""

import asyncio
import time
from typing import Final

import structlog
from cachetools import LRUCache

from infra.database.engine import Database, DatabaseUnavailable
from infra.database.sampling import sample
from infra.models.embedding import CorpusStatistics, Embedder, EmbeddingUnavailable

log = structlog.get_logger("search")

KEPT: Final = 300.0
"""Seconds after which a tenant's words are counted anew, when next asked for."""

TENANTS: Final = 1000
"""Whose statistics are kept, those asked for last: 125 KB each at most."""


class Statistics:
    """Statistics of tenants. Nobody waits for them: until they are there, a query does without."""

    def __init__(self, database: Database, embedder: Embedder) -> None:
        self._database = database
        self._embedder = embedder
        self._known: LRUCache[str, CorpusStatistics | None] = LRUCache(TENANTS)
        self._due: LRUCache[str, float] = LRUCache(TENANTS)
        self._counting: set[asyncio.Task[None]] = set()

    def of(self, tenant: str) -> CorpusStatistics | None:
        """What is known now; begins to count when that is old."""
        if time.monotonic() >= self._due.get(tenant, 0.0):
            self._due[tenant] = time.monotonic() + KEPT
            task = asyncio.create_task(self.count(tenant))
            self._counting.add(task)
            task.add_done_callback(self._counting.discard)
        return self._known.get(tenant)

    def renew(self) -> None:
        """Count the words of each tenant anew when it is next asked for."""
        self._due.clear()

    async def count(self, tenant: str) -> None:
        """Count a tenant's words."""
        try:
            (texts,) = await self._database.read(sample([tenant]))
            self._known[tenant] = await self._embedder.statistics(texts)
        except (DatabaseUnavailable, EmbeddingUnavailable) as error:
            log.warning("words are not counted", tenant=tenant, error=str(error))
