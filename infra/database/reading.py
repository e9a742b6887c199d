"""Reading the projections: a user's memory, derived from the rows of their events."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Select, String, and_, bindparam, func, select, true, union_all
from sqlalchemy.dialects.postgresql import distinct_on

from contracts.chat import Role
from infra.database import timeline as parts
from infra.database.engine import Connection, Query, Statement
from infra.database.tables import messages, profile_sets
from infra.database.timeline import owned, owner


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A stored message."""

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
        conversation: its id; it need not have messages.
        messages: at most as many as were asked for.
        complete: there are no older ones.
    """

    conversation: str
    messages: Sequence[StoredRow]
    complete: bool


@dataclass(frozen=True, slots=True)
class UserCounts:
    """What is stored of a user and not gone."""

    conversation: str
    conversations: int
    messages: int
    first_at: datetime | None
    last_at: datetime | None


def _newest_messages() -> Select[Any]:
    timeline = parts.timeline()
    spans = parts.spans(timeline)
    cleared = parts.cleared(spans)
    named = func.coalesce(bindparam("conversation", type_=String), parts.current(timeline))
    chosen = select(named.label("conversation")).cte("chosen")
    conversation = chosen.c.conversation
    all_spans = func.range_agg(spans.c.span).label("spans")
    covered = select(all_spans).where(spans.c.conversation == conversation).cte("covered")
    own_floor = select(cleared.c.seq).where(cleared.c.conversation == conversation).scalar_subquery()
    lowest = func.greatest(parts.discarded(timeline), func.coalesce(own_floor, 0))
    floor = select(lowest.label("seq")).select_from(chosen).cte("floor")

    shown = and_(owned(messages), messages.c.seq > floor.c.seq, messages.c.role.isnot(None))
    on_current = and_(
        messages.c.conversation.is_(None),
        messages.c.seq.op("<@")(covered.c.spans),
        # The same again, for the index: where the scan begins.
        messages.c.seq < func.coalesce(func.upper(covered.c.spans), 2**63 - 1),
    )
    # Two scans of the index, each of which ends at the limit.
    scans = (
        select(*(messages.c[name] for name in StoredRow.__slots__))
        .where(shown, place)
        .order_by(messages.c.seq.desc())
        .limit(bindparam("limit"))
        .correlate(chosen, covered, floor)
        for place in (messages.c.conversation == conversation, on_current)
    )
    both = union_all(*scans).subquery("both")
    newest = select(both).order_by(both.c.seq.desc()).limit(bindparam("limit")).lateral("newest")
    fields = (newest.c[name] for name in StoredRow.__slots__)
    return (
        select(conversation, *fields)
        .select_from(chosen.join(covered, true()).join(floor, true()).outerjoin(newest, true()))
        .order_by(newest.c.seq)
    )


def _counts() -> Select[Any]:
    timeline = parts.timeline()
    spans = parts.spans(timeline)
    cleared = parts.cleared(spans)
    on_current = and_(messages.c.conversation.is_(None), messages.c.seq.op("<@")(spans.c.span))
    conversation = func.coalesce(messages.c.conversation, spans.c.conversation)
    visible = (
        select(conversation.label("conversation"), messages.c.sent_at)
        .select_from(
            messages.outerjoin(spans, on_current).outerjoin(cleared, cleared.c.conversation == conversation)
        )
        .where(
            owned(messages),
            messages.c.role.isnot(None),
            messages.c.seq > func.greatest(parts.discarded(timeline), func.coalesce(cleared.c.seq, 0)),
        )
        .cte("visible")
    )
    return select(
        parts.current(timeline),
        func.count(visible.c.conversation.distinct()),
        func.count(visible.c.sent_at),
        func.min(visible.c.sent_at),
        func.max(visible.c.sent_at),
    ).select_from(visible)


def _profile() -> Select[Any]:
    field = func.jsonb_each(profile_sets.c.fields).table_valued("key", "value").lateral("field")
    latest = (
        select(field.c.key, field.c.value)
        .select_from(profile_sets.join(field, true()))
        .where(owned(profile_sets))
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


_NEWEST_MESSAGES = Statement(_newest_messages())
_COUNTS = Statement(_counts())
_PROFILE = Statement(_profile())


def newest_messages(tenant: str, user: str, conversation: str | None, limit: int) -> Query[ConversationView]:
    """The newest messages of a conversation, `limit` at most; None is the current one."""
    # One more than asked for tells whether there are older ones.
    parameters = owner(tenant, user) | {"conversation": conversation, "limit": limit + 1}

    async def query(connection: Connection) -> ConversationView:
        rows = await _NEWEST_MESSAGES.rows(connection, parameters)
        found = [StoredRow(*row[1:]) for row in rows if row[1] is not None]
        return ConversationView(rows[0][0], found[-limit:], complete=len(found) <= limit)

    return query


def profile(tenant: str, user: str) -> Query[dict[str, Any]]:
    """The user's data: of each field, what was set last."""

    async def query(connection: Connection) -> dict[str, Any]:
        (fields,) = await _PROFILE.row(connection, owner(tenant, user))
        return cast("dict[str, Any]", fields)

    return query


def counts(tenant: str, user: str) -> Query[UserCounts]:
    """How much is stored of a user."""

    async def query(connection: Connection) -> UserCounts:
        return UserCounts(*await _COUNTS.row(connection, owner(tenant, user)))

    return query
