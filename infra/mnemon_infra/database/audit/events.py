"""Comparison of events with their rows: by key, and value by value."""

import json
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from psycopg.types.json import Jsonb
from sqlalchemy import Column, Table, Text, bindparam, select

from mnemon_infra.broker.erasure.scope import Erasures
from mnemon_infra.database.engine import Connection, Database, DatabaseRefused, Lookup
from mnemon_infra.database.erasure.users import load_erasure_positions, load_erasures
from mnemon_infra.database.generations.generation_repository import UNDERIVED_COLUMNS
from mnemon_infra.database.projections.event_rows import EventKey
from mnemon_infra.database.projections.rows import EventRow, MemoryRow, MessageRow, Row
from mnemon_infra.database.tables import KEY, erasures, metadata

_CONVERSATION_EVENT_TABLES: Final = {"starts", "clears"}
"""Tables besides `messages` whose rows the erasure of a conversation covers as it covers messages."""


class RowDeviation(NamedTuple):
    """A deviation between an event and its row: a missing row, another position or value, or removed content.

    Attributes:
        seq: the log position of the event.
        stored: the log position that its row names; None if there is no row, or if the event is an erasure
            of a user that the stored row does not cover.
        differs: the columns whose values differ from the event.
        is_gone: True if the row no longer has its content.
    """

    seq: int
    stored: int | None
    differs: Sequence[str] = ()
    is_gone: bool = False


# Rows of users outside the sample have no body here: only position and presence of content are compared.
_COMPARE_MESSAGES: Final = """
    SELECT row.seq, stored.seq, found.differs, stored.event_id IS NOT NULL AND stored.role IS NULL
    FROM jsonb_to_recordset(%(rows)s) AS row
        (tenant text, user_id text, conversation text, seq bigint, event_id text, sent_at float8, body jsonb)
    LEFT JOIN messages AS stored USING (tenant, user_id, event_id)
    CROSS JOIN LATERAL (
        SELECT row.body IS NOT NULL AND stored.seq = row.seq AS whole,
               CASE WHEN stored.role IS NOT NULL THEN row.body END AS said
    ) AS compared
    CROSS JOIN LATERAL (SELECT array_remove(ARRAY[
        CASE WHEN whole AND stored.conversation IS DISTINCT FROM row.conversation THEN 'conversation' END,
        CASE WHEN whole AND stored.sent_at <> to_timestamp(row.sent_at) THEN 'sent_at' END,
        CASE WHEN whole AND stored.role <> said ->> 'role' THEN 'role' END,
        CASE WHEN whole AND stored.content IS DISTINCT FROM said ->> 'content' THEN 'content' END,
        CASE WHEN whole AND stored.name IS DISTINCT FROM said ->> 'name' THEN 'name' END,
        CASE WHEN whole AND stored.task_id IS DISTINCT FROM said ->> 'task_id' THEN 'task_id' END,
        CASE WHEN whole AND stored.tool_calls IS DISTINCT FROM said -> 'tool_calls' THEN 'tool_calls' END,
        CASE WHEN whole AND stored.metadata IS DISTINCT FROM said -> 'metadata' THEN 'metadata' END
    ], NULL) AS differs) AS found
    WHERE stored.seq IS DISTINCT FROM row.seq OR stored.role IS NULL OR found.differs <> '{}'
"""
_COMPARE_MEMORIES: Final = """
    SELECT row.seq, stored.seq, found.differs, stored.event_id IS NOT NULL AND stored.body IS NULL
    FROM jsonb_to_recordset(%(rows)s) AS row
        (tenant text, user_id text, event_id text, seq bigint, at float8, event text, item text,
         proposal_id text, conversation text, body jsonb)
    LEFT JOIN memory_events AS stored USING (tenant, user_id, event_id)
    CROSS JOIN LATERAL (SELECT row.body IS NOT NULL AND stored.seq = row.seq AS whole) AS compared
    CROSS JOIN LATERAL (SELECT array_remove(ARRAY[
        CASE WHEN whole AND stored.at <> to_timestamp(row.at) THEN 'at' END,
        CASE WHEN whole AND stored.event <> row.event THEN 'event' END,
        CASE WHEN whole AND stored.item IS DISTINCT FROM row.item THEN 'item' END,
        CASE WHEN whole AND stored.proposal_id IS DISTINCT FROM row.proposal_id THEN 'proposal_id' END,
        CASE WHEN whole AND stored.conversation IS DISTINCT FROM row.conversation THEN 'conversation' END,
        CASE WHEN whole AND stored.body <> row.body THEN 'body' END
    ], NULL) AS differs) AS found
    WHERE stored.seq IS DISTINCT FROM row.seq OR stored.body IS NULL OR found.differs <> '{}'
"""


class UserSample(NamedTuple):
    """A sample of the users, the same users each time.

    On average, one of `every` users is in the sample; 1 takes all users, 0 takes no user.
    """

    every: int = 1

    def includes_user_of(self, key: EventKey) -> bool:
        """Return whether the sample includes the user of an event."""
        if not self.every:
            return False
        return self.every == 1 or zlib.crc32(f"{key[0]}\0{key[1]}".encode()) % self.every == 0


