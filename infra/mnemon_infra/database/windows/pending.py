"""Stretches that wait to be asked for: of whom, and taking them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    CTE,
    BigInteger,
    Boolean,
    ColumnElement,
    DateTime,
    Select,
    String,
    bindparam,
    exists,
    func,
    or_,
    select,
    text,
    true,
)

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Lookup, Query
from mnemon_infra.database.tables import WAITS, windows
from mnemon_infra.database.windows.window_repository import COLUMNS, StoredWindow, window_of


class Waiting(NamedTuple):
    """Stretches of a tenant that are due and wait for a batch: how many, and since when the first is due."""

    tenant: str
    number: int
    since: datetime


_WAITS: Final = text(WAITS)
_NOW: Final = bindparam("now", type_=DateTime(timezone=True))
_AT_MOST: Final = bindparam("at_most", type_=BigInteger)
_IS_WANTED: Final = or_(bindparam("every", type_=Boolean), windows.c.is_online)


def _tenants() -> CTE:
    """From one tenant of whom something waits to the next by the index, a step each."""
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
            windows.c.tenant == bindparam("of_tenant", type_=String),
            windows.c.due_at <= _NOW,
            *only,
        )
        .limit(_AT_MOST)
        .with_for_update(skip_locked=True)
    )


def _of_user() -> Select[Any]:
    """The first of each conversation that waits. Those after it wait for it: so facts come in their order."""
    earlier = windows.alias("earlier")
    waits_before = exists().where(
        earlier.c.tenant == windows.c.tenant,
        earlier.c.user_id == windows.c.user_id,
        earlier.c.conversation == windows.c.conversation,
        earlier.c.from_seq < windows.c.from_seq,
        ~earlier.c.is_answered,
        earlier.c.batch_id.is_(None),
    )
    user = windows.c.user_id == bindparam("of_user", type_=String)
    return _due(user, _IS_WANTED, ~waits_before).order_by(windows.c.conversation, windows.c.from_seq)


_ALL = Lookup(select(_tenants().c.tenant))
_FOR_BATCHES = Lookup(_for_batches())
_FOR_BATCH = Lookup(_due(~windows.c.is_online).order_by(windows.c.due_at))
_OF_USER = Lookup(_of_user())
_ONLINE = Lookup(_due(_IS_WANTED))


def tenants_waiting() -> Query[list[str]]:
    """The tenants of whom something waits, due or not."""

    async def query(connection: Connection) -> list[str]:
        (found,) = await _ALL.rows(connection, [{}])
        return sorted(tenant for _, tenant in found)

    return query


def waiting_for_batches(now: datetime, at_most: int) -> Query[list[Waiting]]:
    """Of each tenant what is due and waits for a batch; no more than `at_most` are counted."""

    async def query(connection: Connection) -> list[Waiting]:
        (found,) = await _FOR_BATCHES.rows(connection, [{"now": now, "at_most": at_most}])
        return sorted(Waiting._make(row[1:]) for row in found)

    return query


async def take_for_batch(
    connection: Connection, tenant: str, now: datetime, at_most: int
) -> list[StoredWindow]:
    """Those of a tenant's that are due longest; nobody else gets them before the transaction ends."""
    (found,) = await _FOR_BATCH.rows(connection, [{"of_tenant": tenant, "now": now, "at_most": at_most}])
    return sorted(map(window_of, found))


async def take_of_users(
    connection: Connection, users: Iterable[tuple[Owner, bool]], now: datetime, at_most: int
) -> list[StoredWindow]:
    """Of each conversation of users the first that waits, if it is due; nobody else gets them meanwhile.

    Args:
        connection: until the end of its transaction.
        users: each with whether all its stretches are wanted, or only those that no batch has come to.
        now: what is due is due by then.
        at_most: of each user.
    """
    wanted = [
        {"of_tenant": tenant, "of_user": user, "every": every, "now": now, "at_most": at_most}
        for (tenant, user), every in users
    ]
    found = await _OF_USER.rows(connection, wanted)
    return sorted(window_of(row) for rows in found for row in rows)


async def users_online(
    connection: Connection, tenants: Iterable[tuple[str, bool]], now: datetime, at_most: int
) -> list[Owner]:
    """Users with stretches that are to be asked for by themselves, and that nobody is asking for."""
    wanted = [
        {"of_tenant": tenant, "every": every, "now": now, "at_most": at_most} for tenant, every in tenants
    ]
    found = await _ONLINE.rows(connection, wanted)
    return sorted({window_of(row).owner for rows in found for row in rows})
