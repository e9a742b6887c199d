"""Collects windows of many users and tenants into batches, each for one model and one set of instructions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

import structlog

from mnemon_consumers.extract.online_requests import OnlineRequester
from mnemon_contracts.settings.language_models import Provider
from mnemon_infra.database.engine import Database
from mnemon_infra.database.locks import try_lock
from mnemon_infra.database.windows.batches import StoredBatch, insert_batch
from mnemon_infra.database.windows.pending import (
    WaitingWindows,
    count_waiting_windows,
    lock_windows_for_batch,
)
from mnemon_infra.database.windows.window_repository import StoredWindow, assign_to_batch
from mnemon_infra.models.language.circuit_breaker import CircuitBreaker
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("extract")

MOST_LINES: Final = 10_000
"""Maximum number of lines of a batch, even if the provider accepts more: submission holds them in memory."""


@dataclass(slots=True)
class _Pool:
    """Windows that may share a batch.

    Attributes:
        most: maximum number of lines of the batch.
        tenants: for each tenant, the number of its windows and the time since which the first is due.
        is_due: whether a window of at least one tenant has waited `pool_seconds` or longer.
    """

    provider: Provider
    model: str
    most: int
    tenants: list[WaitingWindows] = field(default_factory=list)
    is_due: bool = False

    @property
    def window_count(self) -> int:
        return sum(each.number for each in self.tenants)


class BatchAssembler:
    """Claims due windows for batches."""

    def __init__(
        self,
        database: Database,
        settings: LiveSettings,
        circuit_breaker: CircuitBreaker,
        online_requests: OnlineRequester,
    ) -> None:
        self._database = database
        self._settings = settings
        self._circuit_breaker = circuit_breaker
        self._online_requests = online_requests

    async def claim_batches(self) -> None:
        """Claim a batch from each pool that is full, or of which a window has waited `pool_seconds`.

        A pool has the due windows of all tenants that use batches of the same model and the same
        instructions.

        Only one process claims at a time; in other processes the call returns at once.

        Raises:
            DatabaseUnavailable: the database does not answer. The call can be repeated.
        """
        async with try_lock(self._database, "extract", "pool") as is_mine:
            if not is_mine:
                return
            now = datetime.now(UTC)
            for pool in await self._collect_pools(now):
                if pool.is_due or pool.window_count >= pool.most:
                    await self._claim_pool(pool, now)

    async def _collect_pools(self, now: datetime) -> list[_Pool]:
        pools: dict[tuple[str, str, str | None], _Pool] = {}
        for waiting in await self._database.run_query(count_waiting_windows(now, MOST_LINES)):
            if await self._online_requests.selects_all_windows(waiting.tenant) is not False:
                continue
            of = self._settings.get_settings(waiting.tenant).extraction
            model = await self._circuit_breaker.open_model(of.provider, of.model)
            if model is None or model.batches is None:
                continue
            same = of.provider, model.model, of.instructions
            most = min(model.batches.most_lines, MOST_LINES)
            pool = pools.setdefault(same, _Pool(of.provider, model.model, most))
            pool.tenants.append(waiting)
            pool.is_due |= waiting.since + timedelta(seconds=of.pool_seconds) <= now
        return list(pools.values())

    async def _claim_pool(self, pool: _Pool, now: datetime) -> None:
        batch_id = uuid4().hex
        taken: list[StoredWindow] = []
        async with self._database.transaction() as connection:
            for waiting in sorted(pool.tenants, key=lambda each: each.since):
                room = pool.most - len(taken)
                if room > 0:
                    taken += await lock_windows_for_batch(connection, waiting.tenant, now, room)
            if not taken:
                return
            held = [window._replace(line=line) for line, window in enumerate(sorted(taken))]
            await insert_batch(connection, self._build_batch(batch_id, pool, held, now))
            await assign_to_batch(connection, batch_id, held)
        log.info("batch claimed", batch=batch_id, lines=len(held), model=pool.model)

    def _build_batch(
        self, batch_id: str, pool: _Pool, windows: Sequence[StoredWindow], now: datetime
    ) -> StoredBatch:
        hours = min(
            self._settings.get_settings(tenant).extraction.deadline_hours
            for tenant in {each.tenant for each in windows}
        )
        return StoredBatch(
            batch_id=batch_id,
            provider=pool.provider,
            model=pool.model,
            state="claimed",
            provider_batch_id=None,
            lines=len(windows),
            created_at=now,
            changed_at=now,
            deadline_at=now + timedelta(hours=hours),
        )
