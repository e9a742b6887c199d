"""Counts of the visible messages of a conversation between log positions, without their contents."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, func, select, true, union_all

from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.query_parts import event_order as parts
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.tables import messages


class CountedConversation(NamedTuple):
    """The messages to count: those of a conversation below a log position.

    Attributes:
        edges: ascending log positions at which a new count begins; messages before the first edge have a
            count of their own.
        below: only messages before this log position are counted.
    """

    tenant: str
    user: str
    conversation: str
    edges: tuple[int, ...]
    below: int


class MessageCount(NamedTuple):
    """Number of consecutive messages. `from_seq` is the edge at which they begin; 0 before the first edge."""

    from_seq: int
    messages: int


def _select_counts() -> Select[Any]:
    conversation = make_parameter("conversation", str)
    timeline = parts.select_timeline()
    spans = parts.select_spans(timeline)
    lowest = parts.select_watermark(timeline, spans, conversation).label("seq")
    all_spans = func.range_agg(spans.c.span).label("spans")
    # Materialized: otherwise each of the two scans would derive watermark and spans again.
    place = (
        select(lowest, select(all_spans).where(spans.c.conversation == conversation).scalar_subquery())
        .cte("place")
        .prefix_with("MATERIALIZED")
    )
    watermark, covered = place.c
    edge = func.width_bucket(messages.c.seq, make_parameter("edges", list[int])).label("edge")
    counted = and_(
        is_owned(messages),
        messages.c.role.isnot(None),
        messages.c.seq > watermark,
        messages.c.seq < make_parameter("below", int),
    )
    on_current = and_(
        messages.c.conversation.is_(None),
        messages.c.seq.op("<@")(covered),
        # A redundant condition for the index: it sets where the scan ends.
        messages.c.seq < func.coalesce(func.upper(covered), parts.OPEN_END),
    )
    scans = (
        select(edge).select_from(messages.join(place, true())).where(counted, where)
        for where in (messages.c.conversation == conversation, on_current)
    )
    both = union_all(*scans).subquery("both")
    return select(both.c.edge, func.count()).group_by(both.c.edge)


_COUNTS = Lookup(_select_counts())


@query
async def count_messages(
    connection: Connection, keys: Sequence[CountedConversation]
) -> list[list[MessageCount]]:
    """Return the counts of messages before, between and after the edges of each conversation, oldest first.

    Counts of 0 are left out.
    """
    parameters: list[dict[str, Any]] = [
        bind_owner(each.tenant, each.user)
        | {"conversation": each.conversation, "edges": [0, *each.edges], "below": each.below}
        for each in keys
    ]
    found = await _COUNTS.fetch_each(connection, parameters)
    return [
        sorted(MessageCount((0, *each.edges)[edge - 1], count) for edge, count in rows)
        for each, rows in zip(keys, found, strict=True)
    ]
