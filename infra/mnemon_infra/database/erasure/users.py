"""Forgetting users for good: what lies below an erasure is deleted, and not written again, whenever it comes.

Nothing is kept of what was there, not even the ids of the events. So an event that was published again
beyond the erasure is a new one, as it is for whoever reads the log once it is purged.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Delete,
    Select,
    Table,
    Text,
    and_,
    any_,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    text,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from mnemon_infra.database.engine import Connection, Database, Lookup, Query, Statement, is_storable
from mnemon_infra.database.erasure import conversations
from mnemon_infra.database.projections.event_order import owned, owner
from mnemon_infra.database.projections.item_states import sequence
from mnemon_infra.database.tables import (
    IS_OPEN,
    batches,
    clears,
    conversation_erasures,
    erasures,
    memory_events,
    messages,
    model_calls,
    profile_sets,
    starts,
    windows,
)
from mnemon_infra.database.windows.window_repository import StoredWindow

PROJECTED: Final = (
    messages,
    starts,
    clears,
    profile_sets,
    memory_events,
    model_calls,
    conversation_erasures,
)
"""All that is made of events. What models cost is the user's too: no rebuild could bring it back."""

BELOW: Final = bindparam("below", type_=BigInteger)


class Erasure(NamedTuple):
    """How a user was forgotten.

    Attributes:
        seq: what lies below this log position is gone.
        is_settled: log, dead letters and triggers are purged too.
    """

    seq: int
    at: datetime
    is_settled: bool


def lies_beyond(row: Mapping[str, ColumnElement[Any]]) -> ColumnElement[bool]:
    """Whether nothing has erased a row that is about to be written: one step by the index."""
    its = select(erasures.c.seq).where(
        erasures.c.tenant == row["tenant"], erasures.c.user_id == row["user_id"]
    )
    return row["seq"] >= func.coalesce(its.scalar_subquery(), 0)


def lies_below(table: Table, seq: ColumnElement[int]) -> ColumnElement[bool]:
    """A summary, or what was noted of a stretch, is gone with the first message that it covers."""
    if table is windows:
        return windows.c.from_seq < seq
    below = table.c.seq < seq
    return or_(below, sequence("from_seq") < seq) if table is memory_events else below


def _put() -> Any:
    insertion = insert(erasures).values({column.name: bindparam(column.name) for column in erasures.c})
    new = insertion.excluded
    changed = {name: new[name] for name in ("seq", "at", "is_settled")}
    # Of two that go as far the first counts, whichever comes first.
    is_it = or_(new.seq > erasures.c.seq, and_(new.seq == erasures.c.seq, new.at < erasures.c.at))
    return insertion.on_conflict_do_update(index_elements=["tenant", "user_id"], set_=changed, where=is_it)


def _deletion(table: Table) -> Delete:
    its = select(erasures.c.seq).where(owned(erasures)).scalar_subquery()
    return delete(table).where(owned(table), lies_below(table, its))


def _release() -> Delete:
    """Those that somebody asks about just now are left for the next time: nobody waits for a model."""
    key = windows.c.tenant, windows.c.user_id, windows.c.conversation, windows.c.from_seq
    free = select(*key).where(owned(windows), lies_below(windows, BELOW)).with_for_update(skip_locked=True)
    return delete(windows).where(tuple_(*key).in_(free))


def _count(table: Table) -> Select[Any]:
    return select(func.count()).select_from(table).where(owned(table), lies_below(table, BELOW))


def containing(table: Table) -> ColumnElement[bool]:
    """The rows that hold some words, wherever they stand there, in whatever case."""
    whole = func.lower(literal_column(f"{table.name}::text"))
    return func.strpos(whole, func.lower(bindparam("words", type_=Text))) > 0


def _search(table: Table) -> Select[Any]:
    return select(func.count()).select_from(table).where(owned(table), containing(table))


def _providers() -> Select[Any]:
    held = windows.c.batch_id == batches.c.batch_id
    ids = func.coalesce(batches.c.provider_batch_id, batches.c.batch_id)
    its = (
        select(ids.label("id"))
        .join(windows, held)
        .where(owned(windows), lies_below(windows, BELOW), text(IS_OPEN), ~windows.c.is_answered)
        .distinct()
        .subquery("its")
    )
    return select(func.coalesce(func.array_agg(its.c.id), text("ARRAY[]::text[]")))


def _known() -> Select[Any]:
    ids = bindparam("event_ids", type_=ARRAY(Text))
    scans = (
        select(table.c.event_id).where(owned(table), table.c.event_id == any_(ids))
        for table in (messages, memory_events)
    )
    return select(
        func.coalesce(func.array_agg(union_all(*scans).subquery("known").c.event_id), text("ARRAY[]::text[]"))
    )


