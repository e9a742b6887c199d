"""What a tenant may still spend today."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from weakref import WeakSet

import structlog

from mnemon_infra.database.engine import Database
from mnemon_infra.database.windows.spending import reserved_in_batches, spent_since
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.telemetry.metrics import BUDGET_USED, BUDGETS_SPENT

log = structlog.get_logger("spending")

REMEMBERED: Final = timedelta(seconds=5)
"""How long the answer of the database serves: other processes spend too."""


_kept: WeakSet["Budgets"] = WeakSet()


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class _Spent:
    """What is known of a tenant's day; it only grows: what persist has yet to write is not forgotten.

    Attributes:
        usd: what answered calls cost.
        reserved: what calls may cost that this process is about to make, or waits for.
        in_batches: what lines of batches may cost that are not over, of all processes.
    """

    usd: float = 0.0
    reserved: float = 0.0
    in_batches: float = 0.0
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

    async def left(self, tenant: str, *, is_reserved: bool = False) -> bool:
        """Whether a tenant may ask a model now. One that may not is named in the log, once a day.

        What is under way counts as if it had been answered, at length.

        Args:
            tenant: who asks.
            is_reserved: what is to be asked counts already as under way.

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
        under_way = 0.0 if is_reserved else spent.reserved + spent.in_batches
        if spent.usd + under_way < limit:
            return True
        if spent.usd >= limit and not spent.is_told:
            spent.is_told = True
            log.warning(
                "budget spent, models paused until tomorrow",
                tenant=tenant,
                usd=round(spent.usd, 6),
                usd_per_day=limit,
            )
        return False

    @contextmanager
    def reserving(self) -> Iterator["Reservations"]:
        """Have calls count from before they are made to the end of the block."""
        reservations = Reservations(self)
        try:
            yield reservations
        finally:
            reservations.release()

    def reserve(self, tenant: str, usd: float) -> Callable[[], None]:
        """Count what a call may cost; returns what ends that."""
        spent = self._today(tenant)
        spent.reserved += usd

        def release() -> None:
            spent.reserved -= usd

        return release

    def is_limited(self, tenant: str) -> bool:
        """Whether a tenant has a budget."""
        return self._settings.of(tenant).spending.usd_per_day is not None

    def look_again(self) -> None:
        """Ask the database anew: it has what batches may cost now."""
        for spent in self._tenants.values():
            spent.asked_at = None

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
        spent.in_batches = await self._database.read(reserved_in_batches(tenant))
        spent.usd, spent.asked_at = max(spent.usd, stored), self._now()

    def _today(self, tenant: str) -> _Spent:
        self._begin_day()
        return self._tenants.setdefault(tenant, _Spent())

    def _begin_day(self) -> None:
        midnight = self._now().replace(hour=0, minute=0, second=0, microsecond=0)
        if midnight != self._midnight:
            self._midnight = midnight
            self._tenants.clear()


class Reservations:
    """Calls that count before they are made, until they are released together."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._releases: list[Callable[[], None]] = []

    async def admit(self, tenant: str, usd: float) -> bool:
        """Whether a call that may cost so much may be made; from now on it counts.

        Raises:
            DatabaseUnavailable: there is a limit, and it cannot be said what was spent.
        """
        if not await self._budgets.left(tenant):
            return False
        self._releases.append(self._budgets.reserve(tenant, usd))
        return True

    def release(self) -> None:
        """Have them count no more: what was answered is spent."""
        while self._releases:
            self._releases.pop()()
