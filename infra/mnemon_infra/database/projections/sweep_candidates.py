"""Queries for users with expired facts or too many facts, over all tenants."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, DateTime, Select, cast, exists, func, select

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.projections.rows import ENDINGS
from mnemon_infra.database.query_parts.item_states import VERSIONS, has_name
from mnemon_infra.database.tables import memory_events as events


class FactCounts(NamedTuple):
    """Number of a user's facts, in total and in the tiers that have limits of their own."""

    tenant: str
    user: str
    facts: int
    profile: int
    working: int


_ended = events.alias("ended")


def _has_not_ended() -> ColumnElement[bool]:
    over = select(_ended.c.item).where(
        _ended.c.tenant == events.c.tenant,
        _ended.c.user_id == events.c.user_id,
        has_name(ENDINGS, _ended),
        _ended.c.item == events.c.item,
    )
    return ~over.exists()


def _select_expired() -> Select[Any]:
    later = events.alias("later")
    is_rewritten = exists().where(
        later.c.tenant == events.c.tenant,
        later.c.user_id == events.c.user_id,
        has_name(("fact.updated", "fact.merged"), later),
        later.c.item == events.c.item,
        later.c.seq > events.c.seq,
    )
    expires_at = cast(events.c.body["fact"]["expires_at"].astext, DateTime(timezone=True))
    is_due = expires_at <= make_parameter("now", datetime)
    return (
        select(events.c.tenant, events.c.user_id)
        .where(has_name(VERSIONS), is_due, ~is_rewritten, _has_not_ended())
        .distinct()
    )


def _select_crowded() -> Select[Any]:
    place = func.row_number().over(
        partition_by=(events.c.tenant, events.c.user_id, events.c.item), order_by=events.c.seq.desc()
    )
    tier = events.c.body["fact"]["tier"].astext.label("tier")
    facts = (
        select(events.c.tenant, events.c.user_id, tier, place.label("place"))
        .where(has_name(VERSIONS), _has_not_ended())
        .subquery("facts")
    )
    return (
        select(
            facts.c.tenant,
            facts.c.user_id,
            func.count(),
            func.count().filter(facts.c.tier == "profile"),
            func.count().filter(facts.c.tier == "working"),
        )
        .where(facts.c.place == 1)
        .group_by(facts.c.tenant, facts.c.user_id)
        .having(func.count() > make_parameter("more_than", int))
    )


_EXPIRED = Lookup(_select_expired())
_CROWDED = Lookup(_select_crowded())


@query
async def list_owners_of_expired_facts(connection: Connection, now: datetime) -> list[Owner]:
    """Return the users who have a fact that has expired at the time `now` and has not ended yet."""
    found = await _EXPIRED.fetch(connection, now=now)
    return [(tenant, user) for tenant, user in found]


@query
async def count_excess_facts(connection: Connection, limit: int) -> list[FactCounts]:
    """Return the users with more than `limit` facts, and their counts."""
    found = await _CROWDED.fetch(connection, more_than=limit)
    return [FactCounts(*row) for row in found]
