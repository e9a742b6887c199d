"""Progress of the vectors of a generation, recorded in its schema so that a swap moves both together.

The live generation has such a record only between the swap of its rows and the swap of its vectors: the
record says that the latter is still to be done.
"""

from collections.abc import Iterable, Sequence

from psycopg.sql import SQL, Identifier

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Database
from mnemon_infra.database.generations.generation_repository import OWNERS_PER_SWEEP

_TABLES = "vector_replay", "vector_sweeps"


async def load_position(database: Database, schema: str) -> int | None:
    """Return the applied position of the vectors; None without a record.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """

    async def query(connection: Connection) -> int | None:
        found = await connection.execute("SELECT to_regclass(%s)", (f'"{schema}".vector_replay',))
        if await found.fetchone() == (None,):
            return None
        record = SQL("SELECT reached FROM {}").format(Identifier(schema, "vector_replay"))
        row = await (await connection.execute(record)).fetchone()
        return row[0] if row else None

    return await database.run_query(query)


async def restart_record(database: Database, schema: str) -> None:
    """Replace the record by an empty one, at the start of the log.

    Raises:
        DatabaseUnavailable: the old record stays.
    """
    async with database.transaction() as connection:
        await _drop_tables(connection, schema)
        await create_record(connection, schema, 0, ())


async def create_record(connection: Connection, schema: str, position: int, owed: Iterable[Owner]) -> None:
    """Create the record: the applied position of the vectors, and the users whose vectors are to be swept."""
    await connection.execute(
        SQL("CREATE TABLE {} (reached bigint NOT NULL)").format(Identifier(schema, "vector_replay"))
    )
    await connection.execute(
        SQL("CREATE TABLE {} (tenant text, user_id text, PRIMARY KEY (tenant, user_id))").format(
            Identifier(schema, "vector_sweeps")
        )
    )
    await connection.execute(
        SQL("INSERT INTO {} VALUES (%s)").format(Identifier(schema, "vector_replay")), (position,)
    )
    await _add_owners(connection, schema, owed)


async def record_progress(database: Database, schema: str, position: int, owed: Iterable[Owner]) -> None:
    """Record the applied position of the vectors, and further users whose vectors are to be swept.

    Raises:
        DatabaseUnavailable: nothing is recorded.
    """
    async with database.transaction() as connection:
        await _add_owners(connection, schema, owed)
        await connection.execute(
            SQL("UPDATE {} SET reached = greatest(reached, %s)").format(Identifier(schema, "vector_replay")),
            (position,),
        )


async def list_owners_to_sweep(database: Database, schema: str) -> list[Owner]:
    """Return some of the users whose vectors are to be swept, at most `AT_ONCE`.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """

    async def query(connection: Connection) -> list[Owner]:
        some = SQL("SELECT tenant, user_id FROM {} LIMIT %s").format(Identifier(schema, "vector_sweeps"))
        cursor = await connection.execute(some, (OWNERS_PER_SWEEP,))
        return [(tenant, user) for tenant, user in await cursor.fetchall()]

    return await database.run_query(query)


async def remove_swept_owners(database: Database, schema: str, owners: Sequence[Owner]) -> None:
    """Remove users from the list of those to sweep.

    Raises:
        DatabaseUnavailable: they stay on the list.
    """
    gone = SQL(
        "DELETE FROM {} WHERE (tenant, user_id) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
    ).format(Identifier(schema, "vector_sweeps"))
    async with database.transaction() as connection:
        await connection.execute(gone, _split_owners(owners))


async def drop_record(database: Database, schema: str) -> None:
    """Drop the record.

    Raises:
        DatabaseUnavailable: it stays.
    """
    async with database.transaction() as connection:
        await _drop_tables(connection, schema)


async def _add_owners(connection: Connection, schema: str, owners: Iterable[Owner]) -> None:
    insertion = SQL("INSERT INTO {} SELECT * FROM unnest(%s::text[], %s::text[]) ON CONFLICT DO NOTHING")
    sweeps = Identifier(schema, "vector_sweeps")
    # Sorted: two transactions that insert the same users could otherwise deadlock.
    await connection.execute(insertion.format(sweeps), _split_owners(sorted(set(owners))))


def _split_owners(owners: Sequence[Owner]) -> tuple[list[str], list[str]]:
    return [tenant for tenant, _ in owners], [user for _, user in owners]


async def _drop_tables(connection: Connection, schema: str) -> None:
    for name in _TABLES:
        await connection.execute(SQL("DROP TABLE IF EXISTS {}").format(Identifier(schema, name)))
