"""Retention: removes finished work that is older than the settings allow, a limited number at a time."""

from contextlib import aclosing
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Literal

import structlog
from nats.aio.client import Client

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.dead_letters.listing import LetterFilter, read_letters, remove_message
from mnemon_infra.broker.dead_letters.redrive import drop_letter
from mnemon_infra.database.engine import Database
from mnemon_infra.database.projections.row_positions import is_applied
from mnemon_infra.database.tables import model_calls, windows
from mnemon_infra.database.windows.retention import (
    delete_answered_windows,
    delete_calls,
    delete_finished_batches,
    has_next_generation,
    list_old_calls,
    list_tenants_of,
)
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("maintain")

MOST_WINDOWS: Final = 5_000
"""Maximum number of windows, and of batches, that one round deletes."""

MOST_MESSAGES: Final = 100
"""Maximum number of calls, and of dead letters, that one round removes. The server overwrites each message,
in 5 to 20 ms."""

BATCH_AGE: Final = timedelta(minutes=10)
"""Minimum time for which a batch stays after its end, even if its windows and events are gone."""

SettingName = Literal["window_days", "model_call_days", "dead_letter_days"]


class RetentionEnforcer:
    """Removes windows, batches, calls of language models and dead letters by the settings `retention`."""

    def __init__(self, database: Database, settings: LiveSettings) -> None:
        self._database = database
        self._settings = settings

    async def remove_old_work(self, connection: Client, now: datetime) -> bool:
        """Remove one round of finished work, up to a limit of each kind; return whether more may be left.

        Raises:
            DatabaseUnavailable, nats.errors.Error: PostgreSQL or NATS does not answer. The call can be
                repeated.
        """
        removed = {
            "windows": await self._remove_windows(now),
            "batches": await delete_finished_batches(self._database, now - BATCH_AGE, MOST_WINDOWS),
            "model_calls": await self._remove_calls(connection, now),
            "dead_letters": await self._remove_dead_letters(connection, now),
        }
        if any(removed.values()):
            log.info("finished work removed", **removed)
        return (
            max(removed["windows"], removed["batches"]) >= MOST_WINDOWS
            or removed["model_calls"] >= MOST_MESSAGES
            or removed["dead_letters"] >= MOST_MESSAGES
        )

    def _find_cutoff(self, name: SettingName, tenant: str, now: datetime) -> datetime | None:
        """Return the moment before which a tenant's finished work is removed; None if the work stays.

        Calls and dead letters of a tenant stay until its move has ended, because the move, and its revert,
        compare the events and rows of both deployments.
        """
        residence = self._settings.get_residence(tenant)
        if name != "window_days" and residence is not None and not residence.is_ended:
            return None
        days = getattr(self._settings.get_settings(tenant).retention, name)
        return None if days is None else now - timedelta(days=days)

    async def _remove_windows(self, now: datetime) -> int:
        removed = 0
        for tenant in await self._database.run_query(list_tenants_of(windows)):
            cutoff = self._find_cutoff("window_days", tenant, now)
            if cutoff is not None and removed < MOST_WINDOWS:
                removed += await delete_answered_windows(
                    self._database, tenant, cutoff, MOST_WINDOWS - removed
                )
        return removed

    async def _remove_calls(self, connection: Client, now: datetime) -> int:
        """Remove calls from the log, then their rows; return the number of calls.

        If the process is killed in between, the rows lead the next round to the same calls.
        """
        if await self._database.run_query(has_next_generation()):
            return 0  # a rebuild may have copied the row of a call, and would bring it back
        removed = 0
        for tenant in await self._database.run_query(list_tenants_of(model_calls)):
            cutoff = self._find_cutoff("model_call_days", tenant, now)
            if cutoff is None or removed >= MOST_MESSAGES:
                continue
            calls = await self._database.run_query(list_old_calls(tenant, cutoff, MOST_MESSAGES - removed))
            for call in calls:
                await remove_message(connection, LOG, call.seq)
            await delete_calls(self._database, calls)
            removed += len(calls)
        return removed

    async def _remove_dead_letters(self, connection: Client, now: datetime) -> int:
        ages = [each.retention.dead_letter_days for each in self._settings.list_settings()]
        shortest = min((age for age in ages if age is not None), default=None)
        if shortest is None:
            return 0
        removed = 0
        async with aclosing(read_letters(connection, LetterFilter())) as letters:
            async for letter in letters:
                if letter.at >= now - timedelta(days=shortest) or removed >= MOST_MESSAGES:
                    break
                tenant, _ = letter.owner or ("", "")
                cutoff = self._find_cutoff("dead_letter_days", tenant, now)
                if cutoff is not None and letter.at < cutoff:
                    await drop_letter(connection, letter, partial(is_applied, self._database))
                    removed += 1
        return removed
