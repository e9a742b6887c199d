"""Lookup of messages by event id, with the messages around them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, asc, case, desc, func, select, true, union_all

from mnemon_contracts.events.chat import Role
from mnemon_infra.database.engine import Connection, Lookup, is_storable, parameter, query
from mnemon_infra.database.projections import event_order as parts
from mnemon_infra.database.projections.event_order import bind_owner, is_owned
from mnemon_infra.database.tables import messages

AROUND: Final = 2
"""Number of messages before a hit, and after it, that are read with it."""


class MessageLookup(NamedTuple):
    """A request for messages by event id, and for the messages around the first `anchor_count` of them."""

    tenant: str
    user: str
    event_ids: Sequence[str]
    anchor_count: int = 0


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
        messages: all these messages, by log position.
        following: log position of the next message of the conversation, by log position of a message. Only
            messages around one of the first `anchor_count` requested messages have an entry.
    """

    messages: dict[int, VisibleMessage]
    following: dict[int, int]


_END: Final = 2**63 - 1
_MESSAGE_COLUMNS: Final = "seq", "event_id", "role", "content", "name", "sent_at"


def _select_found() -> Select[Any]:
    """Select the messages with their conversations, and the watermarks of the conversations.

    A message also has the span that it lies in, if the span is one of its conversation.
    """
    timeline = parts.select_timeline()
    spans = parts.select_spans(timeline)
    cleared = parts.select_clear_watermarks(spans)
    wanted = func.unnest(parameter("event_ids", list[str])).table_valued("event_id").render_derived()
    # One lookup per id, each as the first id from there on: only the primary key has that order. For a test
    # of equality, PostgreSQL without statistics takes another index and scans all messages of the user.
    said = (
        select(messages)
        .where(is_owned(messages), messages.c.event_id >= wanted.c.event_id)
        .order_by(messages.c.event_id)
        .limit(1)
        .lateral("said")
    )
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
    return select(
        *marked.c[VisibleMessage._fields],
        marked.c.watermark,
        func.coalesce(func.lower(marked.c.span), _END),
        case((marked.c.span.is_(None), 0), else_=func.coalesce(func.upper(marked.c.span), _END)),
    ).where(marked.c.seq > marked.c.watermark)


def _select_neighbours() -> Select[Any]:
    """Select the messages next to a message: they name its conversation, or are on `-` within its span."""
    seq, conversation = parameter("seq", int), parameter("conversation", str)
    lower = func.greatest(parameter("watermark", int), parameter("begun", int) - 1)
    named = messages.c.conversation == conversation, parameter("watermark", int), _END
    on_current = messages.c.conversation.is_(None), lower, parameter("ended", int)
    # Index scans, each of which stops at the limit, as in `user_memory`.
    scans = (
        select(*messages.c[_MESSAGE_COLUMNS], conversation)
        .where(
            is_owned(messages),
            messages.c.role.isnot(None),
            place,
            messages.c.seq > low,
            messages.c.seq < high,
        )
        .order_by(order(messages.c.conversation), order(messages.c.seq))
        .limit(AROUND)
        for place, above, below in (named, on_current)
        for low, high, order in ((above, seq, desc), (seq, below, asc))
    )
    return select(union_all(*scans).subquery("beside"))


_FOUND = Lookup(_select_found())
_NEIGHBOURS = Lookup(_select_neighbours())


@query
async def load_visible_messages(
    connection: Connection, lookups: Sequence[MessageLookup]
) -> list[list[VisibleMessage]]:
    """Return the requested messages that are visible, by log position."""
    found = await _FOUND.fetch_each(connection, [_bind_lookup(each) for each in lookups])
    return [sorted(_make_message(row) for row in rows) for rows in found]


@query
async def load_surroundings(connection: Connection, lookups: Sequence[MessageLookup]) -> list[Surroundings]:
    """Return the requested messages that are visible, with the messages around them."""
    found = await _FOUND.fetch_each(connection, [_bind_lookup(each) for each in lookups])
    anchors = [
        {"of_tenant": each.tenant, "of_user": each.user}
        | {"seq": row[0], "conversation": row[6], "watermark": row[7], "begun": row[8], "ended": row[9]}
        for each, rows in zip(lookups, found, strict=True)
        for row in _choose_surrounded(each, rows)
    ]
    beside = iter(await _NEIGHBOURS.fetch_each(connection, anchors))
    return [
        _make_surroundings(
            map(_make_message, rows),
            [(_make_message(row), next(beside)) for row in _choose_surrounded(each, rows)],
        )
        for each, rows in zip(lookups, found, strict=True)
    ]


def _bind_lookup(lookup: MessageLookup) -> dict[str, Any]:
    return bind_owner(lookup.tenant, lookup.user) | {"event_ids": [*filter(is_storable, lookup.event_ids)]}


def _make_message(row: Sequence[Any]) -> VisibleMessage:
    return VisibleMessage._make(row[: len(VisibleMessage._fields)])


def _choose_surrounded(lookup: MessageLookup, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    first = set(lookup.event_ids[: lookup.anchor_count])
    return [row for row in rows if row[1] in first]


def _make_surroundings(
    messages: Iterable[VisibleMessage], neighbours: Iterable[tuple[VisibleMessage, Iterable[tuple[Any, ...]]]]
) -> Surroundings:
    around = Surroundings({each.seq: each for each in messages}, {})
    for message, rows in neighbours:
        stretch = sorted((message, *map(_make_message, rows)))
        # Two scans contributed to each side: keep the nearest messages.
        place = stretch.index(message)
        stretch = stretch[max(0, place - AROUND) : place + AROUND + 1]
        around.messages.update((each.seq, each) for each in stretch)
        around.following.update((one.seq, next_one.seq) for one, next_one in pairwise(stretch))
    return around
