"""Log position of the newest rows."""

from typing import Final

from psycopg.sql import SQL, Composed, Identifier

from mnemon_infra.database.engine import Connection, query
from mnemon_infra.database.tables import memory_events, messages

PAGES: Final = 16
"""Pages at the end of a table, which hold the newest rows: no index by position exists or is needed."""


def _select_newest(table: str) -> Composed:
    return SQL("""
        SELECT max(seq) FROM {table} WHERE ctid >= format('(%s,0)',
            greatest(pg_relation_size({name}) / current_setting('block_size')::bigint - {pages}, 0))::tid
        """).format(table=Identifier(table), name=table, pages=PAGES)


_NEWEST: Final = tuple(_select_newest(table.name) for table in (messages, memory_events))


@query
async def find_newest_position(connection: Connection) -> int:
    """Return the highest log position among recently written rows.

    A few other rows may have higher positions.
    """
    highest = 0
    for statement in _NEWEST:
        row = await (await connection.execute(statement)).fetchone()
        highest = max(highest, (row and row[0]) or 0)
    return highest
