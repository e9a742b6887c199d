"""Query parts that derive state from the order of a user's events.

A user's *timeline* is every start of a conversation, in log order. The timeline cuts the log into *spans*: a
message on `-` belongs to the conversation in whose span the message lies. The position of a `cleared` event
is a *watermark* of its conversation. The position of a `started` event that discards earlier messages is a
watermark of all conversations. Messages below a watermark are removed, and so are summaries of ranges that
begin below it, even if their rows are written after the row of the watermark.

All query parts take the bind parameters that `bind_owner` returns.
"""

from typing import Any, Final

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    FromClause,
    and_,
    exists,
    false,
    func,
    literal,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import INT8RANGE

from mnemon_contracts.identity import derive_first_conversation
from mnemon_infra.database.engine import make_parameter
from mnemon_infra.database.tables import clears, messages, starts

OPEN_END: Final = 2**63 - 1
"""Position beyond every log position: the end of a span that is still open."""

_TENANT = make_parameter("of_tenant", str)
_USER = make_parameter("of_user", str)
_FIRST = make_parameter("first", str)


def bind_owner(tenant: str, user: str) -> dict[str, Any]:
    """Return the bind parameters that every query part of this module takes."""
    return {"of_tenant": tenant, "of_user": user, "first": derive_first_conversation(tenant, user)}


def is_owned(table: FromClause) -> ColumnElement[bool]:
    """Return the condition that a row belongs to the user of the bind parameters."""
    return and_(table.c.tenant == _TENANT, table.c.user_id == _USER)


def select_timeline() -> CTE:
    """Select every start: position 0, each `started` event, and first messages of conversations.

    A message starts a conversation if it is the first whose subject names the conversation, and no earlier
    `started` event has started it.
    """
    named = _select_first_messages()
    earlier = starts.alias("earlier")
    started_before = exists().where(
        is_owned(earlier), earlier.c.conversation == named.c.conversation, earlier.c.seq < named.c.seq
    )
    return union_all(
        select(starts.c.seq, starts.c.conversation, starts.c.discard_previous).where(is_owned(starts)),
        select(named.c.seq, named.c.conversation, false().label("discard_previous")).where(~started_before),
        select(literal(0, BigInteger), _FIRST, false()),
    ).cte("timeline")


def _select_first_messages() -> CTE:
    """Select the first message of each conversation that a subject names, with one index lookup for each."""
    place = messages.c.conversation, messages.c.seq
    first = select(*place).where(is_owned(messages), messages.c.conversation.isnot(None))
    named = first.order_by(*place).limit(1).cte("named", recursive=True)
    others = messages.alias("others")
    beyond = select(others.c.conversation, others.c.seq).where(
        is_owned(others), others.c.conversation > named.c.conversation
    )
    following = beyond.order_by(others.c.conversation, others.c.seq).limit(1).lateral("following")
    return named.union_all(
        select(following.c.conversation, following.c.seq).select_from(named.join(following, true()))
    )


def select_spans(timeline: CTE) -> CTE:
    """Select for each start the log positions from the start up to, but not including, the next start."""
    following = func.lead(timeline.c.seq).over(order_by=timeline.c.seq)
    span = func.int8range(timeline.c.seq, following, type_=INT8RANGE)
    return select(timeline.c.conversation, span.label("span")).cte("spans")


def select_current(timeline: CTE) -> Any:
    """Select the conversation that was started last."""
    return select(timeline.c.conversation).order_by(timeline.c.seq.desc()).limit(1).scalar_subquery()


def select_discard_watermark(timeline: CTE, *only: ColumnElement[bool]) -> Any:
    """Select the watermark of all conversations: the last discarding start that meets all of `only`, or 0."""
    last = func.coalesce(func.max(timeline.c.seq), 0)
    return select(last).where(timeline.c.discard_previous, *only).scalar_subquery()


def select_clear_watermarks(spans: CTE, *only: ColumnElement[bool]) -> CTE:
    """Select the watermark of each cleared conversation: its last clear that meets all of `only`."""
    place = and_(clears.c.conversation.is_(None), clears.c.seq.op("<@")(spans.c.span))
    conversation = func.coalesce(clears.c.conversation, spans.c.conversation)
    return (
        select(conversation.label("conversation"), func.max(clears.c.seq).label("seq"))
        .select_from(clears.outerjoin(spans, place))
        .where(is_owned(clears), *only)
        .group_by(conversation)
        .cte("cleared")
    )


def select_watermark(timeline: CTE, spans: CTE, conversation: ColumnElement[str]) -> Any:
    """Select the watermark of one conversation; 0 if the conversation has none."""
    watermarks = select_clear_watermarks(spans)
    own_watermark = (
        select(watermarks.c.seq).where(watermarks.c.conversation == conversation).scalar_subquery()
    )
    return func.greatest(select_discard_watermark(timeline), func.coalesce(own_watermark, 0))
