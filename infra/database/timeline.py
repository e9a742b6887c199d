"""What follows from the order of a user's events, as query parts.

A user's *timeline* is every start of a conversation, in log order. It cuts the log into *spans*: a message
on `-` belongs to the conversation in whose span it lies. A `cleared`, and a `started` that discards, is a
*floor*: what lies below it is gone, whenever it arrives.

All parts take the bind parameters that `owner` gives.
"""

from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    String,
    Table,
    and_,
    bindparam,
    exists,
    false,
    func,
    literal,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import INT8RANGE

from contracts.identity import first_conversation
from infra.database.tables import clears, conversations, starts

_TENANT = bindparam("of_tenant", type_=String)
_USER = bindparam("of_user", type_=String)
_FIRST = bindparam("first", type_=String)


def owner(tenant: str, user: str) -> dict[str, str]:
    """The parameters that every part here takes."""
    return {"of_tenant": tenant, "of_user": user, "first": first_conversation(tenant, user)}


def owned(table: Table) -> ColumnElement[bool]:
    """The rows of the user."""
    return and_(table.c.tenant == _TENANT, table.c.user_id == _USER)


def timeline() -> CTE:
    """Every start: by a `started` event, by the first message naming a conversation, and the beginning."""
    earlier = starts.alias("earlier")
    started_before = exists().where(
        earlier.c.tenant == conversations.c.tenant,
        earlier.c.user_id == conversations.c.user_id,
        earlier.c.conversation == conversations.c.conversation,
        earlier.c.seq < conversations.c.seq,
    )
    return union_all(
        select(starts.c.seq, starts.c.conversation, starts.c.discard_previous).where(owned(starts)),
        select(conversations.c.seq, conversations.c.conversation, false().label("discard_previous")).where(
            owned(conversations), ~started_before
        ),
        select(literal(0, BigInteger), _FIRST, false()),
    ).cte("timeline")


def spans(timeline: CTE) -> CTE:
    """For each start, the log positions up to the next one."""
    following = func.lead(timeline.c.seq).over(order_by=timeline.c.seq)
    span = func.int8range(timeline.c.seq, following, type_=INT8RANGE)
    return select(timeline.c.conversation, span.label("span")).cte("spans")


def current(timeline: CTE) -> Any:
    """The conversation that was started last."""
    return select(timeline.c.conversation).order_by(timeline.c.seq.desc()).limit(1).scalar_subquery()


def discarded(timeline: CTE) -> Any:
    """The floor under all conversations."""
    last = func.coalesce(func.max(timeline.c.seq), 0)
    return select(last).where(timeline.c.discard_previous).scalar_subquery()


def cleared(spans: CTE, *only: ColumnElement[bool]) -> CTE:
    """The floor under each conversation that was cleared, by all clears or only by some."""
    place = and_(clears.c.conversation.is_(None), clears.c.seq.op("<@")(spans.c.span))
    conversation = func.coalesce(clears.c.conversation, spans.c.conversation)
    return (
        select(conversation.label("conversation"), func.max(clears.c.seq).label("seq"))
        .select_from(clears.outerjoin(spans, place))
        .where(owned(clears), *only)
        .group_by(conversation)
        .cte("cleared")
    )
