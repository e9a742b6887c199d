"""Export of a user's memory from the rows of its events, read as a stream."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, select

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.audit.row_places import open_long_read
from mnemon_infra.database.engine import Connection, Database, Statement, make_parameter, query
from mnemon_infra.database.memory.user_memory import select_visible_messages
from mnemon_infra.database.projections.sweep import is_below_watermark
from mnemon_infra.database.query_parts import event_order as parts
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.query_parts.item_states import SUMMARIES, extract_position, has_name
from mnemon_infra.database.tables import memory_events, messages

PAGE: Final = 1000
"""Maximum number of rows that one fetch reads."""

USERS: Final = 500
"""Maximum number of users that one query lists."""

_UP_TO: Final = make_parameter("up_to", int)


class KeptMessage(NamedTuple):
    """A visible message to export.

    `conversation` is the conversation that the subject of the message names; None means the conversation
    that was current at `seq`.
    """

    seq: int
    event_id: str
    conversation: str | None
    role: str
    content: str
    name: str | None
    task_id: str | None
    tool_calls: list[Any] | None
    metadata: dict[str, Any] | None
    sent_at: datetime


class ConversationChange(NamedTuple):
    """The start or the clear of a conversation.

    Attributes:
        seq: the log position.
        event: `started`, `cleared`, or `named`: the conversation started with a message that names it.
        event_id: id of the event; for `named`, id of the message.
        conversation: the conversation; None is the current one at that position.
        discard_previous: True if the start removes all messages and summaries before it.
    """

    seq: int
    event: str
    event_id: str
    conversation: str | None
    discard_previous: bool


class KeptMemory(NamedTuple):
    """A memory event to export; `at` is the time of the event."""

    seq: int
    event_id: str
    event: str
    at: datetime
    body: dict[str, Any]


class KeptField(NamedTuple):
    """A field of the profile with its latest value."""

    seq: int
    event_id: str
    name: str
    value: Any


def _select_messages() -> Select[Any]:
    # The first column is the derived conversation; the export gives the conversation of the subject.
    columns = [messages.c[name] for name in KeptMessage._fields]
    return (
        select_visible_messages(parts.select_timeline(), *columns)
        .where(messages.c.seq <= _UP_TO)
        .order_by(messages.c.seq)
    )


def _select_ranges() -> Select[Any]:
    """Select summaries and answered windows, each with the position of the last message that it covers."""
    columns = (memory_events.c[name] for name in KeptMemory._fields)
    from_seq, to_seq = extract_position("from_seq"), extract_position("to_seq")
    return (
        select(to_seq, *columns)
        .where(
            is_owned(memory_events),
            has_name((*SUMMARIES, "window.answered")),
            memory_events.c.body.isnot(None),
            memory_events.c.seq <= _UP_TO,
            ~is_below_watermark(memory_events.c.conversation, from_seq),
        )
        .order_by(to_seq, memory_events.c.seq)
    )


_MESSAGES: Final = Statement(_select_messages())
_RANGES: Final = Statement(_select_ranges())

_CONVERSATION_CHANGES: Final = """
    SELECT seq, 'started', event_id, conversation, discard_previous FROM starts
    WHERE tenant = %(of_tenant)s AND user_id = %(of_user)s AND seq <= %(up_to)s
    UNION ALL
    SELECT seq, 'cleared', event_id, conversation, false FROM clears
    WHERE tenant = %(of_tenant)s AND user_id = %(of_user)s AND seq <= %(up_to)s
    UNION ALL
    SELECT seq, 'named', event_id, conversation, false FROM (
        SELECT DISTINCT ON (conversation) seq, event_id, conversation FROM messages
        WHERE tenant = %(of_tenant)s AND user_id = %(of_user)s AND seq <= %(up_to)s
        AND conversation IS NOT NULL
        ORDER BY conversation, seq
    ) AS first
    WHERE NOT EXISTS (
        SELECT FROM starts AS earlier
        WHERE earlier.tenant = %(of_tenant)s AND earlier.user_id = %(of_user)s
        AND earlier.conversation = first.conversation AND earlier.seq < first.seq
    )
    ORDER BY 1
