"""Erasure of users: deletes their rows below a log position and keeps them from being written again.

Rows that arrive late are not written either. Nothing of the erased events is kept, not even their ids. So an
event that is published again above the erasure counts as new, as it does for every reader of the purged log.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Delete,
    Select,
    Table,
    and_,
    any_,
    bindparam,
    delete,
    func,
    or_,
    select,
    text,
    union_all,
)
from sqlalchemy.dialects.postgresql import insert

from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.erasure.scope import Erasures, escape_as_json
from mnemon_infra.database.engine import (
    Connection,
    Lookup,
    Statement,
    is_storable,
    make_parameter,
    query,
)
from mnemon_infra.database.erasure.conversations import load_conversation_erasures
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.query_parts.item_states import extract_position
from mnemon_infra.database.tables import (
    erasures,
    memory_events,
    messages,
    metadata,
    windows,
)
from mnemon_infra.database.windows.window_repository import StoredWindow

PROJECTED_TABLES: Final = tuple(table for table in metadata.tables.values() if "event_id" in table.c)
"""The tables with a row for each event: all projections except `erasures`.

The cost of model calls is erased with the user too: no rebuild could restore it.
"""

BELOW: Final = make_parameter("below", int)


class Erasure(NamedTuple):
    """The stored erasure of a user.

    Attributes:
        seq: the log position below which everything is removed.
        at: the time of the erasure in the log.
        is_settled: true once log, dead letters and triggers are purged too.
    """

    seq: int
    at: datetime
    is_settled: bool


def is_above_erasure(row: Mapping[str, ColumnElement[Any]]) -> ColumnElement[bool]:
    """Return the condition that a new row is not below the user's erasure, checked by one index lookup."""
    its = select(erasures.c.seq).where(
        erasures.c.tenant == row["tenant"], erasures.c.user_id == row["user_id"]
    )
    return row["seq"] >= func.coalesce(its.scalar_subquery(), 0)


