"""Queries on the cost of model calls."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Date, Double, Select, cast, func, select, text

from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.tables import IS_OPEN, OF_BATCHES, batches
from mnemon_infra.database.tables import memory_events as events
from mnemon_infra.database.tables import model_calls as calls


class CallTotals(NamedTuple):
    """Totals of the model calls of one day (UTC) with the same tenant, purpose, provider, model and mode.

    Attributes:
        in_batch: True if the calls were made in batches, False if online.
        unpriced: number of the calls whose model had no price; `usd` does not include their cost.
        input: tokens of the requests, cached ones included.
        cached: input tokens that the provider had cached.
        output: tokens of the answers.
        usd: cost in US dollars.
    """

    tenant: str
    purpose: str
    day: date
    provider: str
    model: str
    in_batch: bool
    calls: int
    unpriced: int
    input: int
    cached: int
    output: int
    usd: float


MOST_USD: Final = 1_000_000_000.0
"""Maximum US dollars that one event counts for: PostgreSQL cannot add some larger values."""

_SINCE: Final = calls.c.at >= make_parameter("since", datetime)
_OF_BUDGET: Final = calls.c.purpose != "chat"
"""Condition of calls that a budget limits: those that mnemon makes, not those that the proxy passes on."""

_OF_TENANT: Final = calls.c.tenant == make_parameter("of_tenant", str)


def _sum_usd(usd: ColumnElement[float]) -> Any:
    return func.coalesce(func.sum(func.least(usd, MOST_USD)).filter(usd.isnot(None)), 0.0)


def _sum_call_usd() -> Any:
    return _sum_usd(calls.c.usd)


def _select_spent() -> Select[Any]:
    return select(_sum_call_usd()).where(_OF_TENANT, _SINCE, _OF_BUDGET)


def _select_spent_by_tenant() -> Select[Any]:
    return select(calls.c.tenant, _sum_call_usd()).where(_SINCE, _OF_BUDGET).group_by(calls.c.tenant)


def _select_usage() -> Select[Any]:
    day = cast(func.timezone("UTC", calls.c.at), Date)
    common = (calls.c.tenant, calls.c.purpose, day, calls.c.provider, calls.c.model, calls.c.in_batch)
    return (
        select(
            *common,
            func.count(),
            func.count().filter(calls.c.usd.is_(None)),
            *map(func.sum, (calls.c.input_tokens, calls.c.cached_tokens, calls.c.output_tokens)),
            _sum_call_usd(),
        )
        .where(_SINCE, calls.c.at < make_parameter("until", datetime))
        .group_by(*common)
    )


def _select_reserved() -> Select[Any]:
    return (
        select(_sum_usd(cast(events.c.body["usd"].astext, Double)))
        .select_from(events.join(batches, batches.c.batch_id == events.c.item))
        .where(
            text(IS_OPEN),
            text(OF_BATCHES),
            events.c.event == "batch.intended",
            events.c.tenant == make_parameter("of_tenant", str),
        )
    )


_SPENT = Lookup(_select_spent())
_RESERVED = Lookup(_select_reserved())
_SPENT_BY_TENANT = Lookup(_select_spent_by_tenant())
_USAGE = Lookup(_select_usage())
_USAGE_OF_TENANT = Lookup(_select_usage().where(_OF_TENANT))


@query
async def sum_spending(connection: Connection, tenant: str, since: datetime) -> float:
    """Return the US dollars that a tenant's calls have cost since a moment.

    Requests that the proxy forwards are left out. Calls of models without a price count as 0.
    """
    (row,) = await _SPENT.fetch(connection, of_tenant=tenant, since=since)
    return float(row[0])


@query
async def sum_reserved(connection: Connection, tenant: str) -> float:
    """Return the US dollars that a tenant's requests in open batches may cost.

    Batches without an estimate of their cost count as 0.
    """
    (row,) = await _RESERVED.fetch(connection, of_tenant=tenant)
    return float(row[0])


@query
async def sum_spending_by_tenant(connection: Connection, since: datetime) -> dict[str, float]:
    """Return the US dollars of `sum_spending` for each tenant with calls that it counts."""
    rows = await _SPENT_BY_TENANT.fetch(connection, since=since)
    return dict(rows)


@query
async def load_usage(
    connection: Connection, tenant: str | None, since: datetime, until: datetime
) -> list[CallTotals]:
    """Return the totals of model calls from `since` up to `until`; if `tenant` is None, of all tenants.

    The totals are sorted by tenant, purpose, day, provider, model and mode.
    """
    found = []
    # One query per day: a busy month would exceed the statement timeout.
    for begin, end in _split_days(since, until):
        period: dict[str, Any] = {"since": begin, "until": end}
        if tenant is None:
            rows = await _USAGE.fetch(connection, **period)
        else:
            rows = await _USAGE_OF_TENANT.fetch(connection, **{**period, "of_tenant": tenant})
        # A sum of bigints is numeric, which Python reads as Decimal.
        found += [CallTotals._make((*row[:8], *map(int, row[8:11]), row[11])) for row in rows]
    return sorted(found)


def _split_days(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    begin = since.astimezone(UTC)
    while begin < until:
        midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
        end = min(midnight + timedelta(days=1), until)
        yield begin, end
        begin = end.astimezone(UTC)
