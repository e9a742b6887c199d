"""Writer of the projections: one transaction per batch."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from psycopg.types.json import Jsonb
from sqlalchemy import Table, bindparam, cast, select, text
from sqlalchemy.dialects.postgresql import insert

from mnemon_infra.database.engine import (
    Connection,
    Database,
    DatabaseRefused,
    Query,
    QueryResult,
    Statement,
)
from mnemon_infra.database.erasure.conversation_predicates import CONVERSATION_TABLES, is_kept
from mnemon_infra.database.erasure.conversations import apply_erasures
from mnemon_infra.database.erasure.users import PROJECTED_TABLES, is_above_erasure, lock_for_writing
from mnemon_infra.database.projections.rows import EventRow, MemoryRow, MessageRow, Rows
from mnemon_infra.database.tables import conversation_erasures, erasures, memory_events, messages
from mnemon_infra.delivery import Delivery

# PostgreSQL reads the JSON of a whole batch from one parameter: three times as fast as arrays of columns,
# because Python takes nothing apart (docs/adr/0002). Rows above all erasures skip the lookup of their user's
# erasure, which would take a twentieth of the time.
_INSERT_MESSAGES: Final = Statement(
    text(
        """
    INSERT INTO messages AS stored
        (tenant, user_id, event_id, seq, conversation,
         role, content, name, task_id, tool_calls, metadata, sent_at)
    SELECT tenant, user_id, event_id, seq, conversation,
           body ->> 'role', body ->> 'content', body ->> 'name', body ->> 'task_id',
           body -> 'tool_calls', body -> 'metadata', to_timestamp(sent_at)
    FROM jsonb_to_recordset(:rows) AS row
        (tenant text, user_id text, conversation text, seq bigint, event_id text, sent_at float8, body jsonb)
    WHERE (seq >= (SELECT coalesce(max(newest.seq), 0) FROM erasures AS newest) OR seq >= coalesce((
        SELECT erased.seq FROM erasures AS erased
        WHERE erased.tenant = row.tenant AND erased.user_id = row.user_id
    ), 0))
    AND (seq >= (SELECT coalesce(max(newest.up_to), 0) FROM conversation_erasures AS newest) OR NOT EXISTS (
        SELECT FROM conversation_erasures AS erased
        WHERE erased.tenant = row.tenant AND erased.user_id = row.user_id AND row.seq < erased.up_to AND (
            row.conversation = erased.conversation
            OR row.conversation IS NULL AND row.seq <@ erased.spans
        )
    ))
    ORDER BY tenant, user_id, event_id
    ON CONFLICT (tenant, user_id, event_id) DO UPDATE SET
        seq = excluded.seq, conversation = excluded.conversation, role = excluded.role,
        content = excluded.content, name = excluded.name, task_id = excluded.task_id,
        tool_calls = excluded.tool_calls, metadata = excluded.metadata, sent_at = excluded.sent_at
    WHERE excluded.seq < stored.seq
    """
    )
)


_INSERT_MEMORIES: Final = Statement(
    text(
        """
    INSERT INTO memory_events AS stored
        (tenant, user_id, event_id, seq, at, event, item, proposal_id, conversation, body)
    SELECT tenant, user_id, event_id, seq, to_timestamp(at), event, item, proposal_id, conversation, body
    FROM jsonb_to_recordset(:rows) AS row
        (tenant text, user_id text, event_id text, seq bigint, at float8, event text, item text,
         proposal_id text, conversation text, body jsonb)
    CROSS JOIN LATERAL (SELECT least(seq, (body ->> 'from_seq')::bigint) AS begins) AS made
    WHERE (begins >= (SELECT coalesce(max(newest.seq), 0) FROM erasures AS newest) OR begins >= coalesce((
        SELECT erased.seq FROM erasures AS erased
        WHERE erased.tenant = row.tenant AND erased.user_id = row.user_id
    ), 0))
    AND (begins >= (SELECT coalesce(max(newest.up_to), 0) FROM conversation_erasures AS newest) OR NOT EXISTS
    (
        SELECT FROM conversation_erasures AS erased
        WHERE erased.tenant = row.tenant AND erased.user_id = row.user_id AND (
            row.seq = ANY(erased.derived)
            OR row.conversation = erased.conversation AND begins < erased.up_to
        )
    ))
    ORDER BY tenant, user_id, event_id
    ON CONFLICT (tenant, user_id, event_id) DO UPDATE SET
        seq = excluded.seq, at = excluded.at, event = excluded.event, item = excluded.item,
        proposal_id = excluded.proposal_id, conversation = excluded.conversation, body = excluded.body
    WHERE excluded.seq < stored.seq
    """
    )
)


def _build_insertion(table: Table) -> Statement:
    row = {column.name: cast(bindparam(column.name), column.type) for column in table.c}
    kept = [is_kept(table.name, row)] if table in CONVERSATION_TABLES else []
    insertion = insert(table).from_select(
        list(row), select(*row.values()).where(is_above_erasure(row), *kept)
    )
    changed = {column.name: insertion.excluded[column.name] for column in table.c if not column.primary_key}
    return Statement(
        insertion.on_conflict_do_update(
            index_elements=list(table.primary_key),
            set_=changed,
            where=insertion.excluded.seq < table.c.seq,
        )
    )


_INSERT_EVENTS: Final = {
    table.name: _build_insertion(table)
    for table in PROJECTED_TABLES
    if table not in (messages, memory_events)
}


async def write_rows(database: Database, rows: Rows) -> None:
    """Write the rows of a batch of events in one transaction.

    A batch may be written again, and copies of an event may be written in any order: the copy with the lowest
    position stays.

    Raises:
        DatabaseUnavailable: nothing is written, unless the connection was lost during the commit; a later
            attempt may succeed.
        DatabaseRefused: nothing is written, because the database refuses at least one of the rows.
    """
    async with database.transaction() as connection:
        await _write_rows(connection, rows)


async def write_accepted_events(
    database: Database, deliveries: Sequence[Delivery], rows: Rows | None = None
) -> None:
    """Write the rows of events, without events that are invalid or that the database refuses.

    `persist` makes dead letters of the events that are left out. `rows` are the rows of all events, if the
    caller has them already.

    Raises:
        DatabaseUnavailable: some rows may be written; a later attempt may succeed.
    """
    try:
        await write_rows(database, Rows.from_deliveries(deliveries) if rows is None else rows)
    except DatabaseRefused:
        if len(deliveries) > 1:
            half = len(deliveries) // 2
            for part in deliveries[:half], deliveries[half:]:
                await write_accepted_events(database, part)


async def simulate_rows(database: Database, rows: Rows, query: Query[QueryResult]) -> QueryResult:
    """Run a query as if these rows were written, then roll back; no other transaction sees the rows.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
        DatabaseRefused: the database refuses one of the rows.
    """
    async with database.transaction(keep=False) as connection:
        await _write_rows(connection, rows)
        return await query(connection)


async def _write_rows(connection: Connection, rows: Rows) -> None:
    by_table = _group_by_table(rows.events.values())
    conversations = by_table.pop(conversation_erasures.name, [])
    await lock_for_writing(connection, by_table.pop(erasures.name, []), others=bool(conversations))
    if conversations:
        await _INSERT_EVENTS[conversation_erasures.name].execute_each(connection, conversations)
        await apply_erasures(connection, sorted({(row["tenant"], row["user_id"]) for row in conversations}))
    if rows.messages:
        await _INSERT_MESSAGES.execute_each(connection, [_join_values(rows.messages.values())])
    if rows.memories:
        await _INSERT_MEMORIES.execute_each(connection, [_join_values(rows.memories.values())])
    for table, events in by_table.items():
        await _INSERT_EVENTS[table].execute_each(connection, events)


def _join_values(rows: Iterable[MessageRow | MemoryRow]) -> dict[str, Any]:
    return {"rows": Jsonb(b"[" + b",".join(row.values for row in rows) + b"]", dumps=bytes)}


def _group_by_table(events: Iterable[EventRow]) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(events, key=lambda row: row.key):
        tenant, user, event_id = row.key
        identity = {"tenant": tenant, "user_id": user, "event_id": event_id, "seq": row.seq}
        tables.setdefault(row.table, []).append(
            {**identity, **{name: _adapt_value(value) for name, value in row.values.items()}}
        )
    return tables


def _adapt_value(value: Any) -> Any:
    return Jsonb(value) if isinstance(value, dict) else value
