"""Looking up messages that were found elsewhere: which may be shown, and what was said around them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Select,
    Text,
    asc,
    bindparam,
    case,
    desc,
    func,
    select,
    true,
    union_all,
)

from mnemon_contracts.events.chat import Role
from mnemon_infra.database.engine import Connection, Lookup, Query, is_storable
from mnemon_infra.database.projections import event_order as parts
from mnemon_infra.database.projections.event_order import owned, owner
from mnemon_infra.database.tables import messages

AROUND: Final = 2
"""Messages before one that was found, and after it, which are looked up with it."""


class MessageLookup(NamedTuple):
    """Which messages, by event id; the surroundings of the first `surrounded` of them."""

    tenant: str
    user: str
    event_ids: Sequence[str]
    surrounded: int = 0


class VisibleMessage(NamedTuple):
    """A message that is not gone; they sort by log position."""

    seq: int
    event_id: str
    role: Role
    content: str
    name: str | None
    sent_at: datetime
    conversation: str


class Surroundings(NamedTuple):
    """Messages that were wanted, and those next to them.

    Attributes:
        messages: by log position.
        following: of a message, the one after it in its conversation; known from `AROUND` messages before
            each that is surrounded up to as many after it.
    """

    messages: dict[int, VisibleMessage]
    following: dict[int, int]


_END: Final = 2**63 - 1
_SAID: Final = "seq", "event_id", "role", "content", "name", "sent_at"


def _found() -> Select[Any]:
    """The messages, each with the floor of its conversation, and the span that it lies in if that is its."""
    timeline = parts.timeline()
    spans = parts.spans(timeline)
    cleared = parts.cleared(spans)
    wanted = func.unnest(bindparam("event_ids", type_=ARRAY(Text))).table_valued("event_id").render_derived()
    # One by one, each as the first from there on: in that order the key alone has them. Asked for equality,
    # PostgreSQL without statistics takes another index, and looks through all that the user said.
    said = (
        select(messages)
        .where(owned(messages), messages.c.event_id >= wanted.c.event_id)
        .order_by(messages.c.event_id)
        .limit(1)
        .lateral("said")
    )
    conversation = func.coalesce(said.c.conversation, spans.c.conversation).label("conversation")
    placed = (
        select(
            *(said.c[name] for name in _SAID),
            conversation,
            case((spans.c.conversation == conversation, spans.c.span)).label("span"),
        )
        .select_from(wanted.join(said, true()).join(spans, said.c.seq.op("<@")(spans.c.span)))
        .where(said.c.event_id == wanted.c.event_id, said.c.role.isnot(None))
        .subquery("placed")
    )
    floor = func.greatest(parts.discarded(timeline), func.coalesce(cleared.c.seq, 0))
    floored = (
        select(placed, floor.label("floor"))
        .outerjoin_from(placed, cleared, cleared.c.conversation == placed.c.conversation)
        .subquery("floored")
    )
    return select(
        *(floored.c[name] for name in VisibleMessage._fields),
        floored.c.floor,
        func.coalesce(func.lower(floored.c.span), _END),
        case((floored.c.span.is_(None), 0), else_=func.coalesce(func.upper(floored.c.span), _END)),
    ).where(floored.c.seq > floored.c.floor)


def _beside() -> Select[Any]:
    """What stands next to one message: said to its conversation by name, or on `-` within its span."""
    seq, conversation = bindparam("seq", type_=BigInteger), bindparam("conversation", type_=Text)
    lower = func.greatest(bindparam("floor", type_=BigInteger), bindparam("begun", type_=BigInteger) - 1)
    named = messages.c.conversation == conversation, bindparam("floor", type_=BigInteger), _END
    on_current = messages.c.conversation.is_(None), lower, bindparam("ended", type_=BigInteger)
    # As for the newest messages: scans of the index, each of which ends at the limit.
    scans = (
        select(*(messages.c[name] for name in _SAID), conversation)
        .where(
            owned(messages), messages.c.role.isnot(None), place, messages.c.seq > low, messages.c.seq < high
        )
        .order_by(order(messages.c.conversation), order(messages.c.seq))
        .limit(AROUND)
        for place, above, below in (named, on_current)
        for low, high, order in ((above, seq, desc), (seq, below, asc))
    )
    return select(union_all(*scans).subquery("beside"))


_FOUND = Lookup(_found())
_BESIDE = Lookup(_beside())


def visible(wanted: Sequence[MessageLookup]) -> Query[list[list[VisibleMessage]]]:
    """Those of the messages that may be shown, by log position."""

    async def query(connection: Connection) -> list[list[VisibleMessage]]:
        found = await _FOUND.rows(connection, [_parameters(each) for each in wanted])
        return [sorted(_message(row) for row in rows) for rows in found]

    return query


def surroundings(wanted: Sequence[MessageLookup]) -> Query[list[Surroundings]]:
    """Those of the messages that may be shown, and what stands around them."""

    async def query(connection: Connection) -> list[Surroundings]:
        found = await _FOUND.rows(connection, [_parameters(each) for each in wanted])
        anchors = [
            {"of_tenant": each.tenant, "of_user": each.user}
            | {"seq": row[1], "conversation": row[7], "floor": row[8], "begun": row[9], "ended": row[10]}
            for each, rows in zip(wanted, found, strict=True)
            for row in _surrounded(each, rows)
        ]
        beside = iter(await _BESIDE.rows(connection, anchors))
        return [
            _surroundings(
                map(_message, rows), [(_message(row), next(beside)) for row in _surrounded(each, rows)]
            )
            for each, rows in zip(wanted, found, strict=True)
        ]

    return query


def _parameters(wanted: MessageLookup) -> dict[str, Any]:
    return owner(wanted.tenant, wanted.user) | {"event_ids": [*filter(is_storable, wanted.event_ids)]}


def _message(row: Sequence[Any]) -> VisibleMessage:
    return VisibleMessage._make(row[1 : 1 + len(VisibleMessage._fields)])


def _surrounded(wanted: MessageLookup, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    first = set(wanted.event_ids[: wanted.surrounded])
    return [row for row in rows if row[2] in first]


def _surroundings(
    found: Iterable[VisibleMessage], beside: Iterable[tuple[VisibleMessage, Iterable[tuple[Any, ...]]]]
) -> Surroundings:
    around = Surroundings({each.seq: each for each in found}, {})
    for message, rows in beside:
        stretch = sorted((message, *map(_message, rows)))
        # Two scans gave each side: of what they gave, the nearest.
        place = stretch.index(message)
        stretch = stretch[max(0, place - AROUND) : place + AROUND + 1]
        around.messages.update((each.seq, each) for each in stretch)
        around.following.update((one.seq, next_one.seq) for one, next_one in pairwise(stretch))
    return around
