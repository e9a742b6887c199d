"""Spending of tenants on language models over a number of days."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from mnemon_consumers.domain.spending.calls import find_price
from mnemon_consumers.domain.spending.usage import (
    ExhaustedBudget,
    Total,
    UsageGrouping,
    find_exhausted_budgets,
    list_unpriced_models,
    sum_usage,
)
from mnemon_contracts.settings.language_models import Price, Spending
from mnemon_infra.database.engine import Database
from mnemon_infra.database.windows.spending import CallTotals, load_usage, sum_spending_by_tenant
from mnemon_infra.settings.store import LiveSettings


@dataclass(frozen=True)
class Period:
    """Spending on a number of whole days in UTC, the last of them today.

    Attributes:
        since: the beginning of the first day.
        until: the end of today.
        calls: totals of the model calls of these days.
        settings: the current settings; their prices give the savings of batches.
        out_of_budget: those of the requested tenants that have no budget left today.
        prices: the prices that are set, globally or for the requested tenant.
    """

    since: datetime
    until: datetime
    calls: Sequence[CallTotals]
    settings: LiveSettings
    out_of_budget: Sequence[ExhaustedBudget]
    prices: Sequence[Price]

    def sum_by(self, fields: Sequence[UsageGrouping]) -> Mapping[tuple[str, ...], Total]:
        """Return totals grouped by the given fields, sorted by group; without fields, one total."""
        return sum_usage(self.calls, fields, self._get_spending)

    @cached_property
    def total(self) -> Total:
        return sum(self.sum_by(()).values(), Total())

    @property
    def unpriced_models(self) -> list[str]:
        """Return the models that had no price when they were called, under the providers' names."""
        return list_unpriced_models(self.calls)

    @property
    def models_to_price(self) -> list[str]:
        """Return those of `unpriced_models` that still have no price for a tenant that called them.

        Tenants whose prices are not `prices` are left out: a tenant's own list replaces the global one, so
        an addition to `prices` gives them no price. The spending of one tenant shows what its list lacks.
        """
        return list_unpriced_models(
            each
            for each in self.calls
            if self._get_spending(each.tenant).prices == self.prices
            and find_price(each.model, self.prices) is None
        )

    def _get_spending(self, tenant: str) -> Spending:
        return self.settings.get_settings(tenant).spending


async def load_last_days(database: Database, settings: LiveSettings, tenant: str | None, days: int) -> Period:
    """Load the spending of a tenant (None: of all tenants) on the last `days` days, today included.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since, until = today - timedelta(days=days - 1), today + timedelta(days=1)
    calls = await database.run_query(load_usage(tenant, since, until))
    spent = await database.run_query(sum_spending_by_tenant(today))

    def get_spending(one: str) -> Spending:
        return settings.get_settings(one).spending

    broke = find_exhausted_budgets(spent, settings.list_tenants(), get_spending)
    return Period(
        since,
        until,
        calls,
        settings,
        [each for each in broke if tenant in (None, each.tenant)],
        settings.value.spending.prices if tenant is None else get_spending(tenant).prices,
    )
