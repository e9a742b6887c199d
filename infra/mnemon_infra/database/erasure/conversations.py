"""Erasure of one conversation: deletes its rows below a log position and keeps them from being written again.

Rows of events about facts and proposals that were derived from the conversation alone are deleted too.

The erasure event carries all positions that later writes need, such as those at which the conversation was
the current one, and none of the content. So the order in which events are written does not matter.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Delete,
    Select,
    delete,
    exists,
    func,
    literal_column,
    select,
    text,
    union_all,
)

from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.erasure.scope import EVERYWHERE, ErasedConversation
from mnemon_infra.database.engine import Connection, Lookup, Statement, query
from mnemon_infra.database.erasure.conversation_predicates import (
    CONVERSATION_TABLES,
    PARAMETER_COLUMNS,
    bind_erasure,
    is_covered,
    is_covered_by_parameters,
    map_columns,
)
from mnemon_infra.database.query_parts import event_order as parts
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.tables import conversation_erasures as erasures
from mnemon_infra.database.tables import memory_events, messages


class StoredErasure(NamedTuple):
    """A stored erasure of a conversation.

    `is_settled` is true once log, dead letters and triggers are purged too.
    """

    erased: ErasedConversation
    is_settled: bool


def _delete_covered(table: Any) -> Delete:
    of_it = exists().where(
        is_owned(erasures), is_covered(table.name, map_columns(table), map_columns(erasures))
    )
    return delete(table).where(is_owned(table), of_it)


def _select_erased(table: Any) -> Select[Any]:
    same = erasures.c.tenant == table.c.tenant, erasures.c.user_id == table.c.user_id
    key = table.c["seq", "tenant", "user_id", "event_id"]
    return select(literal_column(f"'{table.name}'"), *key).where(
        table.c.seq <= PARAMETER_COLUMNS["up_to"],
        exists().where(*same, is_covered(table.name, map_columns(table), map_columns(erasures))),
    )


_INSERT_STARTS: Final = """
    INSERT INTO starts AS stored (tenant, user_id, event_id, seq, conversation, discard_previous)
    SELECT tenant, user_id, concat(event_id, ':', begun.seq), begun.seq, conversation,
           coalesce(begun.seq = discarded, false)
    FROM conversation_erasures AS erased CROSS JOIN LATERAL (
        SELECT lower(span) AS seq FROM unnest(erased.spans) AS span
        UNION SELECT erased.discarded WHERE erased.discarded IS NOT NULL
    ) AS begun
    WHERE tenant = %(of_tenant)s AND user_id = %(of_user)s AND begun.seq >= coalesce((
        SELECT of_user.seq FROM erasures AS of_user
        WHERE of_user.tenant = erased.tenant AND of_user.user_id = erased.user_id
    ), 0)
    ON CONFLICT (tenant, user_id, event_id) DO NOTHING
