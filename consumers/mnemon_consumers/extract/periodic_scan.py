"""Scans all users from time to time, so that no message stays unread for longer after a lost trigger."""

import time
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon_consumers.extract.windowing import Cutting
from mnemon_infra.database.engine import Database
from mnemon_infra.database.locks import try_lock
from mnemon_infra.database.memory.scan_cursor import TenantScan, list_users_after, load_scans, record_scan
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("extract")

PAGE: Final = 20
"""Users whose messages are cut at a time."""

LONGEST: Final = 5.0
"""Seconds of work per tick. The database keeps the progress, and the next tick continues from it."""


class Interval:
    """Scans a tenant's users every `extraction.interval_hours`, whether their conversations rest or not."""

    def __init__(self, database: Database, settings: LiveSettings, cutting: Cutting) -> None:
        self._database = database
        self._settings = settings
        self._cutting = cutting

    async def tick(self, connection: Client) -> None:
        """Continue due scans for a few seconds, unless another process does.

        Raises:
            DatabaseUnavailable, nats.errors.Error: the call can be repeated.
        """
        end = time.monotonic() + LONGEST
        async with try_lock(self._database, "extract", "rounds") as is_mine:
            if not is_mine:
                return
            for last in await self._database.run_query(load_scans()):
                begun = await self._begun(last)
                while begun is not None and time.monotonic() < end:
                    begun = await self._go_on(connection, begun)

    async def _begun(self, last: TenantScan) -> TenantScan | None:
        """Return the scan to continue or start; None if none is due."""
        now = datetime.now(UTC)
        of = self._settings.of(last.tenant).extraction
        if not of.enabled:
            return None
        if last.begun_at is None:
            # The first interval of a tenant begins now. Until its end, only new messages cause reading.
            await self._note(TenantScan(last.tenant, now))
            return None
        if last.reached is not None:
            return last
        if last.begun_at + timedelta(hours=of.interval_hours) > now:
            return None
        return TenantScan(last.tenant, now, "")

    async def _go_on(self, connection: Client, begun: TenantScan) -> TenantScan | None:
        users = await self._database.run_query(list_users_after(begun.tenant, begun.reached or "", PAGE))
        await self._cutting.cut(connection, [(begun.tenant, user) for user in users], rested=True)
        reached = begun._replace(reached=users[-1] if len(users) == PAGE else None)
        await self._note(reached)
        return reached if reached.reached is not None else None

    async def _note(self, reached: TenantScan) -> None:
        async with self._database.transaction() as connection:
            await record_scan(connection, reached)