def is_below(table: Table, seq: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that a row of a table begins below the log position `seq`.

    A summary or a window is erased with the first message that it covers.
    """
    if table is windows:
        return windows.c.from_seq < seq
    below = table.c.seq < seq
    return or_(below, extract_position("from_seq") < seq) if table is memory_events else below


def _upsert_erasure() -> Any:
    insertion = insert(erasures).values({column.name: bindparam(column.name) for column in erasures.c})
    new = insertion.excluded
    changed = {name: new[name] for name in ("seq", "at", "is_settled")}
    # The earlier of two erasures at the same position counts, in any order of writing.
    is_it = or_(new.seq > erasures.c.seq, and_(new.seq == erasures.c.seq, new.at < erasures.c.at))
    return insertion.on_conflict_do_update(index_elements=["tenant", "user_id"], set_=changed, where=is_it)


def _delete_below(table: Table) -> Delete:
    its = select(erasures.c.seq).where(is_owned(erasures)).scalar_subquery()
    return delete(table).where(is_owned(table), is_below(table, its))


def _select_known() -> Select[Any]:
    ids = make_parameter("event_ids", list[str])
    scans = (
        select(table.c.event_id).where(is_owned(table), table.c.event_id == any_(ids))
        for table in (messages, memory_events)
    )
    return select(
        func.coalesce(func.array_agg(union_all(*scans).subquery("known").c.event_id), text("ARRAY[]::text[]"))
    )


# These lock modes do not block readers or backups.
_LOCK_FOR_WRITING: Final = Statement(text("LOCK TABLE erasures IN ROW SHARE MODE"))
_LOCK_FOR_ERASING: Final = Statement(text("LOCK TABLE erasures IN EXCLUSIVE MODE"))
_UPSERT: Final = Statement(_upsert_erasure())
_DELETIONS: Final = tuple(Statement(_delete_below(table)) for table in PROJECTED_TABLES)
_COUNT_STATISTICS: Final = """
    SELECT count(*) FROM pg_stats
    WHERE (schemaname = current_schema() OR starts_with(schemaname, current_schema() || '_'))
      AND EXISTS (
          SELECT FROM unnest(%(texts)s::text[]) AS looked_for
          WHERE strpos(
              lower(concat_ws(' ', most_common_vals::text, histogram_bounds::text, most_common_elems::text)),
              lower(looked_for)
          ) > 0
      )
"""
_ERASURE: Final = Statement(
    select(func.max(erasures.c.seq), func.max(erasures.c.at), func.bool_and(erasures.c.is_settled)).where(
        is_owned(erasures)
    )
)
_POSITIONS: Final = Lookup(select(erasures.c.seq).where(is_owned(erasures)))
_KNOWN: Final = Statement(_select_known())


async def lock_for_writing(
    connection: Connection, erased: Sequence[Mapping[str, Any]], *, others: bool = False
) -> None:
    """Lock the table `erasures` for writers, store erasures of users, and delete the rows that they cover.

    An eraser waits until all writers have finished, and writers wait until the eraser has finished. Otherwise
    a writer that began earlier could write rows below an erasure that the writer does not see.

    `others` tells whether the transaction also applies erasures of conversations.
    """
    await (_LOCK_FOR_ERASING if erased or others else _LOCK_FOR_WRITING).execute_each(connection, [{}])
    if not erased:
        return
    await _UPSERT.execute_each(
        connection, [{**row, "seq": row["up_to"], "is_settled": False} for row in erased]
    )
    users = sorted({(row["tenant"], row["user_id"]) for row in erased})
    for deletion in _DELETIONS:
        await deletion.execute_each(connection, [bind_owner(*user) for user in users])


@query
async def load_erasure(connection: Connection, tenant: str, user: str) -> Erasure | None:
    """Return the stored erasure of a user; None if the user was never erased."""
    seq, at, is_settled = await _ERASURE.fetch_row(connection, bind_owner(tenant, user))
    return None if seq is None else Erasure(seq, at, is_settled)


async def load_erasure_positions(connection: Connection, owners: Sequence[Owner]) -> dict[Owner, int]:
    """Return the log positions below which users are erased; users who were never erased have no entry."""
    found = await _POSITIONS.fetch_each(connection, [bind_owner(*each) for each in owners])
    return {owner: rows[0][0] for owner, rows in zip(owners, found, strict=True) if rows}


@query
async def load_erasures(connection: Connection, owners: Sequence[Owner]) -> dict[Owner, Erasures]:
    """Return the erasures of users and their conversations; every user has an entry, which may be empty.

    A user may occur more than once in `owners`.
    """
    users = list(dict.fromkeys(owners))
    if not users:
        return {}
    below = await load_erasure_positions(connection, users)
    stored = await load_conversation_erasures(users)(connection)
    return {
        owner: Erasures(below.get(owner, 0), tuple(each.erased for each in some))
        for owner, some in zip(users, stored, strict=True)
    }


@query
async def drop_erased_windows(connection: Connection, windows: Sequence[StoredWindow]) -> list[StoredWindow]:
    """Return the windows that no erasure of their user or their conversation covers."""
    erased = await load_erasures([window.owner for window in windows])(connection)
    return [
        each for each in windows if not erased[each.owner].removes_window(each.conversation, each.from_seq)
    ]


@query
async def count_statistics_with(connection: Connection, words: str) -> int:
    """Count the columns whose statistics contain the text `words`, in the schemas of all generations.

    Letter case is ignored. PostgreSQL samples a column with content only if an operator has turned that on,
    or if an earlier version created the generation.
    """
    texts = [words, *map(_escape_in_array, (words, *escape_as_json(words)))]
    cursor = await connection.execute(_COUNT_STATISTICS, {"texts": texts})
    return sum([row[0] async for row in cursor])


def _escape_in_array(value: str) -> str:
    """Return a text with the escapes of a quoted value in PostgreSQL's text form of an array."""
    return value.replace("\\", "\\\\").replace('"', '\\"')


@query
async def find_known_events(
    connection: Connection, tenant: str, user: str, event_ids: Sequence[str]
) -> set[str]:
    """Return the ids among `event_ids` that belong to stored messages or memory events of the user."""
    found = await _KNOWN.fetch_value(
        connection, bind_owner(tenant, user) | {"event_ids": [*filter(is_storable, event_ids)]}
    )
    return set(found)
