"""Two generations, row for row."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from psycopg.sql import SQL, Composed, Identifier
from sqlalchemy import Table

from mnemon_infra.database.engine import Connection, Query
from mnemon_infra.database.generations.generation_repository import NOTED

PAGE: Final = 5000
"""Rows of each side that are compared in one go."""

RowKey = tuple[str, ...]
"""The values of a table's primary key, in its order."""


class Difference(NamedTuple):
    """A row that is not the same in both.

    Attributes:
        table: where.
        key: of the row, by column.
        live: what it says in the live one, by column, where the two differ; None: it is not there.
        rebuilt: the same of the rebuilt one.
    """

    table: str
    key: Mapping[str, str]
    live: Mapping[str, Any] | None
    rebuilt: Mapping[str, Any] | None


class ComparedRows(NamedTuple):
    """A page of a table.

    Attributes:
        rows: how many of the live one were looked at.
        differences: between the two.
        last: the key at which it ends; None at the end of the table.
    """

    rows: int
    differences: list[Difference]
    last: RowKey | None


def compared(table: Table, live: str, rebuilt: str, after: RowKey | None, up_to: int) -> Query[ComparedRows]:
    """What differs in the next rows of a table.

    Args:
        table: one of the projections.
        live: the schema of the one generation.
        rebuilt: that of the other.
        after: rows beyond this key are looked at; None: from the first.
        up_to: only events up to this log position.
    """
    columns = [column.name for column in table.primary_key]
    key = SQL(", ").join(map(Identifier, columns))
    columns_compared = SQL(", ").join(Identifier(column.name) for column in table.c if column not in NOTED)
    beyond = SQL("({}) > ({})").format(key, _values(after)) if after else SQL("true")

    async def query(connection: Connection) -> ComparedRows:
        # As one statement it would be planned anew for each page: these are two short ones.
        last = await _last(connection, table.name, (live, rebuilt), key, beyond)
        within = SQL("({}) <= ({})").format(key, _values(last)) if last else SQL("true")

        def side(schema: str) -> Composed:
            return SQL("(SELECT {} FROM {} WHERE {} AND {} AND seq <= {})").format(
                columns_compared, Identifier(schema, table.name), beyond, within, up_to
            )

        cursor = await connection.execute(
            SQL(
                "SELECT (SELECT count(*) FROM {0} AS counted), coalesce(jsonb_agg(jsonb_build_array("
                "to_jsonb(live), to_jsonb(rebuilt))), '[]')"
                " FROM {0} AS live FULL JOIN {1} AS rebuilt USING ({2}) WHERE live IS DISTINCT FROM rebuilt"
            ).format(side(live), side(rebuilt), key)
        )
        ((rows, pairs),) = await cursor.fetchall()
        found = [_difference(table.name, columns, one, other) for one, other in pairs]
        return ComparedRows(rows, sorted(found, key=lambda each: tuple(each.key.values())), last)

    return query


async def _last(
    connection: Connection, table: str, schemas: tuple[str, str], key: Composed, beyond: Any
) -> RowKey | None:
    """The key up to which neither of the two has more than a page of rows."""
    ends = SQL(" UNION ALL ").join(
        SQL("(SELECT {} FROM {} WHERE {} ORDER BY {} OFFSET {} LIMIT 1)").format(
            key, Identifier(schema, table), beyond, key, PAGE - 1
        )
        for schema in schemas
    )
    cursor = await connection.execute(SQL("SELECT * FROM ({}) AS ends ORDER BY {} LIMIT 1").format(ends, key))
    return await cursor.fetchone()


def _values(key: RowKey) -> Composed:
    return SQL(", ").join(map(SQL("{}").format, key))


def _difference(
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
