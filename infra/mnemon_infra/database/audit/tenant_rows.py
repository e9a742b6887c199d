"""Rows of one tenant, to compare two deployments, and counts of the unfinished work that a move waits for."""

from collections.abc import Sequence
from typing import Any, Final

from psycopg.sql import SQL, Identifier

from mnemon_infra.database.engine import Connection, Database, query
from mnemon_infra.database.erasure.users import PROJECTED_TABLES
from mnemon_infra.database.tables import IS_OPEN, WAITS, erasures

COMPARED_TABLES: Final = tuple(table.name for table in (*PROJECTED_TABLES, erasures))
"""Tables that a move compares: all projections."""


@query
async def list_tenant_users(connection: Connection, tenant: str) -> list[str]:
    """Return the users of a tenant that have rows in `COMPARED_TABLES`, sorted by id."""
    parts = SQL(" UNION ").join(
        SQL("SELECT user_id FROM {} WHERE tenant = %(tenant)s").format(Identifier(table))
        for table in COMPARED_TABLES
    )
    cursor = await connection.execute(SQL("{} ORDER BY 1").format(parts), {"tenant": tenant})
    return [user for (user,) in await cursor.fetchall()]


@query
async def load_tenant_rows(
    connection: Connection, tenant: str, users: Sequence[str], table: str, up_to: int
) -> list[dict[str, Any]]:
    """Return the rows of users in one of the `COMPARED_TABLES`, each as a JSON object.

    Only events up to the log position `up_to` count.
    """
    statement = SQL(
        "SELECT to_jsonb(found) FROM {} AS found WHERE tenant = %s AND user_id = ANY(%s) AND seq <= %s"
    ).format(Identifier(table))
    cursor = await connection.execute(statement, (tenant, list(users), up_to))
    return [row for (row,) in await cursor.fetchall()]


@query
async def count_batched_windows(connection: Connection, tenant: str) -> int:
    """Return the number of a tenant's windows that wait for the answer of a batch."""
    statement = SQL(
        "SELECT count(*) FROM windows JOIN batches USING (batch_id)"
        " WHERE tenant = %s AND NOT is_answered AND {}"
    ).format(SQL(IS_OPEN))
    row = await (await connection.execute(statement, (tenant,))).fetchone()
    return int(row[0]) if row else 0


@query
async def count_busy_windows(connection: Connection, tenant: str) -> int:
    """Return the number of a tenant's windows that a process has locked, while it asks a model about them."""
    waiting = SQL("SELECT count(*) FROM windows WHERE tenant = %s AND {}").format(SQL(WAITS))
    free = SQL(
        "SELECT count(*) FROM (SELECT FROM windows WHERE tenant = %s AND {} FOR UPDATE SKIP LOCKED) AS free"
    ).format(SQL(WAITS))
    counts = []
    for statement in (waiting, free):
        row = await (await connection.execute(statement, (tenant,))).fetchone()
        counts.append(int(row[0]) if row else 0)
    return max(0, counts[0] - counts[1])


async def delete_call_rows(database: Database, tenant: str, positions: Sequence[int]) -> None:
    """Delete the rows of a tenant's calls of language models at the given log positions."""
    async with database.transaction() as connection:
        await connection.execute(
            "DELETE FROM model_calls WHERE tenant = %s AND seq = ANY(%s)", (tenant, list(positions))
        )
