"""Rows that can be searched: messages, facts, documents and summaries that belong in the vector store."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final, NamedTuple

from psycopg.types.json import Jsonb

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.audit.row_places import open_long_read
from mnemon_infra.database.engine import Database, is_storable
from mnemon_infra.database.query_parts.item_states import SUMMARIES, VERSIONS
from mnemon_infra.vectors.port import Collection

PAGE: Final = 5000


class IndexableItem(NamedTuple):
    """An item that can be searched.

    Attributes:
        seq: the log position of the event that wrote its row.
        event_id: id of the event that wrote its row.
        item: the id of the fact, document or summary; the event id of a message.
        body: the body of the event of a document; None for any other item.
    """

    seq: int
    owner: Owner
    event_id: str
    item: str
    body: dict[str, Any] | None = None


class _ItemSource(NamedTuple):
    """Source of a collection's items: the table, the columns of an item, and the condition for a row.

    `versions` are the names of the memory events that contain the content; empty for messages.
    """

    table: str
    item: str
    where: str
    versions: Sequence[str] = ()


_NEWEST: Final = """
    stored.event = ANY(%(versions)s) AND stored.body IS NOT NULL AND NOT EXISTS (
        SELECT FROM memory_events AS newer
        WHERE newer.tenant = stored.tenant AND newer.user_id = stored.user_id AND newer.item = stored.item
          AND newer.event = ANY(%(versions)s) AND newer.body IS NOT NULL AND newer.seq > stored.seq
    )
"""
_SAVED: Final = """
    AND EXISTS (
        SELECT FROM memory_events AS saved
        WHERE saved.tenant = stored.tenant AND saved.user_id = stored.user_id AND saved.item = stored.item
          AND saved.event = 'fact.saved'
    )
"""
_NOT_MERGED: Final = """
    AND NOT EXISTS (
        SELECT FROM memory_events AS merged
        WHERE merged.tenant = stored.tenant AND merged.user_id = stored.user_id
          AND merged.conversation = stored.conversation AND merged.event = 'summary.merged'
          AND merged.body IS NOT NULL AND merged.body -> 'merged' ? stored.item
    )
"""
_SOURCES: Final = {
    Collection.MESSAGES: _ItemSource("messages", "stored.event_id, NULL", "stored.role IS NOT NULL"),
    Collection.MEMORIES: _ItemSource("memory_events", "stored.item, NULL", _NEWEST + _SAVED, VERSIONS),
    Collection.DOCUMENTS: _ItemSource(
        "memory_events", "stored.item, stored.body", _NEWEST, ("document.added",)
    ),
    Collection.SUMMARIES: _ItemSource("memory_events", "stored.item, NULL", _NEWEST + _NOT_MERGED, SUMMARIES),
}


async def find_indexable_events(
    database: Database, collection: Collection, keys: Sequence[tuple[Owner, str]]
) -> dict[tuple[Owner, str], int]:
    """Return the log position of each event in `keys` that has a searchable row.

    A key is the owner and the id of an event.
    """
    rows = [
        {"tenant": tenant, "user_id": user, "event_id": event}
        for (tenant, user), event in keys
        if is_storable(event)
    ]
    of = _SOURCES[collection]
    sql = f"""
        SELECT tenant, user_id, event_id, stored.seq
        FROM jsonb_to_recordset(%(rows)s) AS row (tenant text, user_id text, event_id text)
        JOIN {of.table} AS stored USING (tenant, user_id, event_id) WHERE {of.where}
    """  # noqa: S608 - made of our own text
    async with open_long_read(database) as connection:
        found = await connection.execute(sql, {"rows": Jsonb(rows), "versions": list(of.versions)})
        return {((row[0], row[1]), row[2]): row[3] for row in await found.fetchall()}


async def has_indexable_rows(database: Database, collection: Collection) -> bool:
    """Return whether the database has any row to index in a collection of the vector store."""
    of = _SOURCES[collection]
    sql = f"SELECT EXISTS (SELECT FROM {of.table} AS stored WHERE {of.where})"  # noqa: S608 - made of our own text
    async with open_long_read(database) as connection:
        found = await connection.execute(sql, {"versions": list(of.versions)})
        return await found.fetchone() == (True,)


async def list_indexable_owners(database: Database, collection: Collection) -> list[Owner]:
    """Return the users with memory events for points of a collection; empty for `MESSAGES`.

    A user counts even if the events' memories have been removed since.
    """
    async with open_long_read(database) as connection:
        found = await connection.execute(
            "SELECT DISTINCT tenant, user_id FROM memory_events WHERE event = ANY(%(versions)s)",
            {"versions": list(_SOURCES[collection].versions)},
        )
        return [(tenant, user) for tenant, user in await found.fetchall()]


async def stream_indexable_items(
    database: Database, collection: Collection, up_to: int
) -> AsyncGenerator[list[IndexableItem], None]:
    """Yield the searchable items of a collection up to the log position `up_to`, by page, in any order."""
    of = _SOURCES[collection]
    sql = f"""
        SELECT stored.seq, stored.tenant, stored.user_id, stored.event_id, {of.item}
        FROM {of.table} AS stored WHERE {of.where} AND stored.seq <= %(up_to)s
    """  # noqa: S608 - made of our own text
    async with open_long_read(database) as connection, connection.cursor(name="findable") as cursor:
        await cursor.execute(sql, {"up_to": up_to, "versions": list(of.versions)})
        while page := await cursor.fetchmany(PAGE):
            yield [
                IndexableItem(seq, (tenant, user), event_id, item, body)
                for seq, tenant, user, event_id, item, body in page
            ]
