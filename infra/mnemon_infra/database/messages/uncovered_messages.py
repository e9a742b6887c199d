"""Oldest messages of each conversation that no summary, or no window of extraction, covers yet.

Covered messages are not read: each conversation has a position above which no message is covered.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import (
    ARRAY,
    CTE,
    BigInteger,
    ColumnElement,
    Select,
    Text,
    and_,
    cast,
    column,
    false,
    func,
    literal,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import JSONB

from mnemon_contracts.events.chat import FROM_MEMORY, Role
from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.query_parts import event_order as parts
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.query_parts.item_states import SUMMARIES, extract_position
from mnemon_infra.database.tables import memory_events as events
from mnemon_infra.database.tables import messages, windows

CoveredBy = Literal["summaries", "windows"]

BEGINNING: Final = 1000
"""Maximum number of characters of a message's content that are read. PostgreSQL reads only the beginning of a
long text, so a scan takes the same time however long the messages are."""


class UncoveredQuery(NamedTuple):
    """A query for each conversation's oldest messages that are not covered.

    Attributes:
        at_most: maximum number of messages of each conversation.
        up_to: the last log position to read. Above the applied position of `persist`, some messages may not
            have rows yet.
        conversation: restricts the query to one conversation; None takes all of them.
    """

    tenant: str
    user: str
    at_most: int
    up_to: int
    conversation: str | None = None


class MessageOutline(NamedTuple):
    """A message with only the beginning of its content; outlines sort by log position.

    Attributes:
        beginning: the first characters of the content, at most `BEGINNING`.
        is_whole: whether `beginning` is the whole content.
        is_from_memory: whether the message is marked as text from memory.
    """

    seq: int
    role: Role
    beginning: str
    is_whole: bool
    name: str | None
    is_from_memory: bool
    sent_at: datetime


class UncoveredMessages(NamedTuple):
    """The oldest messages of a conversation that are neither covered nor removed, in log order."""

    conversation: str
    messages: Sequence[MessageOutline]


_LOW: Final = make_parameter("low", int)
_HIGH: Final = make_parameter("high", int)
_AT_MOST: Final = make_parameter("at_most", int)
_CONVERSATION: Final = make_parameter("conversation", str)
_FROM_SEQ, _TO_SEQ = extract_position("from_seq"), extract_position("to_seq")


def _select_recorded_end(names: Sequence[str], places: CTE) -> ColumnElement[int]:
    """Select the last position that events with one of `names` cover.

    Only events whose range begins at or above the watermark count.
    The query takes one index lookup for each name.
    """
    name = func.unnest(literal(list(names), ARRAY(Text))).table_valued("name").render_derived("n")
    furthest = (
        select(_TO_SEQ.label("seq"))
        .where(
            is_owned(events),
            events.c.conversation == places.c.conversation,
            events.c.event == name.c.name,
            events.c.body.isnot(None),
            places.c.watermark <= _FROM_SEQ,
            places.c.watermark <= _TO_SEQ,
        )
        .order_by(_TO_SEQ.desc())
        .limit(1)
        .correlate(places, name)
        .lateral("f")
    )
    return select(func.max(furthest.c.seq)).select_from(name.join(furthest, true())).scalar_subquery()


def _select_intended_end(places: CTE) -> ColumnElement[int]:
    """Select the last position that intended batches cover; the scan reads all batches of the user."""
    windows_of_it = func.jsonb_array_elements(events.c.body["windows"])
    window = windows_of_it.table_valued(column("value", JSONB)).lateral("its")
    body = window.c.value
    return (
        select(func.max(cast(body["to_seq"].astext, BigInteger)))
        .select_from(events.join(window, true()))
        .where(
            is_owned(events),
            events.c.event == "batch.intended",
            body["conversation"].astext == places.c.conversation,
        )
        .correlate(places)
        .scalar_subquery()
    )


def _select_window_end(places: CTE) -> ColumnElement[int]:
    """Select the end of a conversation's newest window; windows do not overlap."""
    return (
        select(windows.c.to_seq)
        .where(is_owned(windows), windows.c.conversation == places.c.conversation)
        .order_by(windows.c.from_seq.desc())
        .limit(1)
        .correlate(places)
        .scalar_subquery()
    )


def _select_covered_end(by: CoveredBy, places: CTE) -> ColumnElement[int]:
    if by == "summaries":
        return _select_recorded_end(SUMMARIES, places)
    # A window in the table covers more than the events of the conversation do. Without such a window, as
    # after a rebuild, the events are read.
    return func.coalesce(
        _select_window_end(places),
        func.greatest(_select_recorded_end(["window.answered"], places), _select_intended_end(places)),
    )


def _select_uncovered_spans(by: CoveredBy) -> Select[Any]:
    """Select the position above which a conversation is not covered, with its spans above this position."""
    timeline = parts.select_timeline()
    spans = parts.select_spans(timeline)
    cleared = parts.select_clear_watermarks(spans)
    watermark = func.greatest(
        parts.select_discard_watermark(timeline), func.coalesce(func.max(cleared.c.seq), 0)
    )
    conversation = timeline.c.conversation
    places = (
        select(conversation, watermark.label("watermark"))
        .outerjoin(cleared, cleared.c.conversation == conversation)
        .where(or_(_CONVERSATION.is_(None), conversation == _CONVERSATION))
        .group_by(conversation)
        .cte("places")
    )
    covered = func.coalesce(_select_covered_end(by, places), 0)
    # Materialized: otherwise the joined spans would derive the position again.
    begun = (
        select(places.c.conversation, func.greatest(places.c.watermark, covered).label("beyond"))
        .cte("begun")
        .prefix_with("MATERIALIZED")
    )
    ends = func.coalesce(func.upper(spans.c.span), parts.OPEN_END)
    reaches = and_(spans.c.conversation == begun.c.conversation, ends > begun.c.beyond)
    return select(begun.c.conversation, begun.c.beyond, func.lower(spans.c.span), ends).select_from(
        begun.outerjoin(spans, reaches)
    )


