"""Queries that derive summaries from the rows of their events and the watermarks of their conversations."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ARRAY, ColumnElement, Select, Text, exists, func, literal, select, true, tuple_

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.memory.user_memory import NewestMessagesQuery
from mnemon_infra.database.query_parts import event_order as parts
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.query_parts.item_states import IS_WANTED, SUMMARIES, extract_position, has_name
from mnemon_infra.database.tables import memory_events as events

SLACK: Final = 8
"""Number of summaries that a query reads beyond its limit: one summary may replace several others."""


class ConversationSummary(NamedTuple):
    """A summary that was not merged into another one; instances sort by log position."""

    seq: int
    id: str
    event_id: str
    conversation: str
    from_seq: int
    to_seq: int
    at: datetime
    text: str


class StoredSummary(NamedTuple):
    """A summary that was not merged into another one; instances sort by the range that they cover."""

    from_seq: int
    to_seq: int
    event_id: str
    seq: int
    at: datetime
    id: str
    text: str


_AT_MOST = make_parameter("at_most", int)
_TO_SEQ = extract_position("to_seq")


def _select_newest() -> Select[Any]:
    timeline = parts.select_timeline()
    conversation = func.coalesce(make_parameter("conversation", str), parts.select_current(timeline))
    lowest = parts.select_watermark(timeline, parts.select_spans(timeline), conversation)
    place = (
        select(conversation.label("conversation"), lowest.label("watermark"))
        .cte("place")
        .prefix_with("MATERIALIZED")
    )
    name = func.unnest(literal(list(SUMMARIES), ARRAY(Text))).table_valued("name").render_derived("n")
    # A conversation may have thousands of summaries; only the newest are read, because they replace the rest.
    last = (
        select(events)
        .where(
            is_owned(events),
            events.c.conversation == place.c.conversation,
            events.c.event == name.c.name,
            events.c.body.isnot(None),
            place.c.watermark <= _TO_SEQ,
        )
        .order_by(_TO_SEQ.desc())
        .limit(_AT_MOST + SLACK)
        .correlate(place, name)
        .lateral("last")
    )
    newest = (
        select(
            extract_position("from_seq", last).label("from_seq"),
            extract_position("to_seq", last).label("to_seq"),
            *(last.c[each] for each in ("item", "event_id", "seq", "at", "body")),
        )
        .select_from(place.join(name, true()).join(last, true()))
        .where(place.c.watermark <= extract_position("from_seq", last))
        .cte("newest")
    )
    mergers = newest.alias("mergers")
    merged = exists().where(mergers.c.body["merged"].has_key(newest.c.item))
    columns = (newest.c[each] for each in StoredSummary._fields if each not in ("id", "text"))
    return (
        select(*columns, newest.c.item, newest.c.body["text"].astext)
        .where(~merged)
        .order_by(newest.c.to_seq.desc(), newest.c.seq.desc())
        .limit(_AT_MOST)
    )


def _select_summaries(*only: ColumnElement[bool]) -> Select[Any]:
    timeline = parts.select_timeline()
    cleared = parts.select_clear_watermarks(parts.select_spans(timeline))
    watermark = func.greatest(parts.select_discard_watermark(timeline), func.coalesce(cleared.c.seq, 0))
    from_seq = extract_position("from_seq")

    def select_standing(names: Iterable[str], *columns: ColumnElement[Any]) -> Select[Any]:
        """Select rows of summaries that do not begin below a watermark."""
        return (
            select(*columns)
            .outerjoin_from(events, cleared, cleared.c.conversation == events.c.conversation)
            .where(is_owned(events), has_name(names), events.c.body.isnot(None), watermark <= from_seq)
        )

    item = func.jsonb_array_elements_text(events.c.body["merged"]).label("item")
    merged = select_standing(SUMMARIES[1:], events.c.conversation, item).cte("merged")
    columns = (
        *events.c["seq", "item", "event_id", "conversation"],
        from_seq.label("from_seq"),
        extract_position("to_seq").label("to_seq"),
        events.c.at,
        events.c.body["text"].astext.label("text"),
    )
    # Not `exists`: without statistics, PostgreSQL would scan all merged summaries for each row.
    others = select(merged.c.conversation, merged.c.item)
    is_merged = tuple_(events.c.conversation, events.c.item).in_(others)
    return select_standing(SUMMARIES, *columns).where(~is_merged, *only)


_NEWEST = Lookup(_select_newest())
_SUMMARIES = Lookup(_select_summaries())
_BY_ID = Lookup(_select_summaries(IS_WANTED))


@query
async def load_newest_summaries(
    connection: Connection, queries: Sequence[NewestMessagesQuery]
) -> list[list[StoredSummary]]:
    """Return the newest `limit` summaries of each requested conversation, oldest first."""
    parameters: list[dict[str, Any]] = [
        bind_owner(each.tenant, each.user) | {"conversation": each.conversation, "at_most": each.limit}
        for each in queries
    ]
    found = await _NEWEST.fetch_each(connection, parameters)
    return [sorted(map(StoredSummary._make, rows)) for rows in found]


@query
async def load_summaries(connection: Connection, owners: Sequence[Owner]) -> list[list[ConversationSummary]]:
    """Return the current summaries of users, over all conversations, by log position."""
    found = await _SUMMARIES.fetch_each(connection, [bind_owner(*each) for each in owners])
    return [_make_summaries(rows) for rows in found]


@query
async def load_summaries_by_id(
    connection: Connection, keys: Sequence[tuple[Owner, Sequence[str]]]
) -> list[list[ConversationSummary]]:
    """Return each user's current summaries with these ids, by log position; missing ids are left out."""
    parameters = [bind_owner(*each) | {"items": list(ids)} for each, ids in keys]
    found = await _BY_ID.fetch_each(connection, parameters)
    return [_make_summaries(rows) for rows in found]


def _make_summaries(rows: Sequence[tuple[Any, ...]]) -> list[ConversationSummary]:
    """Make summaries from rows; of several summaries with the same id, keep only the newest."""
    stored = sorted(map(ConversationSummary._make, rows))
    return list({each.id: each for each in stored}.values())
