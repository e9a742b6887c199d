"""Removal of finished work: answered windows, finished batches, and calls of language models."""

from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Delete, Table, and_, delete, exists, or_, select, text, tuple_

from mnemon_infra.database.engine import Connection, Database, Lookup, Statement, make_parameter, query
from mnemon_infra.database.query_parts.tenants import select_tenants
from mnemon_infra.database.tables import IS_OPEN, OF_BATCHES, batches, memory_events, model_calls, windows


class StoredCall(NamedTuple):
    """Key and log position of a call of a language model."""

    seq: int
    tenant: str
    user: str
    event_id: str


_OF_TENANT: Final = make_parameter("of_tenant", str)
_BEFORE: Final = make_parameter("before", datetime)
_AT_MOST: Final = make_parameter("at_most", int)


def _build_window_deletion() -> Delete:
    """Build the statement that deletes answered windows.

    The newest window of each conversation and the windows of open batches stay.

    The newest window tells up to which position its conversation was cut into windows.
    """
    later = windows.alias("later")
    has_later = exists().where(
        later.c.tenant == windows.c.tenant,
        later.c.user_id == windows.c.user_id,
        later.c.conversation == windows.c.conversation,
        later.c.from_seq > windows.c.from_seq,
    )
    open_batches = select(batches.c.batch_id).where(text(IS_OPEN))
    is_over = or_(windows.c.batch_id.is_(None), windows.c.batch_id.not_in(open_batches))
    key = tuple(windows.primary_key.columns)
    old = (
        select(*key)
        .where(
            and_(windows.c.tenant == _OF_TENANT, windows.c.is_answered, windows.c.cut_at < _BEFORE),
            has_later,
            is_over,
        )
        .limit(_AT_MOST)
        .with_for_update(skip_locked=True)
    )
    return delete(windows).where(tuple_(*key).in_(old))


def _build_batch_deletion() -> Delete:
    """Build the statement that deletes finished batches that neither an event nor a window names.

    Such batches remain, for example, after the erasure of their users. The state of the batches has not
    changed since the parameter `before`. A batch that an event names stays, because the next start of
    `extract` would recover it from the event.
    """
    events = memory_events
    is_named = exists().where(
        text(OF_BATCHES), events.c.item == batches.c.batch_id, events.c.event == "batch.intended"
    )
    has_windows = exists().where(windows.c.batch_id == batches.c.batch_id)
    old = (
        select(batches.c.batch_id)
        .where(
            text(f"NOT ({IS_OPEN})"),
            batches.c.changed_at < _BEFORE,
            ~is_named,
            ~has_windows,
        )
        .limit(_AT_MOST)
        .with_for_update(skip_locked=True)
    )
    return delete(batches).where(batches.c.batch_id.in_(old))


_TENANTS: Final = {table: Lookup(select(select_tenants(table).c.tenant)) for table in (windows, model_calls)}
_WINDOWS: Final = Statement(_build_window_deletion())
_BATCHES: Final = Statement(_build_batch_deletion())
_OLD_CALLS: Final = Lookup(
    select(*model_calls.c["seq", "tenant", "user_id", "event_id"])
    .where(model_calls.c.tenant == _OF_TENANT, model_calls.c.at < _BEFORE)
    .order_by(model_calls.c.at)
    .limit(_AT_MOST)
)
_CALL: Final = Statement(
    delete(model_calls).where(
        model_calls.c.tenant == _OF_TENANT,
        model_calls.c.user_id == make_parameter("of_user", str),
        model_calls.c.event_id == make_parameter("of_event", str),
        model_calls.c.seq == make_parameter("at_seq", int),
    )
)


@query
async def list_tenants_of(connection: Connection, table: Table) -> list[str]:
    """Return the tenants with rows in a table, which is `windows` or `model_calls`."""
    return sorted(tenant for (tenant,) in await _TENANTS[table].fetch(connection))


@query
async def has_next_generation(connection: Connection) -> bool:
    """Return whether the next generation exists, which a rebuild has begun and not made live yet."""
    cursor = await connection.execute(
        "SELECT to_regnamespace(quote_ident(current_schema() || '_next')) IS NOT NULL"
    )
    ((exists_already,),) = await cursor.fetchall()
    return bool(exists_already)


async def delete_answered_windows(database: Database, tenant: str, before: datetime, at_most: int) -> int:
    """Delete up to `at_most` of a tenant's answered windows that were cut before the moment `before`.

    The newest window of each conversation and the windows of open batches stay. Return the number of deleted
    rows.
    """
    bounds = {"of_tenant": tenant, "before": before, "at_most": at_most}
    async with database.transaction() as connection:
        return await _WINDOWS.execute_each(connection, [bounds])


async def delete_finished_batches(database: Database, before: datetime, at_most: int) -> int:
    """Delete up to `at_most` finished batches that have neither windows nor events left.

    Only batches that finished before the moment `before` are deleted.

    Returns:
        The number of deleted rows.
    """
    async with database.transaction() as connection:
        return await _BATCHES.execute_each(connection, [{"before": before, "at_most": at_most}])


@query
async def list_old_calls(
    connection: Connection, tenant: str, before: datetime, at_most: int
) -> list[StoredCall]:
    """Return a tenant's calls of language models before a moment, oldest first, at most `at_most`."""
    found = await _OLD_CALLS.fetch(connection, of_tenant=tenant, before=before, at_most=at_most)
    return sorted(map(StoredCall._make, found))


async def delete_calls(database: Database, calls: list[StoredCall]) -> None:
    """Delete the rows of calls of language models."""
    rows = [
        {"of_tenant": call.tenant, "of_user": call.user, "of_event": call.event_id, "at_seq": call.seq}
        for call in calls
    ]
    async with database.transaction() as connection:
        await _CALL.execute_each(connection, rows)
