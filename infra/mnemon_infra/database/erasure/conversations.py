"""Erasure of one conversation: deletes its rows below a log position and keeps them from being written again.

The erasure event carries all that later writes have to know and nothing of the content: the positions at
which the conversation was the current one, and the positions of what was derived from it alone. So the order
in which events are written does not matter.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Delete, Select, delete, exists, literal_column, select, tuple_, update

from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.streams.erasure_scope import ErasedConversation
from mnemon_infra.database.engine import Connection, Database, Lookup, Statement, parameter, query
from mnemon_infra.database.erasure.predicates import (
    CONVERSATION_TABLES,
    PARAMETER_COLUMNS,
    bind_erasure,
    is_covered,
    map_columns,
)
from mnemon_infra.database.projections.event_order import bind_owner, is_owned
from mnemon_infra.database.tables import conversation_erasures as erasures
from mnemon_infra.database.tables import windows
from mnemon_infra.database.windows.window_repository import StoredWindow


class StoredErasure(NamedTuple):
    """A stored erasure of a conversation; `is_settled`: log, dead letters and triggers are purged too."""

    erased: ErasedConversation
    is_settled: bool


def _deletion(table: Any) -> Delete:
    of_it = exists().where(
        is_owned(erasures), is_covered(table.name, map_columns(table), map_columns(erasures))
    )
    return delete(table).where(is_owned(table), of_it)


def _release() -> Delete:
    """Delete the windows that are not locked. A locked one waits for a model now; a later call deletes it."""
    key = windows.c.tenant, windows.c.user_id, windows.c.conversation, windows.c.from_seq
    its = is_owned(windows), is_covered(windows.name, map_columns(windows), PARAMETER_COLUMNS)
    return delete(windows).where(tuple_(*key).in_(select(*key).where(*its).with_for_update(skip_locked=True)))


def _beneath(table: Any) -> Select[Any]:
    same = erasures.c.tenant == table.c.tenant, erasures.c.user_id == table.c.user_id
    key = table.c.seq, table.c.tenant, table.c.user_id, table.c.event_id
    return select(literal_column(f"'{table.name}'"), *key).where(
        table.c.seq <= PARAMETER_COLUMNS["up_to"],
        exists().where(*same, is_covered(table.name, map_columns(table), map_columns(erasures))),
    )


_BEGUN: Final = """
    INSERT INTO starts AS stored (tenant, user_id, event_id, seq, conversation, discard_previous)
    SELECT tenant, user_id, concat(event_id, ':', begun.seq), begun.seq, conversation,
           coalesce(begun.seq = discarded, false)
    FROM conversation_erasures AS erased CROSS JOIN LATERAL (
        SELECT lower(span) AS seq FROM unnest(erased.spans) AS span
        UNION SELECT erased.discarded WHERE erased.discarded IS NOT NULL
    ) AS begun
    WHERE tenant = %(of_tenant)s AND user_id = %(of_user)s
    ON CONFLICT (tenant, user_id, event_id) DO NOTHING
"""
_DELETIONS: Final = tuple(Statement(_deletion(table)) for table in CONVERSATION_TABLES)
_BENEATH: Final = tuple(Lookup(_beneath(table)) for table in CONVERSATION_TABLES)
_RELEASE: Final = Statement(_release())
_STORED: Final = Lookup(
    select(
        erasures.c.event_id,
        erasures.c.seq,
        erasures.c.up_to,
        erasures.c.at,
        erasures.c.conversation,
        erasures.c.spans,
        erasures.c.derived,
        erasures.c.is_settled,
    ).where(is_owned(erasures))
)
_SETTLE: Final = Statement(
    update(erasures)
    .where(is_owned(erasures), erasures.c.event_id == parameter("erasure", str))
    .values(is_settled=True)
)


async def apply_erasures(connection: Connection, owners: Sequence[Owner]) -> None:
    """Apply the stored conversation erasures of these users: insert starts and delete the covered rows."""
    parameters = [bind_owner(*each) for each in owners]
    async with connection.cursor() as cursor:
        await cursor.executemany(_BEGUN, parameters)
    for deletion in _DELETIONS:
        await deletion.execute_each(connection, parameters)


async def list_rows_of_erased_conversations(connection: Connection, up_to: int) -> list[tuple[Any, ...]]:
    """Return the rows of erased conversations that are left up to a log position: table, position and key."""
    found: list[tuple[Any, ...]] = []
    for lookup in _BENEATH:
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


def _make_erasure(of: Owner, row: tuple[Any, ...]) -> StoredErasure:
    event_id, seq, up_to, at, conversation, spans, derived, is_settled = row
    held = tuple((each.lower, each.upper) for each in spans)
    erased = ErasedConversation(of, conversation, up_to, held, frozenset(derived), event_id, seq, at)
    return StoredErasure(erased, is_settled)


async def release_windows(database: Database, erased: ErasedConversation) -> None:
    """Delete the windows of an erased conversation, except those that a model is being asked about now.

    Raises:
        DatabaseUnavailable: no window was deleted.
    """
    async with database.transaction() as connection:
        await _RELEASE.execute_each(connection, [bind_erasure(erased)])


async def mark_settled(database: Database, erased: ErasedConversation) -> None:
    """Record that log, dead letters and triggers are purged of the conversation too.

    Raises:
        DatabaseUnavailable: it is not recorded.
    """
    async with database.transaction() as connection:
        await _SETTLE.execute_each(connection, [bind_owner(*erased.owner) | {"erasure": erased.event_id}])


async def drop_erased_windows(connection: Connection, held: Sequence[StoredWindow]) -> list[StoredWindow]:
    """Return those windows whose conversation has no erasure that covers them."""
    owners = list(dict.fromkeys(window.owner for window in held))
    found = await load_conversation_erasures(owners)(connection)
    of = {each: [stored.erased for stored in some] for each, some in zip(owners, found, strict=True)}
    return [
        window
        for window in held
        if not any(each.has_stretch(window.conversation, window.from_seq) for each in of[window.owner])
    ]
