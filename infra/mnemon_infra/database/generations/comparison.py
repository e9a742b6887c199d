"""Comparison of two generations, row by row."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from psycopg.sql import SQL, Composed, Identifier
from sqlalchemy import Table

from mnemon_infra.database.engine import Connection, query
from mnemon_infra.database.generations.generation_repository import UNDERIVED_COLUMNS

PAGE: Final = 5000
"""Maximum number of rows of each generation that one query compares."""

PAGE_BYTES: Final = 32 * 1024 * 1024
"""A page ends with the row that brings the rows of either generation to this many bytes, as stored.

PostgreSQL writes the rows of a larger page to temporary files, and compares about 80 MB in a second. It
cancels a query after 10 s.
"""

RowKey = tuple[str, ...]
"""The values of a table's primary key, in the order of the key's columns."""


class Difference(NamedTuple):
    """A row that differs between two generations.

    Attributes:
        key: the primary key of the row, by column.
        live: the differing values in the live generation, by column: all values if the rebuilt generation
            lacks the row, and None if the live generation lacks the row.
        rebuilt: the differing values in the rebuilt generation, by column: all values if the live generation
            lacks the row, and None if the rebuilt generation lacks the row.
    """

    table: str
    key: Mapping[str, str]
    live: Mapping[str, Any] | None
    rebuilt: Mapping[str, Any] | None


class ComparedRows(NamedTuple):
    """Comparison of one page of a table.

    Attributes:
        rows: number of rows of the live generation on this page.
        last: the key at which the page ends; None at the end of the table.
    """

    rows: int
    differences: list[Difference]
    last: RowKey | None


@query
async def compare_page(
    connection: Connection, table: Table, live: str, rebuilt: str, after: RowKey | None, up_to: int
) -> ComparedRows:
    """Compare the next page of a table in the generations with the schemas `live` and `rebuilt`.

    The page begins after the key `after`, or with the first row if `after` is None. Rows of events above the
    log position `up_to` are left out.
    """
    columns = [column.name for column in table.primary_key]
    key = SQL(", ").join(map(Identifier, columns))
    columns_compared = SQL(", ").join(
        Identifier(column.name) for column in table.c if column not in UNDERIVED_COLUMNS
    )
    beyond = SQL("({}) > ({})").format(key, _format_key(after)) if after else SQL("true")
    # Two short statements: PostgreSQL would plan a single one again for each page.
    last = await _find_page_end(connection, table, (live, rebuilt), key, beyond)
    within = SQL("({}) <= ({})").format(key, _format_key(last)) if last else SQL("true")

    def select_side(schema: str) -> Composed:
        return SQL("(SELECT {} FROM {} WHERE {} AND {} AND seq <= {})").format(
            columns_compared, Identifier(schema, table.name), beyond, within, up_to
        )

    cursor = await connection.execute(
        SQL(
            "SELECT (SELECT count(*) FROM {0} AS counted), coalesce(jsonb_agg(jsonb_build_array("
            "to_jsonb(live), to_jsonb(rebuilt))), '[]')"
            " FROM {0} AS live FULL JOIN {1} AS rebuilt USING ({2}) WHERE live IS DISTINCT FROM rebuilt"
        ).format(select_side(live), select_side(rebuilt), key)
    )
    ((rows, pairs),) = await cursor.fetchall()
    found = [_make_difference(table.name, columns, one, other) for one, other in pairs]
    return ComparedRows(rows, sorted(found, key=lambda each: tuple(each.key.values())), last)


async def _find_page_end(
    connection: Connection, table: Table, schemas: tuple[str, str], key: Composed, beyond: Any
) -> RowKey | None:
    """Return the first key at which either generation fills a page; None if neither has a full page left."""
    # The size of a long value is in its row: PostgreSQL does not read the value.
    size = SQL(" + ").join(
        SQL("coalesce(pg_column_size({}), 0)").format(Identifier(column.name)) for column in table.c
    )
    ends = SQL(" UNION ALL ").join(
        SQL(
            "(SELECT {key} FROM (SELECT {key}, row_number() OVER page AS number, sum(size) OVER page AS bytes"
            " FROM (SELECT {key}, {size} AS size FROM {table} WHERE {beyond} ORDER BY {key} LIMIT {most})"
            " AS sizes WINDOW page AS (ORDER BY {key})) AS sums"
            " WHERE number = {most} OR bytes >= {most_bytes} ORDER BY {key} LIMIT 1)"
        ).format(
            key=key,
            size=size,
            table=Identifier(schema, table.name),
            beyond=beyond,
            most=PAGE,
            most_bytes=PAGE_BYTES,
        )
        for schema in schemas
    )
    cursor = await connection.execute(SQL("SELECT * FROM ({}) AS ends ORDER BY {} LIMIT 1").format(ends, key))
    return await cursor.fetchone()


def _format_key(key: RowKey) -> Composed:
    return SQL(", ").join(map(SQL("{}").format, key))


def _make_difference(
    table: str, columns: list[str], live: dict[str, Any] | None, rebuilt: dict[str, Any] | None
) -> Difference:
    key = {name: str((live or rebuilt or {})[name]) for name in columns}
    if live is None or rebuilt is None:
        return Difference(table, key, live, rebuilt)
    differing = [name for name in live.keys() | rebuilt.keys() if live.get(name) != rebuilt.get(name)]
    return Difference(
        table,
        key,
        {name: live.get(name) for name in sorted(differing)},
        {name: rebuilt.get(name) for name in sorted(differing)},
    )
