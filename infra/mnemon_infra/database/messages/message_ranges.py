"""Messages of ranges of log positions with all their content, in pages of a limited size."""

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, FromClause, Select, func, select, true, union_all
from sqlalchemy.dialects.postgresql import INT8RANGE

from mnemon_contracts.events.chat import Role
from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.query_parts import event_order as parts
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.tables import messages

PAGE_BYTES: Final = 8 * 1024 * 1024
"""Maximum number of bytes of a page, unless its only message is longer. A statement for such a page takes far
less time than `STATEMENT_TIMEOUT`."""


class MessageRange(NamedTuple):
    """A range of log positions of one conversation, from `from_seq` to `to_seq` inclusive."""

    tenant: str
    user: str
    conversation: str
    from_seq: int
    to_seq: int


class SpokenRow(NamedTuple):
    """A message with all its content; messages sort by log position."""

    seq: int
    event_id: str
    role: Role
    content: str
    name: str | None
    task_id: str | None
    tool_calls: Sequence[Any] | None
    metadata: dict[str, Any] | None
    sent_at: datetime


_CONVERSATION: Final = make_parameter("conversation", str)
_FROM: Final = make_parameter("from_seq", int)
_TO: Final = make_parameter("to_seq", int)


def _select_range(*columns: ColumnElement[Any]) -> Select[Any]:
    """Select columns of the visible messages of a range."""
    timeline = parts.select_timeline()
    spans = parts.select_spans(timeline)
    lowest = parts.select_watermark(timeline, spans, _CONVERSATION)
    # Materialized: otherwise each of the scans would derive the watermark again.
    watermark = select(lowest.label("seq")).cte("watermark").prefix_with("MATERIALIZED")
    positions = func.int8range(_FROM, _TO, "[]", type_=INT8RANGE)
    overlaps = (
        select((spans.c.span * positions).label("span"))
        .where(spans.c.conversation == _CONVERSATION, spans.c.span.op("&&")(positions))
        .cte("overlaps")
    )

    def select_scan(*place: ColumnElement[bool]) -> Select[Any]:
        beyond = messages.c.seq > select(watermark.c.seq).scalar_subquery()
        return select(*columns).where(is_owned(messages), messages.c.role.isnot(None), beyond, *place)

    named = select_scan(
        messages.c.conversation == _CONVERSATION, messages.c.seq >= _FROM, messages.c.seq <= _TO
    )
    on_current = select_scan(
        messages.c.conversation.is_(None),
        messages.c.seq >= func.lower(overlaps.c.span),
        messages.c.seq < func.upper(overlaps.c.span),
    ).correlate(overlaps)
    within = on_current.lateral("within")
    return select(
        union_all(named, select(*within.c).select_from(overlaps.join(within, true()))).subquery("spoken")
    )


def measure_message(row: FromClause, *objects: str) -> ColumnElement[int]:
    """Return the expression for the size of a message in bytes: its content, and its JSON columns as stored.

    `objects` names the JSON columns. PostgreSQL computes the sum without reading a long content.
    """
    stored = (func.coalesce(func.pg_column_size(row.c[name]), 0) for name in objects)
    return sum(stored, func.coalesce(func.octet_length(row.c.content), 0)).label("bytes")


_SIZES: Final = Lookup(_select_range(messages.c.seq, measure_message(messages, "tool_calls", "metadata")))
_SPOKEN: Final = Lookup(_select_range(*messages.c[SpokenRow._fields]))


async def stream_messages(
    connection: Connection, ranges: Sequence[MessageRange]
) -> AsyncIterator[tuple[int, list[SpokenRow]]]:
    """Yield the visible messages of each range, oldest first, while they are loaded page by page.

    A caller that keeps only a part of each message has one page in memory at a time: at most `PAGE_BYTES`, or
    one longer message. `tool_calls` and `metadata` count with their stored, compressed size.

    Yields:
        The index of a range, and the next of its messages. A long range is yielded in several parts; a range
        without messages is not yielded.
    """
    sizes = await _SIZES.fetch_each(connection, [_bind_range(each) for each in ranges])
    for page in _split_pages(ranges, sizes):
        found = await _SPOKEN.fetch_each(connection, [_bind_range(part) for _, part in page])
        for (number, _), rows in zip(page, found, strict=True):
            yield number, sorted(map(SpokenRow._make, rows))


@query
async def check_ranges(connection: Connection, ranges: Sequence[MessageRange]) -> list[bool]:
    """Return for each range whether it has a visible message."""
    return [
        bool(rows) for rows in await _SIZES.fetch_each(connection, [_bind_range(each) for each in ranges])
    ]


def _split_pages(
    ranges: Sequence[MessageRange], sizes: Sequence[Sequence[tuple[Any, ...]]]
) -> Iterator[list[tuple[int, MessageRange]]]:
    """Yield pages of parts of ranges, each part with the number of its range.

    Args:
        ranges: the ranges.
        sizes: for each range its messages as pairs of log position and bytes, in no particular order.
    """
    page: list[tuple[int, MessageRange]] = []
    room = PAGE_BYTES
    for number, (whole, measured) in enumerate(zip(ranges, sizes, strict=True)):
        for seq, size in sorted(measured):
            if page and size > room:
                yield page
                page, room = [], PAGE_BYTES
            room -= size
            if page and page[-1][0] == number:
                page[-1] = number, page[-1][1]._replace(to_seq=seq)
            else:
                page.append((number, whole._replace(from_seq=seq, to_seq=seq)))
    if page:
        yield page


def _bind_range(of: MessageRange) -> dict[str, Any]:
    return bind_owner(of.tenant, of.user) | {
        "conversation": of.conversation,
        "from_seq": of.from_seq,
        "to_seq": of.to_seq,
    }
