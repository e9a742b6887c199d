"""Usage and cost of models, and batches at providers."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from starlette.responses import Response

from mnemon.admin.charts.bars import Chart, draw_chart
from mnemon.admin.page import PageSection, Visit
from mnemon.admin.rendering.filters import format_tokens
from mnemon_consumers.domain.spending.period import Period, load_last_days
from mnemon_consumers.domain.spending.usage import Total, UsageGrouping
from mnemon_contracts.base import InvalidBody
from mnemon_infra.database.memory.users import list_tenants
from mnemon_infra.database.windows.backlog import load_backlog, load_tenant_backlogs
from mnemon_infra.database.windows.batches import STATES, list_newest_batches
from mnemon_infra.settings.store import LiveSettings

FieldT = TypeVar("FieldT")

pages = PageSection("Batches and usage", "/usage")

_SPANS: Final = (7, 30, 90)
"""Lengths of the period to choose from, in days."""

_GROUPINGS: Final[tuple[UsageGrouping, ...]] = ("purpose", "tenant", "model")
_MAX_TENANTS: Final = 500
_PAGE_SIZE: Final = 50
"""Maximum number of batches on a page."""


@pages.get("/usage")
async def show_usage(visit: Visit) -> Response:
    """Show cost and tokens of language models in the last 7, 30 or 90 days."""
    tenant = visit.query.get("tenant", "").strip() or None
    days = _select_option(visit.query.get("days", ""), {str(each): each for each in _SPANS}, 30)
    by = _select_option(visit.query.get("by", ""), {part: part for part in _GROUPINGS}, _GROUPINGS[0])
    live = LiveSettings()
    database = await visit.connections.get_database()
    async with live.watch_bucket(await visit.connections.get_broker()):
        period = await load_last_days(database, live, tenant, days)
    daily = period.sum_by(("day", by))
    return visit.render(
        "usage/page.html",
        tenant=tenant,
        tenants=await database.run_query(list_tenants(_MAX_TENANTS)),
        days=days,
        by=by,
        spans=[(str(each), f"{each} days") for each in _SPANS],
        parts=[(part, part) for part in _GROUPINGS],
        period=period,
        table=period.sum_by(("tenant", "purpose", "model")),
        by_day=period.sum_by(("day",)),
        cost=_draw_daily_chart(period, {key: total.usd for key, total in daily.items()}, _format_dollars),
        tokens=_draw_daily_chart(
            period, {key: float(_count_tokens(total)) for key, total in daily.items()}, format_tokens
        ),
    )


@pages.get("/usage/batches")
async def show_batches(visit: Visit) -> Response:
    """Show batches, the newest first, and the numbers of windows by their state."""
    shown = _select_option(visit.query.get("state", ""), {name: name for name in STATES}, "all")
    now = datetime.now(UTC)
    before = _parse_time(visit.query["before"]) if visit.query.get("before") else now + timedelta(days=1)
    database = await visit.connections.get_database()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    found = await database.run_query(list_newest_batches(STATES[shown], before, _PAGE_SIZE + 1))
    return visit.render(
        "usage/batches.html",
        now=now,
        shown=shown,
        states=STATES,
        batches=found[:_PAGE_SIZE],
        older=found[_PAGE_SIZE - 1].created_at.isoformat() if len(found) > _PAGE_SIZE else None,
        is_first="before" not in visit.query,
        in_hand=await database.run_query(load_backlog(now, midnight)),
        by_tenant=await database.run_query(load_tenant_backlogs(now)),
    )


def _select_option(value: str, known: Mapping[str, FieldT], otherwise: FieldT) -> FieldT:
    return known.get(value, otherwise)


def _draw_daily_chart(
    period: Period, values: Mapping[tuple[str, ...], float], format_value: Callable[[float], str]
) -> Chart:
    first, last = period.since.date(), period.until.date()
    days = [first + timedelta(days=each) for each in range((last - first).days)]
    return draw_chart(days, {(day, series): value for (day, series), value in values.items()}, format_value)


def _count_tokens(total: Total) -> int:
    return total.input + total.output


def _format_dollars(value: float) -> str:
    return f"${value:,.4g}"


def _parse_time(written: str) -> datetime:
    try:
        return datetime.fromisoformat(written).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidBody("before", "must be a time such as 2026-11-21T10:00:00Z") from error
