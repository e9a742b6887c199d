"""Generations of the projections: creation, listing, progress and removal.

A generation is a schema. Each generation but the live one has two more tables: `replay` for its applied
position, and `replay_sweeps` for users with content that is yet to be removed. `vector_replay` and
`vector_sweeps` are the same for vectors, if the generation has any.
"""

import re
from typing import Any, Final, NamedTuple

from psycopg.sql import SQL, Composed, Identifier

from mnemon_infra.database.engine import Connection, Database, query
from mnemon_infra.database.generations.progress import ROWS
from mnemon_infra.database.tables import WORK_TABLES, conversation_erasures, erasures, metadata
from mnemon_infra.generation_names import OTHERS, GenerationKind, name_generation

UNDERIVED_COLUMNS: Final = (erasures.c.is_settled, conversation_erasures.c.is_settled)
"""Columns that no event determines: they record work that was done outside the database."""

PROJECTIONS: Final = tuple(table for table in metadata.sorted_tables if table not in WORK_TABLES)


class Generation(NamedTuple):
    """A generation that exists in the database, with its progress and its size.

    Attributes:
        kind: its role: live, former, next, or as of a position.
        revision: revision of its tables; empty if it has no revision.
        reached: its applied position; None for the live one, which persist writes, and for a schema that was
            dropped or belongs to another program.
        up_to: the last log position that it is to contain; None for no limit.
        sweeps: number of users whose rows are yet to be swept, plus the number of users whose vectors are yet
            to be swept.
        bytes: size on disk, in bytes.
        vectors: the applied position of its vectors; None if it is not recorded, or there are no vectors.
    """

    schema: str
    kind: GenerationKind
    revision: str = ""
    reached: int | None = None
    up_to: int | None = None
    sweeps: int = 0
    bytes: int = 0
    vectors: int | None = None

    @property
    def is_made_here(self) -> bool:
        """True if mnemon made this schema.

        A schema with the name of a generation but without the record of a rebuild belongs to another program.
        """
        return self.kind == "live" or self.reached is not None

    @property
    def is_complete(self) -> bool:
        """True if rows and vectors have reached `up_to`, and no user is left to sweep.

        The live and the former generation always count as complete. For a schema that is not made here, the
        value means nothing.
        """
        if self.kind in ("live", "former"):
            return True
        return self.reached == self.up_to and self.vectors in (None, self.up_to) and not self.sweeps


@query
async def list_generations(connection: Connection, live: str) -> list[Generation]:
    """List all generations, the live one first.

    Schemas of other programs that bear the name of a generation are included; see `Generation.is_made_here`.
    """
    kinds: dict[str, GenerationKind] = {"": "live", "before": "former", "next": "next"}
    found = [
        await _describe_generation(connection, match[0], kinds.get(match[1] or "", "as of"))
        for match in await _match_schemas(connection, rf"{re.escape(live)}(?:{OTHERS})?")
    ]
    return sorted(found, key=lambda each: each.kind != "live")


async def _match_schemas(connection: Connection, pattern: str) -> list[re.Match[str]]:
    cursor = await connection.execute("SELECT nspname FROM pg_namespace ORDER BY nspname")
    matches = [re.fullmatch(pattern, name) for (name,) in await cursor.fetchall()]
    return [match for match in matches if match]


@query
async def list_snapshot_positions(connection: Connection, live: str) -> list[int]:
    """Return the sorted log positions as of which generations exist, complete or not."""
    return sorted(
        int(match[1]) for match in await _match_schemas(connection, rf"{re.escape(live)}_until_(\d+)")
    )


@query
async def describe_snapshot(connection: Connection, live: str, position: int) -> Generation:
    """Describe the generation as of a position.

    `reached` is None if there is no such generation, or if its schema belongs to another program.
    """
    return await _describe_generation(connection, name_generation(live, "as of", position), "as of")


async def _describe_generation(connection: Connection, schema: str, kind: GenerationKind) -> Generation:
    async def fetch_value(statement: Composed) -> Any:
        row = await (await connection.execute(statement)).fetchone()
        return row[0] if row else None

    async def has_table(table: str) -> bool:
        return await fetch_value(SQL("SELECT to_regclass({})").format(f'"{schema}".{table}')) is not None

    size = await fetch_value(
        SQL(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = to_regnamespace({})"
        ).format(f'"{schema}"')
    )
    found = Generation(schema, kind, bytes=size)
    if await has_table("alembic_version"):
        found = found._replace(
            revision=await fetch_value(
                SQL("SELECT version_num FROM {}").format(Identifier(schema, "alembic_version"))
            )
        )
    if kind == "live" or not await has_table("replay"):
        return found
    cursor = await connection.execute(
        SQL("SELECT reached, up_to FROM {}").format(Identifier(schema, "replay"))
    )
    reached, up_to = await cursor.fetchone() or (0, None)
    sweeps = await fetch_value(SQL("SELECT count(*) FROM {}").format(Identifier(schema, "replay_sweeps")))
    vectors = None
    if await has_table("vector_replay"):
        vectors = await fetch_value(SQL("SELECT reached FROM {}").format(Identifier(schema, "vector_replay")))
        sweeps += await fetch_value(
            SQL("SELECT count(*) FROM {}").format(Identifier(schema, "vector_sweeps"))
        )
    return found._replace(reached=reached, up_to=up_to, sweeps=sweeps, vectors=vectors)


async def create_generation(database: Database, schema: str, up_to: int | None = None) -> None:
    """Create the schema of a generation with the record of its progress; it has no other tables yet."""
    async with database.transaction() as connection:
        await connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
        await ROWS.create(connection, schema, 0, up_to)


async def analyze_tables(database: Database) -> None:
    """Update PostgreSQL's statistics, so that the first queries do not run with bad plans."""
    async with database.transaction() as connection:
        await connection.execute("SET LOCAL statement_timeout = 0")
        for table in PROJECTIONS:
            await connection.execute(SQL("ANALYZE {}").format(Identifier(table.name)))


async def drop_schema(database: Database, schema: str) -> None:
    """Drop a generation with all its tables."""
    async with database.transaction() as connection:
        await connection.execute("SET LOCAL statement_timeout = 0")
        await connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))