"""

_MEMORIES: Final = """
    WITH mine AS (
        SELECT seq, event_id, event, at, item, body FROM memory_events
        WHERE tenant = %(of_tenant)s AND user_id = %(of_user)s AND seq <= %(up_to)s
    ), ended AS (
        SELECT item FROM mine WHERE event IN ('fact.forgotten', 'fact.expired', 'fact.evicted')
    )
    SELECT seq, event_id, event, at, body FROM mine AS kept
    WHERE body IS NOT NULL AND CASE
        WHEN event IN ('fact.forgotten', 'fact.expired', 'fact.evicted') THEN true
        WHEN event IN ('fact.saved', 'fact.updated', 'fact.confirmed', 'fact.merged')
            THEN item NOT IN (SELECT * FROM ended)
        WHEN event IN ('task.added', 'document.added') THEN NOT EXISTS (
            SELECT FROM mine AS later WHERE later.item = kept.item AND later.seq > kept.seq
            AND later.event IN (kept.event, replace(kept.event, '.added', '.removed'))
        )
        WHEN event = 'task.done' THEN (
            SELECT last.event = 'task.added' FROM mine AS last
            WHERE last.item = kept.item AND last.event IN ('task.added', 'task.removed')
            AND last.seq < kept.seq ORDER BY last.seq DESC LIMIT 1
        ) AND NOT EXISTS (
            SELECT FROM mine AS later WHERE later.item = kept.item AND later.seq > kept.seq
            AND later.event IN ('task.added', 'task.removed')
        )
        ELSE false
    END
    ORDER BY seq
"""
"""Selects the events of facts that have not ended, endings of facts, and current tasks and documents."""

_FIELDS: Final = """
    SELECT seq, event_id, key, value FROM (
        SELECT DISTINCT ON (key) seq, event_id, key, value
        FROM profile_sets, jsonb_each(fields) AS field (key, value)
        WHERE tenant = %(of_tenant)s AND user_id = %(of_user)s AND seq <= %(up_to)s
        ORDER BY key, seq DESC
    ) AS latest
    WHERE jsonb_typeof(value) <> 'null'
    ORDER BY seq, key
"""

_OWNED: Final = ("messages", "starts", "clears", "profile_sets", "memory_events")

_OF_TABLE: Final = """(
    SELECT DISTINCT tenant, user_id FROM {}
    WHERE (tenant, user_id) > (%(tenant)s, %(user)s) AND (%(only)s::text IS NULL OR tenant = %(only)s)
    ORDER BY tenant, user_id LIMIT %(limit)s
)"""
_OWNERS: Final = " UNION ".join(map(_OF_TABLE.format, _OWNED)) + " ORDER BY 1, 2 LIMIT %(limit)s"


@query
async def list_owners(connection: Connection, after: Owner | None, tenant: str | None) -> list[Owner]:
    """Return the next page of users with rows that an export reads, sorted by owner.

    `after` is the last owner of the page before; None starts with the first user. If `tenant` is None, the
    users of all tenants are listed.
    """
    begins, user = after or ("", "")
    wanted = {"tenant": begins, "user": user, "only": tenant, "limit": USERS}
    cursor = await connection.execute(_OWNERS, wanted)
    return [(owner_tenant, owner_user) for owner_tenant, owner_user in await cursor.fetchall()]


class ExportedMemory:
    """The memory of one user as of one log position.

    Different parts may be read at the same time, but each part by one reader only.
    """

    def __init__(self, connection: Connection, owner: Owner, up_to: int) -> None:
        self._connection = connection
        self._parameters = bind_owner(*owner) | {"up_to": up_to}

    async def stream_messages(self) -> AsyncGenerator[KeptMessage, None]:
        """Yield the visible messages, in log order."""
        async for row in self._stream_rows("messages", *_MESSAGES.compiled):
            yield KeptMessage._make(row[1:])

    async def stream_ranges(self) -> AsyncGenerator[tuple[int, KeptMemory], None]:
        """Yield summaries and answered windows, each with the position of the last message that it covers.

        Summaries and windows are sorted together, by that position.
        """
        async for to_seq, *row in self._stream_rows("ranges", *_RANGES.compiled):
            yield to_seq, KeptMemory._make(row)

    async def stream_conversation_changes(self) -> AsyncGenerator[ConversationChange, None]:
        """Yield starts and clears of conversations, in log order."""
        async for row in self._stream_rows("turns", _CONVERSATION_CHANGES):
            yield ConversationChange._make(row)

    async def stream_memories(self) -> AsyncGenerator[KeptMemory, None]:
        """Yield the events of current facts, tasks and documents, and the ends of facts, in log order."""
        async for row in self._stream_rows("memories", _MEMORIES):
            yield KeptMemory._make(row)

    async def stream_profile_fields(self) -> AsyncGenerator[KeptField, None]:
        """Yield the fields of the profile, in log order."""
        async for row in self._stream_rows("fields", _FIELDS):
            yield KeptField._make(row)

    async def _stream_rows(
        self, name: str, sql: str, constants: Mapping[str, Any] = MappingProxyType({})
    ) -> AsyncGenerator[tuple[Any, ...], None]:
        async with self._connection.cursor(name=name) as cursor:
            await cursor.execute(sql, {**constants, **self._parameters})
            while page := await cursor.fetchmany(PAGE):
                for row in page:
                    yield row


@asynccontextmanager
async def open_memory(database: Database, owner: Owner, up_to: int) -> AsyncGenerator[ExportedMemory, None]:
    """Open the memory of a user up to the log position `up_to`, for the duration of the block."""
    async with open_long_read(database) as connection:
        yield ExportedMemory(connection, owner, up_to)
