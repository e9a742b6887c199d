"""Queries that list and lock windows which wait for a model."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import CTE, ColumnElement, Select, exists, func, or_, select, text, true

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Lookup, parameter, query
from mnemon_infra.database.tables import WAITS, windows
from mnemon_infra.database.windows.window_repository import COLUMNS, StoredWindow, window_of


class Waiting(NamedTuple):
    """Due windows of a tenant that wait for a batch: their number, and when the first was due."""

    tenant: str
    number: int
    since: datetime


_WAITS: Final = text(WAITS)
_NOW: Final = parameter("now", datetime)
_AT_MOST: Final = parameter("at_most", int)
_IS_WANTED: Final = or_(parameter("every", bool), windows.c.is_online)


def _tenants() -> CTE:
    """Select the tenants with waiting windows, with one index lookup for each tenant."""
    others = windows.alias("others")
    first = select(windows.c.tenant).where(_WAITS).order_by(windows.c.tenant).limit(1)
    tenants = first.cte("tenants", recursive=True)
    following = (
        select(others.c.tenant)
        .where(~others.c.is_answered, others.c.batch_id.is_(None), others.c.tenant > tenants.c.tenant)
        .order_by(others.c.tenant)
        .limit(1)
        .lateral("following")
    )
    return tenants.union_all(select(following.c.tenant).select_from(tenants.join(following, true())))


def _for_batches() -> Select[Any]:
    tenants = _tenants()
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


def _due(*only: ColumnElement[bool]) -> Select[Any]:
    return (
        select(*COLUMNS)
        .where(
            _WAITS,
            windows.c.tenant == parameter("of_tenant", str),
            windows.c.due_at <= _NOW,
            *only,
        )
        .limit(_AT_MOST)
        .with_for_update(skip_locked=True)
    )


def _of_user() -> Select[Any]:
    """Select the first waiting window of each conversation, if it is due.

    Later windows wait for it, so that facts arrive in order.
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
    user = windows.c.user_id == parameter("of_user", str)
    return _due(user, _IS_WANTED, ~waits_before).order_by(windows.c.conversation, windows.c.from_seq)


_ALL = Lookup(select(_tenants().c.tenant))
_FOR_BATCHES = Lookup(_for_batches())
_FOR_BATCH = Lookup(_due(~windows.c.is_online).order_by(windows.c.due_at))
_OF_USER = Lookup(_of_user())
_ONLINE = Lookup(_due(_IS_WANTED))


@query
async def tenants_waiting(connection: Connection) -> list[str]:
    """Return the tenants with waiting windows, due or not."""
    found = await _ALL.fetch(connection)
    return sorted(tenant for (tenant,) in found)


@query
async def waiting_for_batches(connection: Connection, now: datetime, at_most: int) -> list[Waiting]:
    """Count each tenant's due windows that wait for a batch, up to `at_most`."""
    found = await _FOR_BATCHES.fetch(connection, now=now, at_most=at_most)
    return sorted(map(Waiting._make, found))


async def take_for_batch(
    connection: Connection, tenant: str, now: datetime, at_most: int
) -> list[StoredWindow]:
    """Lock and return the windows of a tenant that are due longest, until the end of the transaction."""
    found = await _FOR_BATCH.fetch(connection, of_tenant=tenant, now=now, at_most=at_most)
    return sorted(map(window_of, found))


async def take_of_users(
    connection: Connection, users: Iterable[tuple[Owner, bool]], now: datetime, at_most: int
) -> list[StoredWindow]:
    """Lock and return the first waiting window of each conversation of users, if it is due.

    Args:
        connection: its transaction holds the locks until it ends.
        users: each with True for all windows, or False for only those that are marked online.
        now: windows that are due by then count as due.
        at_most: most windows of each user.
    """
    wanted = [
        {"of_tenant": tenant, "of_user": user, "every": every, "now": now, "at_most": at_most}
        for (tenant, user), every in users
    ]
    found = await _OF_USER.fetch_each(connection, wanted)
    return sorted(window_of(row) for rows in found for row in rows)


async def users_online(
    connection: Connection, tenants: Iterable[tuple[str, bool]], now: datetime, at_most: int
) -> list[Owner]:
    """Return users with due windows for online requests that no other transaction has locked."""
    wanted = [
        {"of_tenant": tenant, "every": every, "now": now, "at_most": at_most} for tenant, every in tenants
    ]
    found = await _ONLINE.fetch_each(connection, wanted)
    return sorted({window_of(row).owner for rows in found for row in rows})