def _select_between(*columns: ColumnElement[Any]) -> Select[Any]:
    """Select the oldest messages between the parameters `low` and `high`, both excluded, at most `at_most`.

    The messages are those that name the parameter `conversation`; if it is null, those on `-`.
    """
    # Sort by the conversation too, although it is the same in all rows: this is the order of the index.
    order = messages.c.conversation, messages.c.seq
    scans = (
        select(*columns)
        .where(
            is_owned(messages),
            messages.c.role.isnot(None),
            place,
            messages.c.seq > _LOW,
            messages.c.seq < _HIGH,
        )
        .order_by(*order)
        .limit(_AT_MOST)
        for place in (
            messages.c.conversation == _CONVERSATION,
            and_(_CONVERSATION.is_(None), messages.c.conversation.is_(None)),
        )
    )
    return select(union_all(*scans).subquery("between"))


_SPANS_AFTER_SUMMARIES: Final = Lookup(_select_uncovered_spans("summaries"))
_SPANS_AFTER_WINDOWS: Final = Lookup(_select_uncovered_spans("windows"))
_UNCOVERED_SPANS: Final = {"summaries": _SPANS_AFTER_SUMMARIES, "windows": _SPANS_AFTER_WINDOWS}
_BETWEEN: Final = Lookup(
    _select_between(
        messages.c.seq,
        messages.c.role,
        func.left(messages.c.content, BEGINNING).label("beginning"),
        (func.char_length(func.left(messages.c.content, BEGINNING + 1)) <= BEGINNING).label("is_whole"),
        messages.c.name,
        func.coalesce(messages.c.metadata[FROM_MEMORY] == func.to_jsonb(true()), false()).label(
            "is_from_memory"
        ),
        messages.c.sent_at,
    )
)
_COUNT_BETWEEN: Final = Lookup(
    select(func.count()).select_from(_select_between(messages.c.seq).subquery("counted"))
)


@query
async def load_uncovered_messages(
    connection: Connection, queries: Sequence[UncoveredQuery], covered_by: CoveredBy
) -> list[list[UncoveredMessages]]:
    """Return, for each query, the messages that nothing in `covered_by` covers, grouped by conversation.

    Of each conversation, the oldest `at_most` messages are returned. Conversations without such messages are
    left out.
    """
    places = await _list_scans(connection, queries, covered_by)
    found = iter(await _BETWEEN.fetch_each(connection, [scan for _, _, scan in places]))
    found_messages: list[dict[str, list[MessageOutline]]] = [{} for _ in queries]
    for number, conversation, _ in places:
        if rows := next(found):
            said = found_messages[number].setdefault(conversation, [])
            said += [MessageOutline._make(row) for row in rows]
    return [
        [
            UncoveredMessages(conversation, sorted(said)[: request.at_most])
            for conversation, said in sorted(of.items())
        ]
        for request, of in zip(queries, found_messages, strict=True)
    ]


@query
async def list_long_conversations(
    connection: Connection, queries: Sequence[UncoveredQuery], covered_by: CoveredBy = "summaries"
) -> list[list[str]]:
    """Return, for each query, the conversations with at least `at_most` uncovered messages."""
    places = await _list_scans(connection, queries, covered_by)
    found = await _COUNT_BETWEEN.fetch_each(connection, [scan for _, _, scan in places])
    numbers: list[Counter[str]] = [Counter() for _ in queries]
    for (number, conversation, _), ((count,),) in zip(places, found, strict=True):
        numbers[number][conversation] += count
    return [
        [conversation for conversation in sorted(of) if of[conversation] >= request.at_most]
        for request, of in zip(queries, numbers, strict=True)
    ]


async def _list_scans(
    connection: Connection, queries: Sequence[UncoveredQuery], by: CoveredBy
) -> list[tuple[int, str, dict[str, Any]]]:
    """List the scans to run: number of the query, conversation, and parameters of `_select_between`."""
    begun = await _UNCOVERED_SPANS[by].fetch_each(
        connection,
        [bind_owner(each.tenant, each.user) | {"conversation": each.conversation} for each in queries],
    )
    scans: list[tuple[int, str, dict[str, Any]]] = []
    for number, (request, rows) in enumerate(zip(queries, begun, strict=True)):
        bounds = {"of_tenant": request.tenant, "of_user": request.user, "at_most": request.at_most}
        high = request.up_to + 1
        for conversation, beyond in {row[:2] for row in rows}:
            named = {"conversation": conversation, "low": beyond, "high": high}
            scans.append((number, conversation, bounds | named))
        for conversation, beyond, begins, ends in rows:
            if begins is not None:
                span = {"conversation": None, "low": max(beyond, begins - 1), "high": min(ends, high)}
                scans.append((number, conversation, bounds | span))
    return scans
