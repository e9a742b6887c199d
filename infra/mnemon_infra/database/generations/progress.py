"""Progress of a replay into a generation, recorded in its schema so that a swap moves the record with it.

Each generation but the live one has a record for its rows. The live generation has a record for its vectors
only between the swap of its rows and the swap of its vectors: the record says that the swap of the vectors is
still due.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, LiteralString

from psycopg.sql import SQL, Identifier

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Database, query

OWNERS_PER_SWEEP: Final = 200
"""Maximum number of users in one sweep."""


class ProgressRecord:
    """Two tables in the schema of a generation: the applied position, and the users who are to be swept.

    Args:
        replay: name of the table with the position.
        sweeps: name of the table of users.
        further: definitions of further columns of the table with the position, each with a comma before it.
    """

    def __init__(self, replay: str, sweeps: str, further: LiteralString = "") -> None:
        self._replay = replay
        self._sweeps = sweeps
        self._further = SQL(further)

    async def load_position(self, database: Database, schema: str) -> int | None:
        """Return the applied position; None if there is no record."""

        @query
        async def load(connection: Connection) -> int | None:
            cursor = await connection.execute("SELECT to_regclass(%s)", (f'"{schema}".{self._replay}',))
            if await cursor.fetchone() == (None,):
                return None
            rows = await self._execute(connection, schema, "SELECT reached FROM {replay}")
            return rows[0][0] if rows else None

        return await database.run_query(load())

    async def list_owners_to_sweep(self, database: Database, schema: str) -> list[Owner]:
        """Return some of the users who are to be swept, at most `OWNERS_PER_SWEEP`."""
        statement: LiteralString = "SELECT tenant, user_id FROM {sweeps} LIMIT %s"
        found = await database.run_query(
            lambda connection: self._execute(connection, schema, statement, OWNERS_PER_SWEEP)
        )
        return [(tenant, user) for tenant, user in found]

    async def create(
        self, connection: Connection, schema: str, *values: int | None, owners: Collection[Owner] = ()
    ) -> None:
        """Create the record of a generation, with the users to sweep.

        `values` are the applied position and the values of the further columns.
        """
        await self._execute(connection, schema, "CREATE TABLE {replay} (reached bigint NOT NULL{further})")
        keys: LiteralString = "(tenant text, user_id text, PRIMARY KEY (tenant, user_id))"
        await self._execute(connection, schema, "CREATE TABLE {sweeps} " + keys)
        await connection.execute(
            SQL("INSERT INTO {} VALUES ({})").format(
                Identifier(schema, self._replay), SQL(", ").join(map(SQL("{}").format, values))
            )
        )
        await self._add_owners(connection, schema, owners)

    async def restart(self, database: Database, schema: str) -> None:
        """Reset the recorded progress of a generation to log position 0, without users to sweep."""
        async with database.transaction() as connection:
            await self.drop(connection, schema)
            await self.create(connection, schema, 0)

    async def advance(
        self, database: Database, schema: str, position: int, owners: Collection[Owner]
    ) -> None:
        """Record further users who are to be swept, and the applied position.

        A recorded position that is higher stays.
        """
        async with database.transaction() as connection:
            await self._add_owners(connection, schema, owners)
            statement: LiteralString = "UPDATE {replay} SET reached = %s WHERE reached < %s"
            await self._execute(connection, schema, statement, position, position)

    async def remove_owners(self, database: Database, schema: str, owners: Sequence[Owner]) -> None:
        """Remove users who have been swept from the table of users to sweep."""
        statement: LiteralString = (
            "DELETE FROM {sweeps} WHERE (tenant, user_id) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
        )
        async with database.transaction() as connection:
            await self._execute(connection, schema, statement, *_split_owners(owners))

    async def drop(self, connection: Connection, schema: str) -> None:
        """Drop the two tables of the record, if they exist."""
        await self._execute(connection, schema, "DROP TABLE IF EXISTS {replay}, {sweeps}")

    async def _add_owners(self, connection: Connection, schema: str, owners: Collection[Owner]) -> None:
        statement: LiteralString = (
            "INSERT INTO {sweeps} SELECT * FROM unnest(%s::text[], %s::text[]) ON CONFLICT DO NOTHING"
        )
        if owners:
            # Sorted: two transactions that insert the same users could otherwise deadlock.
            await self._execute(connection, schema, statement, *_split_owners(sorted(set(owners))))

    async def _execute(
        self, connection: Connection, schema: str, statement: LiteralString, *values: Any
    ) -> list[tuple[Any, ...]]:
        named = SQL(statement).format(
            replay=Identifier(schema, self._replay),
            sweeps=Identifier(schema, self._sweeps),
            further=self._further,
        )
        cursor = await connection.execute(named, values)
        return await cursor.fetchall() if cursor.description else []


def _split_owners(owners: Sequence[Owner]) -> tuple[list[str], list[str]]:
    return [tenant for tenant, _ in owners], [user for _, user in owners]


ROWS: Final = ProgressRecord("replay", "replay_sweeps", ", up_to bigint")
"""Progress of the rows. `up_to` is the last position that the generation is to contain; null: no limit."""

VECTORS: Final = ProgressRecord("vector_replay", "vector_sweeps")
"""Progress of the vectors."""
