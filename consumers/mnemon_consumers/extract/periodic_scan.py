"""Periodic scan of all users, which cuts new messages into windows, even if their trigger was lost."""

import time
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon_consumers.extract.windowing import WindowCutter
from mnemon_infra.database.engine import Database
from mnemon_infra.database.locks import try_lock
from mnemon_infra.database.memory.scan_cursor import TenantScan, list_users_after, load_scans, record_scan
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("extract")

PAGE: Final = 20
"""Number of users whose messages are cut at a time."""

TICK_SECONDS: Final = 5.0
"""Seconds of scanning after each periodic trigger. The database keeps the progress, and the next trigger
continues from it."""


class PeriodicScan:
    """Scan that cuts the new messages of each tenant's users into windows every `extraction.interval_hours`.

    The conversations of the users need not be idle.
    """

    def __init__(self, database: Database, settings: LiveSettings, cutter: WindowCutter) -> None:
        self._database = database
        self._settings = settings
        self._cutter = cutter

    async def continue_scans(self, connection: Client) -> None:
        """Start or continue due scans for up to `TICK_SECONDS`, unless another process is scanning.

        Raises:
            DatabaseUnavailable, nats.errors.Error: PostgreSQL or NATS does not answer. The call can be
                repeated.
        """
        end = time.monotonic() + TICK_SECONDS
        async with try_lock(self._database, "extract", "rounds") as is_mine:
            if not is_mine:
                return
            for last in await self._database.run_query(load_scans()):
                begun = await self._choose_scan(last)
                while begun is not None and time.monotonic() < end:
                    begun = await self._scan_page(connection, begun)

    async def _choose_scan(self, last: TenantScan) -> TenantScan | None:
        """Return the scan to continue or start; None if no scan is due.

        `last` is the last scan of a tenant. The first call for a tenant only records that the tenant's first
        interval begins.
        """
        now = datetime.now(UTC)
        of = self._settings.get_settings(last.tenant).extraction
        if not of.enabled:
            return None
        if last.begun_at is None:
            # The first interval of a tenant begins now. Before its end, only triggers cause reading.
            await self._record_progress(TenantScan(last.tenant, now))
            return None
        if last.reached is not None:
            return last
        if last.begun_at + timedelta(hours=of.interval_hours) > now:
            return None
        return TenantScan(last.tenant, now, "")

    async def _scan_page(self, connection: Client, begun: TenantScan) -> TenantScan | None:
        users = await self._database.run_query(list_users_after(begun.tenant, begun.reached or "", PAGE))
        await self._cutter.cut_messages(connection, [(begun.tenant, user) for user in users], all_due=True)
        reached = begun._replace(reached=users[-1] if len(users) == PAGE else None)
        await self._record_progress(reached)
        return reached if reached.reached is not None else None

    async def _record_progress(self, reached: TenantScan) -> None:
        async with self._database.transaction() as connection:
            await record_scan(connection, reached)
