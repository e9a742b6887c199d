"""Queries that list and lock windows that wait for a model."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import CTE, ColumnElement, Select, and_, exists, func, or_, select, text, true

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.query_parts.tenants import select_tenants
from mnemon_infra.database.tables import WAITS, windows
from mnemon_infra.database.windows.window_repository import WINDOW_COLUMNS, StoredWindow


class WaitingWindows(NamedTuple):
    """Number of a tenant's due windows that wait for a batch, and the time since which the first is due.

    The number is at most the `at_most` of `count_waiting_windows`; windows of online extraction do not count.
    """

    tenant: str
    number: int
    since: datetime


_WAITS: Final = text(WAITS)
_NOW: Final = make_parameter("now", datetime)
_AT_MOST: Final = make_parameter("at_most", int)
_IS_WANTED: Final = or_(make_parameter("every", bool), windows.c.is_online)


def _select_waiting_tenants() -> CTE:
    return select_tenants(windows, lambda table: and_(~table.c.is_answered, table.c.batch_id.is_(None)))


def _select_for_batches() -> Select[Any]:
    tenants = _select_waiting_tenants()
    due = (
        select(windows.c.due_at)
        .where(_WAITS, windows.c.tenant == tenants.c.tenant, ~windows.c.is_online, windows.c.due_at <= _NOW)
        .order_by(windows.c.due_at)
        .limit(_AT_MOST)
        .correlate(tenants)
        .lateral("due")
    )
    return (
        select(tenants.c.tenant, func.count(), func.min(due.c.due_at))
        .select_from(tenants.join(due, true()))
        .group_by(tenants.c.tenant)
    )


def _select_due(*only: ColumnElement[bool]) -> Select[Any]:
    return (
        select(*WINDOW_COLUMNS)
        .where(
            _WAITS,
            windows.c.tenant == make_parameter("of_tenant", str),
            windows.c.due_at <= _NOW,
            *only,
        )
        .limit(_AT_MOST)
        .with_for_update(skip_locked=True)
    )


def _select_of_user() -> Select[Any]:
    """Select the first waiting window of each conversation, if it is due.

    Later windows wait for the first one, so that facts arrive in order.
    """
    earlier = windows.alias("earlier")
    waits_before = exists().where(
        earlier.c.tenant == windows.c.tenant,
        earlier.c.user_id == windows.c.user_id,
        earlier.c.conversation == windows.c.conversation,
        earlier.c.from_seq < windows.c.from_seq,
        ~earlier.c.is_answered,
        earlier.c.batch_id.is_(None),
    )
    user = windows.c.user_id == make_parameter("of_user", str)
    return _select_due(user, _IS_WANTED, ~waits_before).order_by(windows.c.conversation, windows.c.from_seq)


_ALL = Lookup(select(_select_waiting_tenants().c.tenant))
_FOR_BATCHES = Lookup(_select_for_batches())
_FOR_BATCH = Lookup(_select_due(~windows.c.is_online).order_by(windows.c.due_at))
_OF_USER = Lookup(_select_of_user())
_ONLINE = Lookup(_select_due(_IS_WANTED))


@query
async def list_waiting_tenants(connection: Connection) -> list[str]:
    """Return the tenants with waiting windows, due or not."""
    found = await _ALL.fetch(connection)
    return sorted(tenant for (tenant,) in found)


@query
async def count_waiting_windows(connection: Connection, now: datetime, at_most: int) -> list[WaitingWindows]:
    """Count the due windows that wait for a batch, at most `at_most` of each tenant.

    Windows that are marked online do not count. Tenants without such windows are left out.
    """
    found = await _FOR_BATCHES.fetch(connection, now=now, at_most=at_most)
    return sorted(map(WaitingWindows._make, found))


async def lock_windows_for_batch(
    connection: Connection, tenant: str, now: datetime, at_most: int
) -> list[StoredWindow]:
    """Lock and return at most `at_most` due windows of a tenant: those that have been due longest.

    Windows that are marked online, and windows that another transaction has locked, are left out. The locks
    last until the end of the transaction.
    """
    found = await _FOR_BATCH.fetch(connection, of_tenant=tenant, now=now, at_most=at_most)
    return sorted(map(StoredWindow._make, found))


async def lock_windows_of_users(
    connection: Connection, users: Iterable[tuple[Owner, bool]], now: datetime, at_most: int
) -> list[StoredWindow]:
    """Lock and return the first waiting window of each conversation of users, if it is due.

    Windows that another transaction has locked are left out.

    Each user comes with True for all windows, or False for only the windows that are marked online. `at_most`
    is the maximum number of windows of each user.
    """
    wanted = [
        {"of_tenant": tenant, "of_user": user, "every": every, "now": now, "at_most": at_most}
        for (tenant, user), every in users
    ]
    found = await _OF_USER.fetch_each(connection, wanted)
    return sorted(StoredWindow._make(row) for rows in found for row in rows)


async def list_online_users(
    connection: Connection, tenants: Iterable[tuple[str, bool]], now: datetime, at_most: int
) -> list[Owner]:
    """Lock the due windows for online requests, and return their users.

    Windows that another transaction has locked are left out. The locks last until the end of the transaction.

    Each tenant comes with True for all windows, or False for only the windows that are marked online.
    `at_most` is the maximum number of windows of each tenant.
    """
    wanted = [
        {"of_tenant": tenant, "every": every, "now": now, "at_most": at_most} for tenant, every in tenants
    ]
    found = await _ONLINE.fetch_each(connection, wanted)
    return sorted({StoredWindow._make(row).owner for rows in found for row in rows})
