"""Totals of model calls by day, tenant, purpose or model, and tenants that used up their budget.

No I/O, no clock.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from mnemon_consumers.domain.spending.calls import compute_cost
from mnemon_contracts.settings.language_models import Spending
from mnemon_infra.database.windows.spending import CallTotals
from mnemon_infra.models.language.port import Usage

UsageGrouping = Literal["day", "tenant", "purpose", "model"]
PARTS: tuple[UsageGrouping, ...] = get_args(UsageGrouping)
"""Fields by which calls can be grouped. The field of the model includes the provider:
`openai/gpt-4o-mini`."""

SpendingOf = Callable[[str], Spending]
"""Function that returns the spending settings of a tenant."""


@dataclass(frozen=True, slots=True)
class Total:
    """Sum over several model calls.

    Attributes:
        batched: number of calls that were lines of batches.
        unpriced: number of calls whose model had no price at the time; `offline` needs no price.
        input: tokens of the requests, including cached tokens.
        cached: tokens of the requests that the provider had cached.
        output: tokens of the answers.
        usd: US dollars, without the calls that had no price.
        saved: US dollars that the batches cost less than single calls, at the current prices.
    """

    calls: int = 0
    batched: int = 0
    unpriced: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    usd: float = 0.0
    saved: float = 0.0

    def __add__(self, other: "Total") -> "Total":
        return Total(
            self.calls + other.calls,
            self.batched + other.batched,
            self.unpriced + other.unpriced,
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.usd + other.usd,
            self.saved + other.saved,
        )

    @property
    def cached_share(self) -> float | None:
        """Return the share of the requests' tokens that was cached; None if the requests had no tokens."""
        return self.cached / self.input if self.input else None

    @property
    def known_usd(self) -> float | None:
        """Return the cost in US dollars; None if there are calls and each of them lacks a price."""
        return None if self.calls and self.unpriced == self.calls else self.usd


class ExhaustedBudget(NamedTuple):
    """A tenant that has spent its budget of the day; both amounts are in US dollars."""

    tenant: str
    usd: float
    usd_per_day: float


def sum_usage(
    calls: Iterable[CallTotals], by: Sequence[UsageGrouping], spending_of: SpendingOf
) -> dict[tuple[str, ...], Total]:
    """Return totals grouped by the given fields, sorted by group; without fields, one total of all calls."""
    totals: dict[tuple[str, ...], Total] = {}
    for each in calls:
        groups = {
            "day": each.day.isoformat(),
            "tenant": each.tenant,
            "purpose": each.purpose,
            "model": format_model(each),
        }
        key = tuple(groups[field] for field in by)
        totals[key] = totals.get(key, Total()) + _sum_total(each, spending_of(each.tenant))
    return dict(sorted(totals.items()))


def format_model(calls: CallTotals) -> str:
    """Return the provider and model of calls, such as `openai/gpt-5-mini`."""
    return f"{calls.provider}/{calls.model}"


def list_unpriced_models(calls: Iterable[CallTotals]) -> list[str]:
    """Return the models that had no price when they were called, under the providers' names for them."""
    return sorted({each.model for each in calls if _count_unpriced(each)})


def find_exhausted_budgets(
    spent: Mapping[str, float], tenants: Iterable[str], spending_of: SpendingOf
) -> list[ExhaustedBudget]:
    """Return the tenants that have no budget left.

    Args:
        spent: US dollars of today, by tenant.
        tenants: further tenants; one that spent nothing has no budget left if its limit is 0.
        spending_of: function that returns the spending settings of a tenant.
    """
    found = []
    for tenant in sorted({*spent, *tenants}):
        usd, limit = spent.get(tenant, 0.0), spending_of(tenant).usd_per_day
        if limit is not None and usd >= limit:
            found.append(ExhaustedBudget(tenant, usd, limit))
    return found


def _sum_total(calls: CallTotals, spending: Spending) -> Total:
    return Total(
        calls.calls,
        calls.calls if calls.in_batch else 0,
        _count_unpriced(calls),
        calls.input,
        calls.cached,
        calls.output,
        calls.usd,
        _compute_saved(calls, spending) if calls.in_batch else 0.0,
    )


def _count_unpriced(calls: CallTotals) -> int:
    """Return the number of calls that lack a price; the provider `offline` needs none."""
    return 0 if calls.provider == "offline" else calls.unpriced


def _compute_saved(calls: CallTotals, spending: Spending) -> float:
    usage = Usage(calls.input, calls.cached, calls.output)
    alone = compute_cost(usage, calls.model, spending, in_batch=False)
    together = compute_cost(usage, calls.model, spending, in_batch=True)
    return 0.0 if alone is None or together is None else alone - together
