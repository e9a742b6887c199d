"""Queries that derive a user's messages, counts and profile from the rows of their events."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import CTE, ColumnElement, Select, and_, case, func, select, true, union_all
from sqlalchemy.dialects.postgresql import distinct_on

from mnemon_contracts.events.chat import Role
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.messages.message_ranges import measure_message
from mnemon_infra.database.query_parts import event_order as parts
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.tables import messages, profile_sets

_AT_MOST = make_parameter("at_most", int)

BEGINNING = 1000
"""Maximum number of characters of a tool's result that are read: enough to show its topic."""


VIEW_BYTES = 16 * 1024 * 1024
"""Bytes of the newest messages after which no older message is read: more than a context shows, and more than
a reply has room for, unless `max_payload` of the NATS server is larger. Tool calls count with their stored
size.
"""


class NewestMessagesQuery(NamedTuple):
    """A request for the newest `limit` messages or summaries of a conversation.

    If `conversation` is None, the query is for the current conversation. With `before`, only messages before
    this log position count; summaries ignore `before`.
    """

    tenant: str
    user: str
    conversation: str | None
    limit: int
    before: int | None = None


class TaskResultsQuery(NamedTuple):
    """A request for the newest `limit` tool results that belong to a task, in any conversation."""

    tenant: str
    user: str
    task_id: str
    limit: int


class StoredRow(NamedTuple):
    """A stored message; instances sort by log position."""

    seq: int
    event_id: str
    role: Role
    content: str
    name: str | None
    task_id: str | None
    tool_calls: Sequence[Any] | None
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class ConversationView:
    """The newest messages of one conversation, oldest first.

    Attributes:
        conversation: id of the conversation, which may have no messages.
        messages: the messages, at most as many as requested.
        complete: True if no older messages exist, besides those that are left out.
        left_out: number of older requested messages that are not read, because the newer ones reach
            `VIEW_BYTES`.
    """

    conversation: str
    messages: Sequence[StoredRow]
    complete: bool
    left_out: int = 0

    @property
    def is_whole(self) -> bool:
        """True if no older message of the conversation is missing from the view."""
        return self.complete and not self.left_out


@dataclass(frozen=True, slots=True)
class UserCounts:
    """A user's current conversation, and counts over all conversations.

    Attributes:
        conversations: number of conversations with visible messages.
        messages: number of visible messages.
        first_at: the earliest time of a visible message; None if there is none.
        last_at: the latest time of a visible message; None if there is none.
    """

    conversation: str
    conversations: int
    messages: int
    first_at: datetime | None
    last_at: datetime | None


def _select_newest_messages() -> Select[Any]:
    timeline = parts.select_timeline()
    spans = parts.select_spans(timeline)
    named = func.coalesce(make_parameter("conversation", str), parts.select_current(timeline))
    chosen = select(named.label("conversation")).cte("chosen")
    conversation = chosen.c.conversation
    all_spans = func.range_agg(spans.c.span).label("spans")
    covered = select(all_spans).where(spans.c.conversation == conversation).cte("covered")
    lowest = parts.select_watermark(timeline, spans, conversation)
    # Materialized: otherwise each of the two scans would derive the watermark again.
    watermark = select(lowest.label("seq")).select_from(chosen).cte("watermark").prefix_with("MATERIALIZED")

    shown = and_(
        is_owned(messages),
        messages.c.seq > watermark.c.seq,
        messages.c.seq < func.coalesce(make_parameter("before", int), parts.OPEN_END),
        messages.c.role.isnot(None),
    )
    on_current = and_(
        messages.c.conversation.is_(None),
        messages.c.seq.op("<@")(covered.c.spans),
        # A redundant condition for the index: it sets where the scan begins.
        messages.c.seq < func.coalesce(func.upper(covered.c.spans), parts.OPEN_END),
    )
    # Two index scans, each of which stops at the limit.
    scans = (
        select(*messages.c[StoredRow._fields])
        .where(shown, place)
        # Sort by the conversation too, although it is the same in all rows: this is the order of the index.
        .order_by(messages.c.conversation.desc(), messages.c.seq.desc())
        .limit(_AT_MOST)
        .correlate(chosen, covered, watermark)
        for place in (messages.c.conversation == conversation, on_current)
    )
    both = union_all(*scans)
    newest = both.order_by(both.selected_columns.seq.desc()).limit(_AT_MOST).lateral("newest")
    newer_bytes = func.sum(measure_message(newest, "tool_calls")).over(
        order_by=newest.c.seq.desc(), rows=(None, -1)
    )
    # PostgreSQL knows the length of a long content without reading it, and reads only what is returned.
    is_read = func.coalesce(newer_bytes, 0) < VIEW_BYTES
    fields = (
        case((is_read, newest.c[name])).label(name) if name in ("content", "tool_calls") else newest.c[name]
        for name in StoredRow._fields
    )
    return select(conversation, *fields).select_from(
        chosen.join(covered, true()).join(watermark, true()).outerjoin(newest, true())
    )


