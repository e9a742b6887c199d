"""What was spent, summed as somebody wants to see it, and who has nothing left. No I/O, no clock."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from mnemon_consumers.domain.spending.calls import cost
from mnemon_contracts.settings.models import Spending
from mnemon_infra.database.windows.spending import Calls
from mnemon_infra.models.language.port import Usage

UsageGrouping = Literal["day", "tenant", "purpose", "model"]
PARTS: tuple[UsageGrouping, ...] = get_args(UsageGrouping)
"""What calls can be told apart by; the model with its provider, as in `openai/gpt-4o-mini`."""

SpendingOf = Callable[[str], Spending]
"""The settings of a tenant."""


@dataclass(frozen=True, slots=True)
class Total:
    """What calls took together.

    Attributes:
        calls: how many.
        batched: of them, lines of batches.
        unpriced: of them, those whose model had no price when it was asked; `offline` needs none.
        input: tokens of the requests, cached ones included.
        cached: of them, those that the provider had cached.
        output: tokens of the answers.
        usd: US dollars, without the calls that had no price.
        saved: US dollars that the batches cost less than calls of their own, at the prices of now.
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
        """The part of the requests' tokens that was cached; None where there were none."""
        return self.cached / self.input if self.input else None

    @property
    def known_usd(self) -> float | None:
        """What it cost. None is not nothing: nobody knows what it cost."""
        return None if self.calls and self.unpriced == self.calls else self.usd


class OutOfBudget(NamedTuple):
    """A tenant that has spent what it may today."""

    tenant: str
    usd: float
    usd_per_day: float


def summed(
    calls: Iterable[Calls], by: Sequence[UsageGrouping], spending_of: SpendingOf
) -> dict[tuple[str, ...], Total]:
    """A total for all calls that agree in these parts, sorted by them; without parts one for all calls."""
    totals: dict[tuple[str, ...], Total] = {}
    for each in calls:
        parts = {
            "day": each.day.isoformat(),
            "tenant": each.tenant,
            "purpose": each.purpose,
            "model": model_of(each),
        }
        key = tuple(parts[part] for part in by)
        totals[key] = totals.get(key, Total()) + _total(each, spending_of(each.tenant))
    return dict(sorted(totals.items()))


def model_of(calls: Calls) -> str:
    """A model with its provider."""
    return f"{calls.provider}/{calls.model}"


def unpriced_models(calls: Iterable[Calls]) -> list[str]:
    """Models that had no price, as the provider names them."""
    return sorted({each.model for each in calls if _unpriced(each)})


def out_of_budget(
    spent: Mapping[str, float], tenants: Iterable[str], spending_of: SpendingOf
) -> list[OutOfBudget]:
    """The tenants that have nothing left.

    Args:
        spent: US dollars of today, by tenant.
        tenants: those that spent nothing, and may have a limit of nothing.
        spending_of: the settings of each.
    """
    found = []
    for tenant in sorted({*spent, *tenants}):
        usd, limit = spent.get(tenant, 0.0), spending_of(tenant).usd_per_day
        if limit is not None and usd >= limit:
            found.append(OutOfBudget(tenant, usd, limit))
    return found


def _total(calls: Calls, spending: Spending) -> Total:
    return Total(
        calls.calls,
        calls.calls if calls.in_batch else 0,
        _unpriced(calls),
        calls.input,
        calls.cached,
        calls.output,
        calls.usd,
        _saved(calls, spending) if calls.in_batch else 0.0,
    )


def _unpriced(calls: Calls) -> int:
    return 0 if calls.provider == "offline" else calls.unpriced


def _saved(calls: Calls, spending: Spending) -> float:
    usage = Usage(calls.input, calls.cached, calls.output)
    alone = cost(usage, calls.model, spending, in_batch=False)
    together = cost(usage, calls.model, spending, in_batch=True)
    return 0.0 if alone is None or together is None else alone - together
