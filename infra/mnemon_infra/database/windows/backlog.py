"""Backlog of extraction: counts of windows and batches over all tenants."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, func, select, text

from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.tables import DIED, IS_OPEN, WAITS, batches, memory_events, windows


class OpenBatches(NamedTuple):
    """Open batches in the same state.

    Attributes:
        state: `claimed`, `intended` or `submitted`.
        lines: total number of their lines; a line is one request.
        age: time since the creation of the oldest batch.
    """

    state: str
    batches: int
    lines: int
    age: timedelta


class Backlog(NamedTuple):
    """Counts of windows and open batches, by state.

    Attributes:
        due: windows that wait for a batch or an online request and are due.
        later: windows that wait likewise and are due later, after a pause.
        in_batches: unanswered windows in open batches.
        dead: windows that were given up since a given moment; a window counts each time that it was given up.
        batches: open batches, by state.
    """

    due: int
    later: int
    in_batches: int
    dead: int
    batches: Sequence[OpenBatches]


class TenantBacklog(NamedTuple):
    """Unanswered windows of a tenant; `oldest` is the time at which the first of them was cut."""

    tenant: str
    due: int
    later: int
    in_batches: int
    oldest: datetime


_NOW: Final = make_parameter("now", datetime)


def _select_counts() -> Select[Any]:
    waiting = select(func.count()).select_from(windows).where(text(WAITS))
    open_batches = select(batches.c.batch_id).where(text(IS_OPEN))
    in_batches = windows.c.batch_id.in_(open_batches) & ~windows.c.is_answered
    dead = (
        select(func.count())
        .select_from(memory_events)
        .where(text(DIED), memory_events.c.at >= make_parameter("since", datetime))
    )
    return select(
        waiting.where(windows.c.due_at <= _NOW).scalar_subquery(),
        waiting.where(windows.c.due_at > _NOW).scalar_subquery(),
        select(func.count()).select_from(windows).where(in_batches).scalar_subquery(),
        dead.scalar_subquery(),
    )


def _select_open_batches() -> Select[Any]:
    return (
        select(
            batches.c.state,
            func.count(),
            func.sum(batches.c.lines),
            _NOW - func.min(batches.c.created_at),
        )
        .where(text(IS_OPEN))
        .group_by(batches.c.state)
    )


def _select_by_tenant() -> Select[Any]:
    waits = text(WAITS)
    return (
        select(
            windows.c.tenant,
            func.count().filter(waits, windows.c.due_at <= _NOW),
            func.count().filter(waits, windows.c.due_at > _NOW),
            func.count().filter(windows.c.batch_id.is_not(None)),
            func.min(windows.c.cut_at),
        )
        .where(~windows.c.is_answered)
        .group_by(windows.c.tenant)
    )


_COUNTED = Lookup(_select_counts())
_OPEN_BATCHES = Lookup(_select_open_batches())
_BY_TENANT = Lookup(_select_by_tenant())


@query
async def load_backlog(connection: Connection, now: datetime, since: datetime) -> Backlog:
    """Return the backlog of extraction at `now`; windows that were given up count from `since` on."""
    (counted,) = await _COUNTED.fetch(connection, now=now, since=since)
    found = await _OPEN_BATCHES.fetch(connection, now=now)
    return Backlog._make((*counted, sorted(map(OpenBatches._make, found))))


@query
async def load_tenant_backlogs(connection: Connection, now: datetime) -> list[TenantBacklog]:
    """Return the backlog of each tenant with unanswered windows, sorted by tenant."""
    found = await _BY_TENANT.fetch(connection, now=now)
    return sorted(map(TenantBacklog._make, found))