# In modes of their own, which readers and backups do not wait for.
_WRITING: Final = Statement(text("LOCK TABLE erasures IN ROW SHARE MODE"))
_ERASING: Final = Statement(text("LOCK TABLE erasures IN EXCLUSIVE MODE"))
_PUT: Final = Statement(_put())
_DELETIONS: Final = tuple(Statement(_deletion(table)) for table in PROJECTED)
_RELEASE: Final = Statement(_release())
_COUNTS: Final = {table.name: Statement(_count(table)) for table in (*PROJECTED, windows)}
_SEARCHES: Final = tuple(Statement(_search(table)) for table in PROJECTED)
_PROVIDERS: Final = Statement(_providers())
_SAMPLED: Final = """
    SELECT count(*) FROM pg_stats
    WHERE (schemaname = current_schema() OR starts_with(schemaname, current_schema() || '_'))
      AND strpos(
          lower(concat_ws(' ', most_common_vals::text, histogram_bounds::text, most_common_elems::text)),
          lower(%(words)s)
      ) > 0
"""
_STORED: Final = Statement(
    select(func.max(erasures.c.seq), func.max(erasures.c.at), func.bool_and(erasures.c.is_settled)).where(
        owned(erasures)
    )
)
_LAST: Final = Statement(
    select(
        func.greatest(
            select(func.coalesce(func.max(erasures.c.seq), 0)).where(owned(erasures)).scalar_subquery(),
            select(func.coalesce(func.max(conversation_erasures.c.up_to), 0))
            .where(owned(conversation_erasures))
            .scalar_subquery(),
        )
    )
)
_EACH: Final = Lookup(select(erasures.c.seq).where(owned(erasures)))
_KNOWN: Final = Statement(_known())
_SETTLE: Final = Statement(
    update(erasures).where(owned(erasures), erasures.c.seq == BELOW).values(is_settled=True)
)


async def begin_writing(
    connection: Connection, erased: Sequence[Mapping[str, Any]], *, others: bool = False
) -> None:
    """Begin a transaction that writes events, with the rows of those that erase users.

    Others that erase something may follow: then `others`.

    Whoever erases waits until all others have written, and they wait for the end of it. Otherwise one that
    began before could write beneath an erasure that it does not see.
    """
    await (_ERASING if erased or others else _WRITING).change(connection, [{}])
    if not erased:
        return
    await _PUT.change(connection, [{**row, "seq": row["up_to"], "is_settled": False} for row in erased])
    users = sorted({(row["tenant"], row["user_id"]) for row in erased})
    for deletion in _DELETIONS:
        await deletion.change(connection, [owner(*user) for user in users])


def erasure(tenant: str, user: str) -> Query[Erasure | None]:
    """How a user was forgotten; None: never."""

    async def query(connection: Connection) -> Erasure | None:
        seq, at, is_settled = await _STORED.row(connection, owner(tenant, user))
        return None if seq is None else Erasure(seq, at, is_settled)

    return query


def last_erased(tenant: str, user: str) -> Query[int]:
    """Below which log position something of a user was forgotten at last; 0: nothing was."""

    async def query(connection: Connection) -> int:
        (below,) = await _LAST.row(connection, owner(tenant, user))
        return int(below)

    return query


def not_erased(held: Sequence[StoredWindow]) -> Query[list[StoredWindow]]:
    """Those of some stretches that no erasure has taken out of hand."""
    owners = list(dict.fromkeys(window.owner for window in held))

    async def query(connection: Connection) -> list[StoredWindow]:
        found = await _EACH.rows(connection, [owner(*each) for each in owners])
        erased = {each: rows[0][1] for each, rows in zip(owners, found, strict=True) if rows}
        left = [window for window in held if window.from_seq >= erased.get(window.owner, 0)]
        return await conversations.not_erased(connection, left)

    return query


def counted_below(tenant: str, user: str, seq: int) -> Query[dict[str, int]]:
    """How many rows of a user lie below a log position, by table; those that hold none are left out."""

    async def query(connection: Connection) -> dict[str, int]:
        below = owner(tenant, user) | {"below": seq}
        counts = {name: (await count.row(connection, below))[0] for name, count in _COUNTS.items()}
        return {name: count for name, count in counts.items() if count}

    return query


def counted_with(tenant: str, user: str, words: str) -> Query[int]:
    """How many rows of a user hold some words, wherever they stand there, in whatever case."""

    async def query(connection: Connection) -> int:
        wanted = owner(tenant, user) | {"words": words}
        return sum([(await search.row(connection, wanted))[0] for search in _SEARCHES])

    return query


def counted_in_statistics(words: str) -> Query[int]:
    """How many columns there are whose samples hold some words, in this schema and its other generations.

    No column with content is sampled, unless somebody has changed that, or a generation is of an earlier
    version.
    """

    async def query(connection: Connection) -> int:
        cursor = await connection.execute(_SAMPLED, {"words": words})
        return sum([row[0] async for row in cursor])

    return query


def held_by_providers(tenant: str, user: str, seq: int) -> Query[list[str]]:
    """The batches that are not over with something of a user below a log position; the providers' ids."""

    async def query(connection: Connection) -> list[str]:
        (ids,) = await _PROVIDERS.row(connection, owner(tenant, user) | {"below": seq})
        return sorted(ids)

    return query


def known_events(tenant: str, user: str, event_ids: Sequence[str]) -> Query[set[str]]:
    """Those of some events of a user that there are rows of."""

    async def query(connection: Connection) -> set[str]:
        (found,) = await _KNOWN.row(
            connection, owner(tenant, user) | {"event_ids": [*filter(is_storable, event_ids)]}
        )
        return set(found)

    return query


async def release(database: Database, tenant: str, user: str, seq: int) -> None:
    """Take the stretches below a log position out of hand, those that nobody asks about just now.

    Raises:
        DatabaseUnavailable: none of them.
    """
    async with database.transaction() as connection:
        await _RELEASE.change(connection, [owner(tenant, user) | {"below": seq}])


async def settle(database: Database, tenant: str, user: str, seq: int) -> None:
    """Note that everything else is purged up to an erasure; not of a later one.

    Raises:
        DatabaseUnavailable: it is not noted.
    """
    async with database.transaction() as connection:
        await _SETTLE.change(connection, [owner(tenant, user) | {"below": seq}])
