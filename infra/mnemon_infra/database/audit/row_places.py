"""Rows of all projections but `erasures`, by log position, to find rows whose event is not in the log."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, LiteralString, NamedTuple

from mnemon_infra.database.engine import Connection, Database
from mnemon_infra.database.erasure.conversations import list_rows_of_erased_conversations
from mnemon_infra.database.erasure.users import PROJECTED_TABLES
from mnemon_infra.database.tables import memory_events

_ROWS: Final = " UNION ALL ".join(
    f"SELECT '{table.name}' AS name, seq, tenant, user_id, event_id FROM {table.name} WHERE seq <= %(up_to)s"  # noqa: S608 - names of our own
    for table in PROJECTED_TABLES
)
_BEGINNINGS: Final = {
    memory_events: "least(memory_events.seq, (memory_events.body ->> 'from_seq')::bigint)",
}
"""SQL of the position by which an erasure covers a row, for tables where it is not the row's own.

A summary or a window is erased with its first message.
"""

_PAGE: Final = 10_000

_END: Final = 2**63 - 1
"""The highest log position that a row can have."""


class RowPlace(NamedTuple):
    """Place of a row: its table, its log position, and its key."""

    table: str
    seq: int
    tenant: str
    user: str
    event_id: str


_ERASED_ROWS: Final = " UNION ALL ".join(
    f"SELECT '{table.name}' AS name, {table.name}.seq, tenant, user_id, event_id"  # noqa: S608 - names of our own
    f" FROM {table.name} JOIN erasures USING (tenant, user_id)"
    f" WHERE {table.name}.seq <= %(up_to)s AND {_BEGINNINGS.get(table, f'{table.name}.seq')} < erasures.seq"
    for table in PROJECTED_TABLES
)


@asynccontextmanager
async def open_long_read(database: Database) -> AsyncIterator[Connection]:
    """Open a read-only transaction without a statement timeout, for reads of whole tables.

    All reads in the transaction see the same state of the database.
    """
    async with database.transaction(keep=False) as connection:
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        await connection.execute("SET LOCAL statement_timeout = 0")
        yield connection


async def count_rows(database: Database, up_to: int) -> int:
    """Count the rows of all projections but `erasures`, up to the log position `up_to`."""
    return int(await _aggregate_rows(database, "count(*)", up_to))


async def find_highest_position(database: Database) -> int:
    """Return the highest log position of any row outside `erasures`; 0 if there is no row."""
    return int(await _aggregate_rows(database, "coalesce(max(seq), 0)", _END))


async def _aggregate_rows(database: Database, function: LiteralString, up_to: int) -> Any:
    async with open_long_read(database) as connection:
        cursor = await connection.execute(f"SELECT {function} FROM ({_ROWS}) AS rows", {"up_to": up_to})  # noqa: S608
        [[value]] = await cursor.fetchall()
        return value


async def list_erased_rows(database: Database, up_to: int) -> list[RowPlace]:
    """Return the rows up to the log position `up_to` that are left although an erasure covers them.

    A summary or an answered window that begins below an erasure is covered, even if the event of the summary
    or window lies above the erasure.
    """
    async with open_long_read(database) as connection:
        cursor = await connection.execute(_ERASED_ROWS, {"up_to": up_to})
        found = await cursor.fetchall() + await list_rows_of_erased_conversations(connection, up_to)
        return [RowPlace._make(row) for row in found]


async def stream_row_places(
    database: Database, up_to: int, after: int = 0
) -> AsyncGenerator[list[RowPlace], None]:
    """Yield the rows above the log position `after` and up to `up_to`, page by page, in log order."""
    async with open_long_read(database) as connection, connection.cursor(name="places") as cursor:
        await cursor.execute(
            f"SELECT * FROM ({_ROWS}) AS rows WHERE seq > %(after)s ORDER BY seq",  # noqa: S608
            {"up_to": up_to, "after": after},
        )
        while page := await cursor.fetchmany(_PAGE):
            yield [RowPlace._make(row) for row in page]
