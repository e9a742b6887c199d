"""Finding the users of whom something has to be removed, over all tenants."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, DateTime, Integer, Select, bindparam, cast, func, select

from infra.database.engine import Connection, Lookup, Query
from infra.database.memories import VERSIONS, named
from infra.database.rows import ENDINGS, Owner
from infra.database.tables import memory_events as events

_ended = events.alias("ended")


def _live() -> ColumnElement[bool]:
    over = select(_ended.c.item).where(
        _ended.c.tenant == events.c.tenant,
        _ended.c.user_id == events.c.user_id,
        named(ENDINGS, _ended),
        _ended.c.item == events.c.item,
    )
    return ~over.exists()


def _expired() -> Select[Any]:
    expires_at = cast(events.c.body["fact"]["expires_at"].astext, DateTime(timezone=True))
    return (
        select(events.c.tenant, events.c.user_id)
        .where(named(VERSIONS), expires_at <= bindparam("now", type_=DateTime(timezone=True)), _live())
        .distinct()
    )


def _crowded() -> Select[Any]:
    facts = func.count(events.c.item.distinct())
    return (
        select(events.c.tenant, events.c.user_id)
        .where(events.c.event == "fact.saved", _live())
        .group_by(events.c.tenant, events.c.user_id)
        .having(facts > bindparam("more_than", type_=Integer))
    )


_EXPIRED = Lookup(_expired())
_CROWDED = Lookup(_crowded())


def with_expired_facts(now: datetime) -> Query[list[Owner]]:
    """The users of whom a fact's date has passed."""

    async def query(connection: Connection) -> list[Owner]:
        (found,) = await _EXPIRED.rows(connection, [{"now": now}])
        return [(tenant, user) for _, tenant, user in found]

    return query


def with_more_facts(than: int) -> Query[list[Owner]]:
    """The users who have more facts than so many."""

    async def query(connection: Connection) -> list[Owner]:
        (found,) = await _CROWDED.rows(connection, [{"more_than": than}])
        return [(tenant, user) for _, tenant, user in found]

    return query
