"""How far the vectors of a generation are: written down beside its rows, and going with them.

The live one has such a record only between the switch of its rows and that of its vectors: it says that the
latter is still to be done.
"""

from collections.abc import Iterable, Sequence

from psycopg.sql import SQL, Identifier

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Database
from mnemon_infra.database.generations.generation_repository import AT_ONCE

_TABLES = "vector_replay", "vector_sweeps"


async def reached(database: Database, schema: str) -> int | None:
    """The log up to here is in the vectors; None where there is no record of any.

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

    return await database.read(query)


async def begin(database: Database, schema: str) -> None:
    """Begin a record anew, at the start of the log.

    Raises:
        DatabaseUnavailable: it is as it was.
    """
    async with database.transaction() as connection:
        await _drop(connection, schema)
        await remember(connection, schema, 0, ())


async def remember(connection: Connection, schema: str, position: int, owed: Iterable[Owner]) -> None:
    """Have a generation remember how far its vectors are, and whose are to be looked through yet."""
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
    await _owe(connection, schema, owed)


async def note(database: Database, schema: str, position: int, owed: Iterable[Owner]) -> None:
    """Write down that the log up to here is in the vectors, and whose are to be looked through now.

    Raises:
        DatabaseUnavailable: nothing is written down.
    """
    async with database.transaction() as connection:
        await _owe(connection, schema, owed)
        await connection.execute(
            SQL("UPDATE {} SET reached = greatest(reached, %s)").format(Identifier(schema, "vector_replay")),
            (position,),
        )


async def owed(database: Database, schema: str) -> list[Owner]:
    """Some of the users whose vectors are to be looked through, `AT_ONCE` at most.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """

    async def query(connection: Connection) -> list[Owner]:
        some = SQL("SELECT tenant, user_id FROM {} LIMIT %s").format(Identifier(schema, "vector_sweeps"))
        cursor = await connection.execute(some, (AT_ONCE,))
        return [(tenant, user) for tenant, user in await cursor.fetchall()]

    return await database.read(query)


async def settled(database: Database, schema: str, owners: Sequence[Owner]) -> None:
    """Strike users off that list.

    Raises:
        DatabaseUnavailable: they stay there.
    """
    gone = SQL(
        "DELETE FROM {} WHERE (tenant, user_id) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
    ).format(Identifier(schema, "vector_sweeps"))
    async with database.transaction() as connection:
        await connection.execute(gone, _columns(owners))


async def forget(database: Database, schema: str) -> None:
    """Remove a record.

    Raises:
        DatabaseUnavailable: it stays.
    """
    async with database.transaction() as connection:
        await _drop(connection, schema)


async def _owe(connection: Connection, schema: str, owners: Iterable[Owner]) -> None:
    insertion = SQL("INSERT INTO {} SELECT * FROM unnest(%s::text[], %s::text[]) ON CONFLICT DO NOTHING")
    sweeps = Identifier(schema, "vector_sweeps")
    # In order: two that note the same users would else wait for each other.
    await connection.execute(insertion.format(sweeps), _columns(sorted(set(owners))))


def _columns(owners: Sequence[Owner]) -> tuple[list[str], list[str]]:
    return [tenant for tenant, _ in owners], [user for _, user in owners]


async def _drop(connection: Connection, schema: str) -> None:
    for name in _TABLES:
        await connection.execute(SQL("DROP TABLE IF EXISTS {}").format(Identifier(schema, name)))
