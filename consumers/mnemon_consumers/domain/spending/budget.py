"""Daily budgets, which limit the spending of a tenant on language models.

Requests of clients that the proxy passes on do not count.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from weakref import WeakSet

import structlog

from mnemon_infra.database.engine import Database
from mnemon_infra.database.windows.spending import sum_reserved, sum_spending
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.telemetry.metrics import BUDGET_USED, BUDGETS_SPENT

log = structlog.get_logger("spending")

CACHED_TENANTS: Final = timedelta(seconds=5)
"""Time for which a tenant's spending is cached. Then it is read again, because other processes spend too."""


_instances: WeakSet["Budgets"] = WeakSet()
"""The budgets that this process uses, for the metrics."""


def _read_clock() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class _DaySpending:
    """Spending of a tenant on one day.

    A reading from the database never lowers `usd`, so calls that `persist` has not written yet count. Amounts
    are in US dollars.

    Attributes:
        usd: cost of answered calls.
        reserved: possible cost of reserved calls, which are about to be made or wait for their answer.
        in_batches: possible cost of lines of unfinished batches, of all processes.
        read_at: the time of the last reading; None if the next check must read.
        is_logged: whether the warning about the spent budget was logged.
        reading: task of the current or last reading; callers at the same time wait for the same task.
    """

    usd: float = 0.0
    reserved: float = 0.0
    in_batches: float = 0.0
    read_at: datetime | None = None
    is_logged: bool = False
    reading: asyncio.Task[None] | None = None


def measure_spending() -> None:
    """Set the metrics of this process's budgets: the largest used share, and the number of spent budgets."""
    shares: dict[str, float] = {}
    for budgets in _instances:
        for tenant, share in budgets.compute_shares().items():
            shares[tenant] = max(share, shares.get(tenant, 0.0))
    BUDGET_USED.set(max(shares.values(), default=0.0))
    BUDGETS_SPENT.set(sum(share >= 1 for share in shares.values()))


class Budgets:
    """Decides which tenants may still ask models today (UTC), by the setting `spending.usd_per_day`."""

    def __init__(
        self, database: Database, settings: LiveSettings, now: Callable[[], datetime] = _read_clock
    ) -> None:
        self._database = database
        self._settings = settings
        self._now = now
        self._midnight = datetime.min.replace(tzinfo=UTC)
        self._tenants: dict[str, _DaySpending] = {}
        _instances.add(self)

    async def has_budget(self, tenant: str, *, is_reserved: bool = False) -> bool:
        """Return whether a tenant may ask a model now; always True for a tenant without a limit.

        Calls that this object has reserved, and lines of unfinished batches of all processes, count as if
        they had been answered, with the longest answer. Each object logs at most once a day that a tenant has
        spent its budget.

        With `is_reserved`, the cost of the call is reserved already. Then only the amount spent is compared
        with the limit.

        Raises:
            DatabaseUnavailable: the tenant has a limit, and the amount spent cannot be read.
        """
        limit = self._settings.get_settings(tenant).spending.usd_per_day
        if limit is None:
            return True
        spent = self._get_day_spending(tenant)
        if spent.read_at is None or self._now() - spent.read_at >= CACHED_TENANTS:
            # Callers that ask at the same time share one answer, or one error.
            if spent.reading is None or spent.reading.done():
                spent.reading = asyncio.create_task(self._load_spending(tenant, spent))
            await asyncio.shield(spent.reading)
        under_way = 0.0 if is_reserved else spent.reserved + spent.in_batches
        if spent.usd + under_way < limit:
            return True
        if spent.usd >= limit and not spent.is_logged:
            spent.is_logged = True
            log.warning(
                "budget spent, background work paused until midnight UTC",
                tenant=tenant,
                usd=round(spent.usd, 6),
                usd_per_day=limit,
            )
        return False

    @contextmanager
    def open_reservations(self) -> Iterator["Reservations"]:
        """Yield reservations for the costs of calls; release the reservations when the block ends."""
        with ExitStack() as releases:
            yield Reservations(self, releases)

    @contextmanager
    def reserve_cost(self, tenant: str, usd: float) -> Iterator[None]:
        """Reserve the possible cost of a call, in US dollars, until the block ends."""
        spent = self._get_day_spending(tenant)
        spent.reserved += usd
        try:
            yield
        finally:
            spent.reserved -= usd

    def is_limited(self, tenant: str) -> bool:
        """Return whether the setting `spending.usd_per_day` limits the spending of a tenant."""
        return self._settings.get_settings(tenant).spending.usd_per_day is not None

    def invalidate_cache(self) -> None:
        """Make the next check of each tenant read the database, because a batch has been added there."""
        for spent in self._tenants.values():
            spent.read_at = None

    def record_spending(self, tenant: str, usd: float | None) -> None:
        """Count `usd`, the cost of an answered call in US dollars, at once; None for a model without a price.

        Other processes read the cost from the projections.
        """
        self._get_day_spending(tenant).usd += usd or 0.0

    def compute_shares(self) -> dict[str, float]:
        """Return the used share of the daily budget, by tenant; 1 or more if the budget is spent.

        Only tenants with a limit whose budget this object has used or checked today (UTC) are in the result.
        """
        self._begin_day()
        limits = {
            tenant: self._settings.get_settings(tenant).spending.usd_per_day for tenant in self._tenants
        }
        return {
            tenant: self._tenants[tenant].usd / limit if limit else 1.0
            for tenant, limit in limits.items()
            if limit is not None
        }

    async def _load_spending(self, tenant: str, spent: _DaySpending) -> None:
        stored = await self._database.run_query(sum_spending(tenant, self._midnight))
        spent.in_batches = await self._database.run_query(sum_reserved(tenant))
        spent.usd, spent.read_at = max(spent.usd, stored), self._now()

    def _get_day_spending(self, tenant: str) -> _DaySpending:
        self._begin_day()
        return self._tenants.setdefault(tenant, _DaySpending())

    def _begin_day(self) -> None:
        midnight = self._now().replace(hour=0, minute=0, second=0, microsecond=0)
        if midnight != self._midnight:
            self._midnight = midnight
            self._tenants.clear()


class Reservations:
    """Reserved costs of calls that are about to be made or wait for their answer.

    Closing the exit stack `releases` ends all reservations. The cost of answered calls stays counted by
    `Budgets.record_spending`.
    """

    def __init__(self, budgets: Budgets, releases: ExitStack) -> None:
        self._budgets = budgets
        self._releases = releases

    async def reserve_call(self, tenant: str, usd: float) -> bool:
        """Reserve the possible cost of a call, in US dollars, if the tenant has budget left.

        The check leaves out the cost of this call, so that one call may exceed the limit.

        Returns:
            Whether the cost is reserved.

        Raises:
            DatabaseUnavailable: the tenant has a limit, and the amount spent cannot be read.
        """
        if not await self._budgets.has_budget(tenant):
            return False
        self._releases.enter_context(self._budgets.reserve_cost(tenant, usd))
        return True