async def compare_rows(database: Database, rows: Iterable[Row], sample: UserSample) -> list[RowDeviation]:
    """Compare applied events with their rows, and return the deviations.

    The comparison takes one statement for each table. If the database refuses a value of the rows, the rows
    are compared in halves, and the row with that value counts as missing.

    Args:
        database: the generation to compare.
        rows: the rows that the events must have. Each copy of an event is checked separately.
        sample: the users whose values are compared. The check that a row exists, with the right position and
            with its content, covers all users.
    """
    expected = list(rows)
    try:
        return await _compare_rows(database, expected, sample)
    except DatabaseRefused:
        # The database refuses a query for a value that it could not store: halve the rows to find that one.
        if len(expected) == 1:
            return [RowDeviation(expected[0].seq, None)]
        half = len(expected) // 2
        both = [await compare_rows(database, some, sample) for some in (expected[:half], expected[half:])]
        return [remark for some in both for remark in some]


async def _compare_rows(database: Database, rows: Sequence[Row], sample: UserSample) -> list[RowDeviation]:
    said: list[MessageRow] = []
    derived: list[MemoryRow] = []
    others: dict[str, list[EventRow]] = {}
    for row in rows:
        if isinstance(row, MessageRow):
            said.append(row)
        elif isinstance(row, MemoryRow):
            derived.append(row)
        else:
            others.setdefault(row.table, []).append(row)

    async def query(connection: Connection) -> list[RowDeviation]:
        found: list[RowDeviation] = []
        for sql, some in ((_COMPARE_MESSAGES, said), (_COMPARE_MEMORIES, derived)):
            if some:
                cursor = await connection.execute(sql, {"rows": _join_values(some, sample)}, binary=True)
                found += [RowDeviation._make(each) for each in await cursor.fetchall()]
        found += await _compare_user_erasures(connection, others.pop(erasures.name, []))
        for table, events in others.items():
            found += await _compare_event_rows(connection, metadata.tables[table], events, sample)
        return found

    return await database.run_query(query)


async def find_missing_rows(database: Database, rows: Sequence[Row]) -> list[Row]:
    """Return those of `rows` that the database lacks and that no erasure covers."""
    said = {each.seq: each for each in await compare_rows(database, rows, UserSample(every=0))}
    absent = [row for row in rows if (remark := said.get(row.seq)) and remark.stored is None]
    erased = await database.run_query(load_erasures([row.key[:2] for row in absent]))
    return [row for row in absent if not is_erased(row, erased.get(row.key[:2], Erasures()))]


def is_erased(row: Row, erased: Erasures) -> bool:
    """Return whether an erasure covers a row.

    For a summary or a window, the position of its first message decides; for every other row, the row's own
    log position.
    """
    if row.seq < erased.below:
        return True
    if isinstance(row, EventRow):
        return row.table in _CONVERSATION_EVENT_TABLES and erased.removes_message(
            row.values["conversation"], row.seq
        )
    values = json.loads(row.values)
    if not isinstance(row, MemoryRow):
        return erased.removes_message(values["conversation"], row.seq)
    conversation, begins = values["conversation"], min(row.seq, values["body"].get("from_seq", row.seq))
    return (
        begins < erased.below
        or erased.removes_fact(row.seq, None)
        or (conversation is not None and erased.removes_window(conversation, begins))
    )


def _join_values(rows: Sequence[MessageRow | MemoryRow], sample: UserSample) -> Jsonb:
    values = (row.values if sample.includes_user_of(row.key) else _encode_place(row) for row in rows)
    return Jsonb(b"[" + b",".join(values) + b"]", dumps=bytes)


def _encode_place(row: MessageRow | MemoryRow) -> bytes:
    return msgspec.json.encode(dict(zip(KEY, row.key, strict=True)) | {"seq": row.seq})


async def _compare_user_erasures(connection: Connection, rows: Sequence[EventRow]) -> list[RowDeviation]:
    """Compare erasures of users: a user has one row for all erasures, with the highest position."""
    if not rows:
        return []
    erased = await load_erasure_positions(connection, [row.key[:2] for row in rows])
    return [RowDeviation(row.seq, None) for row in rows if erased.get(row.key[:2], -1) < row.values["up_to"]]


async def _compare_event_rows(
    connection: Connection, table: Table, rows: Sequence[EventRow], sample: UserSample
) -> list[RowDeviation]:
    wanted = [
        {f"of_{name}": value for name, value in zip(KEY, row.key, strict=True)}
        | {f"as_{name}": value for name, value in row.values.items()}
        for row in rows
    ]
    names = [column.name for column in _list_compared_columns(table)]
    found: list[RowDeviation] = []
    for row, stored in zip(rows, await _compile_lookup(table).fetch_each(connection, wanted), strict=True):
        if not stored:
            found.append(RowDeviation(row.seq, None))
            continue
        ((seq, *is_other),) = stored
        compared = seq == row.seq and sample.includes_user_of(row.key)
        differs = [name for name, other in zip(names, is_other, strict=True) if other] if compared else []
        if seq != row.seq or differs:
            found.append(RowDeviation(row.seq, seq, differs))
    return found


def _list_compared_columns(table: Table) -> list[Column[Any]]:
    """Return the columns, besides key and position, whose values an event determines."""
    return [
        column for column in table.c if column.name not in (*KEY, "seq") and column not in UNDERIVED_COLUMNS
    ]


@cache
def _compile_lookup(table: Table) -> Lookup:
    """Return a lookup by key of a row's position and, for each compared column, whether its value differs."""
    others = [
        column.is_distinct_from(bindparam(f"as_{column.name}", type_=column.type)).label(f"of_{column.name}")
        for column in _list_compared_columns(table)
    ]
    same = [table.c[name] == bindparam(f"of_{name}", type_=Text) for name in KEY]
    return Lookup(select(table.c.seq, *others).where(*same))
