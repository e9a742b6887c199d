"""What a tenant may still spend today."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from weakref import WeakSet

import structlog

from infra.database.engine import Database
from infra.database.spending import spent_since
from infra.settings.store import LiveSettings
from infra.telemetry.metrics import BUDGET_USED, BUDGETS_SPENT

log = structlog.get_logger("spending")

REMEMBERED: Final = timedelta(seconds=5)
"""How long the answer of the database serves: other processes spend too."""


_kept: WeakSet["Budgets"] = WeakSet()


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class _Spent:
    """What is known of a tenant's day; it only grows: what persist has yet to write is not forgotten."""

    usd: float = 0.0
    asked_at: datetime | None = None
    is_told: bool = False
    asking: asyncio.Task[None] | None = None


def measure() -> None:
    """Say how much is used of the budgets that this process looks after."""
    shares: dict[str, float] = {}
    for budgets in _kept:
        for tenant, share in budgets.shares().items():
            shares[tenant] = max(share, shares.get(tenant, 0.0))
    BUDGET_USED.set(max(shares.values(), default=0.0))
    BUDGETS_SPENT.set(sum(share >= 1 for share in shares.values()))


class Budgets:
    """Which tenants may still ask models today, in UTC. The limit is the setting `spending.usd_per_day`."""

    def __init__(
        self, database: Database, settings: LiveSettings, now: Callable[[], datetime] = _now
    ) -> None:
        self._database = database
        self._settings = settings
        self._now = now
        self._midnight = datetime.min.replace(tzinfo=UTC)
        self._tenants: dict[str, _Spent] = {}
        _kept.add(self)

    async def left(self, tenant: str) -> bool:
        """Whether a tenant may ask a model now. One that may not is named in the log, once a day.

        Raises:
            DatabaseUnavailable: there is a limit, and it cannot be said what was spent.
        """
        limit = self._settings.of(tenant).spending.usd_per_day
        if limit is None:
            return True
        spent = self._today(tenant)
        if spent.asked_at is None or self._now() - spent.asked_at >= REMEMBERED:
            # Who asks at the same time has the same answer, or the same error.
            if spent.asking is None or spent.asking.done():
                spent.asking = asyncio.create_task(self._ask(tenant, spent))
            await asyncio.shield(spent.asking)
        if spent.usd < limit:
            return True
        if not spent.is_told:
            spent.is_told = True
            log.warning(
                "a tenant has spent its budget; models are asked again tomorrow",
                tenant=tenant,
                usd=round(spent.usd, 6),
                usd_per_day=limit,
            )
        return False

    def spent(self, tenant: str, usd: float | None) -> None:
        """Count at once what this process spends; the log brings it to the others."""
        self._today(tenant).usd += usd or 0.0

    def shares(self) -> dict[str, float]:
        """Of each tenant that has a budget and asked for a model today, the share that is used."""
        self._begin_day()
        limits = {tenant: self._settings.of(tenant).spending.usd_per_day for tenant in self._tenants}
        return {
            tenant: self._tenants[tenant].usd / limit if limit else 1.0
            for tenant, limit in limits.items()
            if limit is not None
        }

    async def _ask(self, tenant: str, spent: _Spent) -> None:
        stored = await self._database.read(spent_since(tenant, self._midnight))
        spent.usd, spent.asked_at = max(spent.usd, stored), self._now()

    def _today(self, tenant: str) -> _Spent:
        self._begin_day()
        return self._tenants.setdefault(tenant, _Spent())

    def _begin_day(self) -> None:
        midnight = self._now().replace(hour=0, minute=0, second=0, microsecond=0)
        if midnight != self._midnight:
            self._midnight = midnight
            self._tenants.clear()