def select_visible_messages(timeline: CTE, *columns: ColumnElement[Any]) -> Select[Any]:
    """Select the visible messages, which lie above all watermarks; the first column is the conversation."""
    spans = parts.select_spans(timeline)
    cleared = parts.select_clear_watermarks(spans)
    on_current = and_(messages.c.conversation.is_(None), messages.c.seq.op("<@")(spans.c.span))
    conversation = func.coalesce(messages.c.conversation, spans.c.conversation)
    return (
        select(conversation.label("conversation"), *columns)
        .select_from(
            messages.outerjoin(spans, on_current).outerjoin(cleared, cleared.c.conversation == conversation)
        )
        .where(
            is_owned(messages),
            messages.c.role.isnot(None),
            messages.c.seq
            > func.greatest(parts.select_discard_watermark(timeline), func.coalesce(cleared.c.seq, 0)),
        )
    )


def _select_task_results() -> Select[Any]:
    beginning = func.left(messages.c.content, BEGINNING)
    return (
        select_visible_messages(parts.select_timeline(), messages.c.seq, beginning)
        .where(messages.c.role == "tool", messages.c.task_id == make_parameter("task_id", str))
        .order_by(messages.c.seq.desc())
        .limit(_AT_MOST)
    )


def _select_counts() -> Select[Any]:
    timeline = parts.select_timeline()
    visible = select_visible_messages(timeline, messages.c.sent_at).cte("visible")
    return select(
        parts.select_current(timeline),
        func.count(visible.c.conversation.distinct()),
        func.count(visible.c.sent_at),
        func.min(visible.c.sent_at),
        func.max(visible.c.sent_at),
    ).select_from(visible)


def _select_profile() -> Select[Any]:
    field = func.jsonb_each(profile_sets.c.fields).table_valued("key", "value").lateral("field")
    latest = (
        select(field.c.key, field.c.value)
        .select_from(profile_sets.join(field, true()))
        .where(is_owned(profile_sets))
        .order_by(field.c.key, profile_sets.c.seq.desc())
        .ext(distinct_on(field.c.key))
        .subquery("latest")
    )
    present = func.coalesce(
        func.jsonb_object_agg(latest.c.key, latest.c.value).filter(
            func.jsonb_typeof(latest.c.value) != "null"
        ),
        func.jsonb_build_object(),
    )
    return select(present)


_NEWEST_MESSAGES = Lookup(_select_newest_messages())
_TASK_RESULTS = Lookup(_select_task_results())
_COUNTS = Lookup(_select_counts())
_PROFILE = Lookup(_select_profile())


@query
async def load_newest_messages(
    connection: Connection, queries: Sequence[NewestMessagesQuery]
) -> list[ConversationView]:
    """Return the newest messages of each requested conversation, oldest first."""
    # One message more than requested tells whether older ones exist.
    parameters: list[dict[str, Any]] = [
        bind_owner(each.tenant, each.user)
        | {"conversation": each.conversation, "before": each.before, "at_most": each.limit + 1}
        for each in queries
    ]
    found = await _NEWEST_MESSAGES.fetch_each(connection, parameters)
    return [_make_view(rows, each.limit) for rows, each in zip(found, queries, strict=True)]


@query
async def load_task_results(connection: Connection, queries: Sequence[TaskResultsQuery]) -> list[list[str]]:
    """Return the first `BEGINNING` characters of each task's newest tool results, oldest first."""
    parameters: list[dict[str, Any]] = [
        bind_owner(each.tenant, each.user) | {"task_id": each.task_id, "at_most": each.limit}
        for each in queries
    ]
    found = await _TASK_RESULTS.fetch_each(connection, parameters)
    return [[beginning for *_, beginning in sorted(rows, key=itemgetter(1))] for rows in found]


@query
async def load_profiles(connection: Connection, owners: Sequence[Owner]) -> list[dict[str, Any]]:
    """Return the profiles of users: the latest value of each field, unless that value is null."""
    found = await _PROFILE.fetch_each(connection, [bind_owner(*each) for each in owners])
    return [fields for ((fields,),) in found]


@query
async def load_user_counts(connection: Connection, owners: Sequence[Owner]) -> list[UserCounts]:
    """Count the visible messages and conversations of users."""
    found = await _COUNTS.fetch_each(connection, [bind_owner(*each) for each in owners])
    return [UserCounts(*counted) for (counted,) in found]


def _make_view(rows: Sequence[tuple[Any, ...]], limit: int) -> ConversationView:
    found = sorted(StoredRow._make(row[1:]) for row in rows if row[1] is not None)
    requested = found[-limit:]
    messages = [message for message in requested if message.content is not None]
    return ConversationView(rows[0][0], messages, len(found) <= limit, len(requested) - len(messages))