"""
_DELETIONS: Final = tuple(Statement(_delete_covered(table)) for table in CONVERSATION_TABLES)
_ERASED: Final = tuple(Lookup(_select_erased(table)) for table in CONVERSATION_TABLES)
_COLUMNS: Final = ("event_id", "seq", "up_to", "at", "conversation", "spans", "derived", "is_settled")
_STORED: Final = Lookup(select(*erasures.c[_COLUMNS]).where(is_owned(erasures)))


def _collect_values(column: ColumnElement[Any], kind: str) -> ColumnElement[Any]:
    """Return an array of the values of a column; without values, an empty array in place of null."""
    return func.coalesce(func.array_agg(column), text(f"ARRAY[]::{kind}[]"))


def _select_event_ids() -> Select[Any]:
    tables = messages, memory_events
    scans = (select(table.c.event_id).where(is_covered_by_parameters(table)) for table in tables)
    return select(_collect_values(union_all(*scans).subquery("covered").c.event_id, "text"))


def _select_spans() -> Select[Any]:
    timeline = parts.select_timeline()
    spans = parts.select_spans(timeline)
    up_to, conversation = PARAMETER_COLUMNS["up_to"], PARAMETER_COLUMNS["conversation"]
    ends = func.least(func.coalesce(func.upper(spans.c.span), EVERYWHERE), up_to)
    begins = func.lower(spans.c.span)
    discards = select(func.max(timeline.c.seq)).where(
        timeline.c.conversation == conversation, timeline.c.discard_previous, timeline.c.seq < up_to
    )
    found = (
        select(begins.label("begins"), ends.label("ends"))
        .where(spans.c.conversation == conversation, begins < ends)
        .cte("found")
    )
    return select(
        select(_collect_values(found.c.begins, "bigint")).scalar_subquery(),
        select(_collect_values(found.c.ends, "bigint")).scalar_subquery(),
        discards.scalar_subquery(),
    )


_EVENT_IDS: Final = Statement(_select_event_ids())
_SPANS: Final = Statement(_select_spans())
_POSITIONS: Final = Statement(
    select(_collect_values(messages.c.seq, "bigint")).where(is_covered_by_parameters(messages))
)


async def apply_erasures(connection: Connection, owners: Sequence[Owner]) -> None:
    """Apply the stored conversation erasures of users: add rows to `starts`, and delete covered rows.

    A row is added at the beginning of each span, and at the position of the last start that discarded
    earlier messages. Below an erasure of the user no row is added.
    """
    parameters = [bind_owner(*each) for each in owners]
    async with connection.cursor() as cursor:
        await cursor.executemany(_INSERT_STARTS, parameters)
    for deletion in _DELETIONS:
        await deletion.execute_each(connection, parameters)


async def list_rows_of_erased_conversations(connection: Connection, up_to: int) -> list[tuple[Any, ...]]:
    """Return the rows up to the log position `up_to` that an erasure of a conversation covers but has left.

    Each row is a tuple of table, position and key.
    """
    found: list[tuple[Any, ...]] = []
    for lookup in _ERASED:
        rows = await lookup.fetch(connection, up_to=up_to)
        found += rows
    return found


@query
async def load_conversation_erasures(
    connection: Connection, owners: Sequence[Owner]
) -> list[list[StoredErasure]]:
    """Return for each user the stored erasures of conversations, in log order."""
    found = await _STORED.fetch_each(connection, [bind_owner(*each) for each in owners])
    return [
        [_make_erasure(each, row) for row in sorted(rows, key=lambda row: row[1])]
        for each, rows in zip(owners, found, strict=True)
    ]


def _make_erasure(owner: Owner, row: tuple[Any, ...]) -> StoredErasure:
    event_id, seq, up_to, at, conversation, spans, derived, is_settled = row
    held = tuple((each.lower, each.upper) for each in spans)
    erased = ErasedConversation(owner, conversation, up_to, held, frozenset(derived), event_id, seq, at)
    return StoredErasure(erased, is_settled)


@query
async def load_spans(
    connection: Connection, owner: Owner, conversation: str, up_to: int
) -> tuple[list[tuple[int, int]], int | None]:
    """Return a conversation's spans, and the position of its last discarding start, both below `up_to`.

    A span that reaches beyond the log position `up_to` is cut there. A discarding start discards earlier
    messages. The position is None if there is no such start.
    """
    parameters = bind_owner(*owner) | {"conversation": conversation, "up_to": up_to}
    begins, ends, discarded = await _SPANS.fetch_row(connection, parameters)
    return sorted(zip(begins, ends, strict=True)), discarded


@query
async def list_message_positions(connection: Connection, erased: ErasedConversation) -> set[int]:
    """Return the log positions of the stored messages that an erasure covers."""
    return set(await _POSITIONS.fetch_value(connection, bind_erasure(erased)))


@query
async def list_event_ids(connection: Connection, erased: ErasedConversation) -> set[str]:
    """Return the ids of the stored messages and memory events that an erasure covers."""
    return set(await _EVENT_IDS.fetch_value(connection, bind_erasure(erased)))
