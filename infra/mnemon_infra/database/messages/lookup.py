"""Lookup of messages by event id, with the messages around them, and by the period of their `sent_at`."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    any_,
    asc,
    case,
    cast,
    desc,
    func,
    null,
    select,
    true,
    union_all,
)

from mnemon_contracts.events.chat import Role
from mnemon_infra.database.engine import Connection, Lookup, is_storable, make_parameter, query
from mnemon_infra.database.query_parts import event_order as parts
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.tables import messages

AROUND: Final = 2
"""Maximum number of messages before a hit, and after it, that are read with it."""

SAMPLE_FACTOR: Final = 4
"""Number of messages of a period to look at, as a multiple of those to return: some may be removed."""


class MessageLookup(NamedTuple):
    """A request for messages by event id, and for the messages around the first `anchor_count` of them."""

    tenant: str
    user: str
    event_ids: Sequence[str]
    anchor_count: int = 0


class PeriodLookup(NamedTuple):
    """A request for messages that were sent from `start` up to, but not including, `end`.

    Of a period with more than `limit` messages, the lookup returns `limit` of them, spread evenly in log
    order. It looks at no more than `SAMPLE_FACTOR` times `limit` messages, so that it returns fewer if most
    messages of the period are removed.
    """

    tenant: str
    user: str
    start: datetime
    end: datetime
    limit: int


class VisibleMessage(NamedTuple):
    """A visible message; messages sort by log position."""

    seq: int
    event_id: str
    role: Role
    content: str
    name: str | None
    sent_at: datetime
    conversation: str


class Surroundings(NamedTuple):
    """Requested messages, and the messages around some of them.

    Attributes:
        messages: all these messages, with their log positions as keys.
        following: for the log position of a message, that of the next message of its conversation. Only the
            first `anchor_count` requested messages, and those around them, have an entry.
    """

    messages: dict[int, VisibleMessage]
    following: dict[int, int]


_MESSAGE_COLUMNS: Final = "seq", "event_id", "role", "content", "name", "sent_at"


def _select_found() -> CTE:
    """Select the requested messages that are visible, with the columns of `_select_visible_messages`."""
    event_ids = func.unnest(make_parameter("event_ids", list[str]))
    return _select_visible_messages(event_ids.table_valued("event_id").render_derived())


def _select_visible_messages(wanted: FromClause) -> CTE:
    """Select messages that are visible, each with the watermark of its conversation and its span.

    `begun` and `ended` are the bounds of the span that the message lies in. If the span belongs to a
    conversation other than the message's, `begun` exceeds `ended`, so that no position lies between them.

    Args:
        wanted: the event ids of the messages, in the column `event_id`.
    """
    # One lookup per id, each as the first id from there on: only the primary key has that order. For a test
    # of equality, PostgreSQL without statistics takes another index and scans all messages of the user.
    said = (
        select(messages)
        .where(is_owned(messages), messages.c.event_id >= wanted.c.event_id)
        .order_by(messages.c.event_id)
        .limit(1)
        .lateral("said")
    )
    timeline = parts.select_timeline()
    spans = parts.select_spans(timeline)
    cleared = parts.select_clear_watermarks(spans)
    conversation = func.coalesce(said.c.conversation, spans.c.conversation).label("conversation")
    placed = (
        select(
            *said.c[_MESSAGE_COLUMNS],
            conversation,
            case((spans.c.conversation == conversation, spans.c.span)).label("span"),
        )
        .select_from(wanted.join(said, true()).join(spans, said.c.seq.op("<@")(spans.c.span)))
        .where(said.c.event_id == wanted.c.event_id, said.c.role.isnot(None))
        .subquery("placed")
    )
    watermark = func.greatest(parts.select_discard_watermark(timeline), func.coalesce(cleared.c.seq, 0))
    marked = (
        select(placed, watermark.label("watermark"))
        .outerjoin_from(placed, cleared, cleared.c.conversation == placed.c.conversation)
        .subquery("marked")
    )
    ended = case((marked.c.span.is_(None), 0), else_=func.coalesce(func.upper(marked.c.span), parts.OPEN_END))
    return (
        select(
            *marked.c[VisibleMessage._fields],
            marked.c.watermark,
            func.coalesce(func.lower(marked.c.span), parts.OPEN_END).label("begun"),
            ended.label("ended"),
        )
        .where(marked.c.seq > marked.c.watermark)
        .cte("found")
    )


def _select_period() -> Select[Any]:
    """Select visible messages of a period, at most as many as the parameter `at_most`, spread evenly.

    Whether a message is visible takes a join with all conversations of the user, so only `SAMPLE_FACTOR`
    times as many messages are looked at.
    """
    start, end = (make_parameter(name, datetime) for name in ("sent_from", "sent_before"))
    limit = make_parameter("at_most", int)
    said = (
        select(messages.c.event_id, messages.c.seq)
        .where(
            is_owned(messages),
            messages.c.role.isnot(None),
            messages.c.sent_at >= start,
            messages.c.sent_at < end,
        )
        .subquery("said")
    )
    sample = _select_spread(said, SAMPLE_FACTOR * limit).subquery("sample")
    found = _select_visible_messages(sample)
    visible = select(*found.c[VisibleMessage._fields]).subquery("visible")
    return _select_spread(visible, limit)


def _select_spread(rows: FromClause, limit: ColumnElement[int]) -> Select[Any]:
    """Select at most `limit` rows, spread evenly over all rows in the order of `seq`."""
    place = func.row_number().over(order_by=rows.c.seq)
    numbered = select(rows, place.label("place"), func.count().over().label("total")).subquery()
    before, upto = (each * limit // numbered.c.total for each in (numbered.c.place - 1, numbered.c.place))
    return select(*numbered.c[*rows.c.keys()]).where(upto > before)


def _select_visible() -> Select[Any]:
    found = _select_found()
    return select(*found.c[VisibleMessage._fields])


def _select_surroundings() -> Select[Any]:
    """Select the requested messages that are visible, and the messages before and after each anchor.

    An anchor is a requested message whose id is in the parameter `anchors`. A message around it names its
    conversation, or is on `-` within its span. The last column is the log position of the anchor; null in
    the rows of the requested messages.
    """
    found = _select_found()
    lower = func.greatest(found.c.watermark, found.c.begun - 1)
    named = messages.c.conversation == found.c.conversation, found.c.watermark, parts.OPEN_END
    on_current = messages.c.conversation.is_(None), lower, found.c.ended
    # Index scans, each of which stops at the limit, as in `user_memory`.
    scans = (
        select(*messages.c[_MESSAGE_COLUMNS])
        .where(
            is_owned(messages),
            messages.c.role.isnot(None),
            place,
            messages.c.seq > low,
            messages.c.seq < high,
        )
        .order_by(order(messages.c.conversation), order(messages.c.seq))
        .limit(AROUND)
        .correlate(found)
        for place, above, below in (named, on_current)
        for low, high, order in ((above, found.c.seq, desc), (found.c.seq, below, asc))
    )
    beside = union_all(*scans).lateral("beside")
    neighbours = (
        select(*beside.c[_MESSAGE_COLUMNS], found.c.conversation, found.c.seq)
        .select_from(found.join(beside, true()))
        .where(found.c.event_id == any_(make_parameter("anchors", list[str])))
    )
    requested = select(*found.c[VisibleMessage._fields], cast(null(), BigInteger))
    return select(union_all(requested, neighbours).subquery("surroundings"))


_VISIBLE = Lookup(_select_visible())
_PERIOD = Lookup(_select_period())
_SURROUNDINGS = Lookup(_select_surroundings())


@query
async def load_visible_messages(
    connection: Connection, lookups: Sequence[MessageLookup]
) -> list[list[VisibleMessage]]:
    """Return, for each lookup, the requested messages that are visible, in log order."""
    found = await _VISIBLE.fetch_each(connection, [_bind_lookup(each) for each in lookups])
    return [sorted(map(VisibleMessage._make, rows)) for rows in found]


@query
async def load_surroundings(connection: Connection, lookups: Sequence[MessageLookup]) -> list[Surroundings]:
    """Return, for each lookup, the requested messages that are visible, and those around its anchors.

    The anchors are the first `anchor_count` of the requested messages.
    """
    parameters = [_bind_lookup(each) | {"anchors": _list_anchors(each)} for each in lookups]
    return [_make_surroundings(rows) for rows in await _SURROUNDINGS.fetch_each(connection, parameters)]


@query
async def load_messages_of_periods(
    connection: Connection, lookups: Sequence[PeriodLookup]
) -> list[list[VisibleMessage]]:
    """Return, for each lookup, at most `limit` visible messages of the period, in log order."""
    parameters = [
        bind_owner(each.tenant, each.user)
        | {
            "sent_from": each.start.isoformat(),
            "sent_before": each.end.isoformat(),
            "at_most": each.limit,
        }
        for each in lookups
    ]
    found = await _PERIOD.fetch_each(connection, parameters)
    return [sorted(map(VisibleMessage._make, rows)) for rows in found]


def _bind_lookup(lookup: MessageLookup) -> dict[str, Any]:
    return bind_owner(lookup.tenant, lookup.user) | {"event_ids": [*filter(is_storable, lookup.event_ids)]}


def _list_anchors(lookup: MessageLookup) -> list[str]:
    return [*filter(is_storable, lookup.event_ids[: lookup.anchor_count])]


def _make_surroundings(rows: Iterable[tuple[Any, ...]]) -> Surroundings:
    around = Surroundings({}, {})
    neighbours: dict[int, list[VisibleMessage]] = {}
    for *fields, anchor in rows:
        message = VisibleMessage._make(fields)
        if anchor is None:
            around.messages[message.seq] = message
        else:
            neighbours.setdefault(anchor, []).append(message)
    for seq, beside in neighbours.items():
        message = around.messages[seq]
        stretch = sorted((message, *beside))
        # Two scans contributed to each side: keep the nearest messages.
        place = stretch.index(message)
        stretch = stretch[max(0, place - AROUND) : place + AROUND + 1]
        around.messages.update((each.seq, each) for each in stretch)
        around.following.update((one.seq, next_one.seq) for one, next_one in pairwise(stretch))
    return around
