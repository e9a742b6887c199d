"""Log positions of rows: of the row of an event, and of the newest rows."""

from functools import cache
from typing import Final

from psycopg.sql import SQL, Composed, Identifier
from sqlalchemy import func, select

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent
from mnemon_contracts.subjects import InvalidSubject
from mnemon_infra.database.engine import Connection, Database, Statement, make_parameter, query
from mnemon_infra.database.erasure.users import load_erasure
from mnemon_infra.database.projections.rows import EventRow, build_row, get_table
from mnemon_infra.database.tables import KEY, erasures, memory_events, messages, metadata
from mnemon_infra.delivery import Delivery

PAGES: Final = 16
"""Number of pages at the end of a table that are searched for the newest rows, in place of an index."""


def _select_newest(table: str) -> Composed:
    return SQL("""
        SELECT max(seq) FROM {table} WHERE ctid >= format('(%s,0)',
            greatest(pg_relation_size({name}) / current_setting('block_size')::bigint - {pages}, 0))::tid
        """).format(table=Identifier(table), name=table, pages=PAGES)


_NEWEST: Final = tuple(_select_newest(table.name) for table in (messages, memory_events))


@query
async def find_newest_position(connection: Connection) -> int:
    """Return the highest log position among the last written rows of messages and memory events.

    The position is 0 if there are no rows. A few rows that were written earlier may have higher positions.
    """
    highest = 0
    for statement in _NEWEST:
        row = await (await connection.execute(statement)).fetchone()
        highest = max(highest, (row and row[0]) or 0)
    return highest


async def is_applied(database: Database, delivery: Delivery) -> bool | None:
    """Return whether an event has a row with its log position; None if such events have no rows.

    The result is False for an event that cannot be decoded, and for a copy of an event whose row has the
    position of another copy. An erasure of a user is applied if the user's row covers it: all erasures of a
    user share one row.
    """
    try:
        row = build_row(delivery)
    except (InvalidSubject, UnknownEvent, InvalidBody):
        return False
    if row is None:
        return None
    if isinstance(row, EventRow) and row.table == erasures.name:
        erasure = await database.run_query(load_erasure(*row.key[:2]))
        return erasure is not None and erasure.seq >= row.values["up_to"]
    parameters = dict(zip(KEY, row.key, strict=True))
    statement = _select_position(get_table(row))
    position = await database.run_query(lambda connection: statement.fetch_value(connection, parameters))
    return bool(position == delivery.sequence)


@cache
def _select_position(table: str) -> Statement:
    columns = metadata.tables[table].c
    return Statement(
        select(func.max(columns.seq)).where(*(columns[name] == make_parameter(name, str) for name in KEY))
    )
