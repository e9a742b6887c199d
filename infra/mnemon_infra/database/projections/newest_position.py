"""How far the log was when the newest rows were written."""

from typing import Final

from psycopg.sql import SQL, Composed, Identifier

from mnemon_infra.database.engine import Connection, Query
from mnemon_infra.database.tables import memory_events, messages

PAGES: Final = 16
"""Pages at the end of a table, where new rows are: there is no index by position, and no need of one."""


def _at_the_end(table: str) -> Composed:
    return SQL("""
        SELECT max(seq) FROM {table} WHERE ctid >= format('(%s,0)',
            greatest(pg_relation_size({name}) / current_setting('block_size')::bigint - {pages}, 0))::tid
        """).format(table=Identifier(table), name=table, pages=PAGES)


_NEWEST: Final = tuple(_at_the_end(table.name) for table in (messages, memory_events))


def newest_position() -> Query[int]:
    """The highest log position among rows that were written lately: there may be higher ones, not many."""

    async def query(connection: Connection) -> int:
        highest = 0
        for statement in _NEWEST:
            row = await (await connection.execute(statement)).fetchone()
            highest = max(highest, (row and row[0]) or 0)
        return highest

    return query
