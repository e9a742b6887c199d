"""Scans all users from time to time, so that no message stays unread for longer after a lost trigger."""

import time
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon_consumers.extract.windowing import WindowCutter
from mnemon_infra.database.engine import Database
from mnemon_infra.database.locks import locked_if_free
from mnemon_infra.database.memory.scan_cursor import Round, last_rounds, note, users_beyond
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("extract")

PAGE: Final = 20
"""Users whose messages are cut at a time."""

TICK_SECONDS: Final = 5.0
"""Seconds of work per tick. The database keeps the progress, and the next tick continues from it."""


class PeriodicScan:
    """Scans a tenant's users every `extraction.interval_hours`, whether their conversations rest or not."""

    def __init__(self, database: Database, settings: LiveSettings, cutting: WindowCutter) -> None:
        self._database = database
        self._settings = settings
        self._cutter = cutting

    async def continue_scans(self, connection: Client) -> None:
        """Continue due scans for a few seconds, unless another process does.

        Raises:
            DatabaseUnavailable, nats.errors.Error: the call can be repeated.
        """
        end = time.monotonic() + TICK_SECONDS
        async with locked_if_free(self._database, "extract", "rounds") as is_mine:
            if not is_mine:
                return
            for last in await self._database.read(last_rounds()):
                begun = await self._choose_scan(last)
                while begun is not None and time.monotonic() < end:
                    begun = await self._scan_page(connection, begun)

    async def _choose_scan(self, last: Round) -> Round | None:
        """Return the scan to continue or start; None if none is due."""
        now = datetime.now(UTC)
        of = self._settings.of(last.tenant).extraction
        if not of.enabled:
            return None
        if last.begun_at is None:
            # The first interval of a tenant begins now. Until its end, only new messages cause reading.
            await self._record_progress(Round(last.tenant, now))
            return None
        if last.reached is not None:
            return last
        if last.begun_at + timedelta(hours=of.interval_hours) > now:
            return None
        return Round(last.tenant, now, "")

    async def _scan_page(self, connection: Client, begun: Round) -> Round | None:
        users = await self._database.read(users_beyond(begun.tenant, begun.reached or "", PAGE))
        await self._cutter.cut_users(connection, [(begun.tenant, user) for user in users], rested=True)
        reached = begun._replace(reached=users[-1] if len(users) == PAGE else None)
        await self._record_progress(reached)
        return reached if reached.reached is not None else None

    async def _record_progress(self, reached: Round) -> None:
        async with self._database.transaction() as connection:
            await note(connection, reached)
