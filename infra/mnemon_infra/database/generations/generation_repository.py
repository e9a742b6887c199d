"""Generations of the projections: creation, listing, progress and removal.

A generation is a schema. Each one but the live one has two more tables: `replay` for its applied position,
and `replay_sweeps` for users with content that is yet to be removed.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from psycopg.sql import SQL, Composed, Identifier
from sqlalchemy import BigInteger, Column, MetaData, Table, Text, bindparam, delete, update
from sqlalchemy.dialects.postgresql import insert

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Database, Statement
from mnemon_infra.database.tables import batches, conversation_erasures, erasures, metadata, rounds, windows
from mnemon_infra.generation_names import OTHERS, GenerationKind, name_of

OWNERS_PER_SWEEP: Final = 200
"""Most users in one sweep."""

WORK_TABLES: Final = (windows, batches, rounds)
"""Tables that are no projections; a swap moves them to the new live generation."""

UNDERIVED_COLUMNS: Final = (erasures.c.is_settled, conversation_erasures.c.is_settled)
"""Columns that no event determines: they record work that was done outside the database."""

PROJECTIONS: Final = tuple(table for table in metadata.sorted_tables if table not in WORK_TABLES)
_own = MetaData()
_replay = Table(
    "replay",
    _own,
    Column("reached", BigInteger, nullable=False, comment="The log up to here is in this generation"),
    Column("up_to", BigInteger, comment="Nothing beyond is wanted; null: all of it is"),
)
_sweeps = Table(
    "replay_sweeps", _own, Column("tenant", Text, primary_key=True), Column("user_id", Text, primary_key=True)
)

_REACHED = Statement(
    update(_replay).where(_replay.c.reached < bindparam("position")).values(reached=bindparam("position"))
)
_SWEEP_LATER = Statement(
    insert(_sweeps).values(tenant=bindparam("tenant"), user_id=bindparam("user_id")).on_conflict_do_nothing()
)
_SWEPT = Statement(
    delete(_sweeps).where(
        _sweeps.c.tenant == bindparam("of_tenant"), _sweeps.c.user_id == bindparam("of_user")
    )
)


class Generation(NamedTuple):
    """An existing generation.

    Attributes:
        schema: its name.
        kind: its role: live, former, next, or as of a position.
        revision: revision of its tables; empty if it has none.
        reached: its applied position; None for the live one, which persist writes.
        up_to: the last log position that it is to contain; None for no limit.
        sweeps: number of users with rows or vectors that are yet to be removed.
        bytes: size on disk.
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
        """Whether mnemon made this schema.

        A schema with the name of a generation but without the record of a rebuild belongs to another program.
        """
        return self.kind == "live" or self.reached is not None

    @property
    def is_complete(self) -> bool:
        """Whether no work is left for this generation."""
        if self.kind in ("live", "former"):
            return True
        return self.reached == self.up_to and self.vectors in (None, self.up_to) and not self.sweeps


async def list_generations(database: Database, live: str) -> list[Generation]:
    """List all generations, the live one first.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    pattern = re.compile(rf"{re.escape(live)}(?:{OTHERS})?")
    kinds: dict[str, GenerationKind] = {"": "live", "before": "former", "next": "next"}

    async def query(connection: Connection) -> list[Generation]:
        cursor = await connection.execute("SELECT nspname FROM pg_namespace ORDER BY nspname")
        named = [(name, pattern.fullmatch(name)) for (name,) in await cursor.fetchall()]
        return [
            await _describe(connection, name, kinds.get(match[1] or "", "as of"))
            for name, match in named
            if match
        ]

    return sorted(await database.run_query(query), key=lambda each: each.kind != "live")


async def list_snapshot_positions(database: Database, live: str) -> list[int]:
    """Return the sorted log positions as of which generations exist, complete or not.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    pattern = re.compile(rf"{re.escape(live)}_until_(\d+)")

    async def query(connection: Connection) -> list[int]:
        cursor = await connection.execute("SELECT nspname FROM pg_namespace")
        names = (pattern.fullmatch(name) for (name,) in await cursor.fetchall())
        return sorted(int(match[1]) for match in names if match)

    return await database.run_query(query)


async def describe_snapshot(database: Database, live: str, position: int) -> Generation:
    """Describe the generation as of a position. It may have been dropped since it was listed.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    schema = name_of(live, "as of", position)
    return await database.run_query(lambda connection: _describe(connection, schema, "as of"))


async def _describe(connection: Connection, schema: str, kind: GenerationKind) -> Generation:
    async def value(statement: Composed) -> Any:
        row = await (await connection.execute(statement)).fetchone()
        return row[0] if row else None

    async def there(table: str) -> bool:
        return await value(SQL("SELECT to_regclass({})").format(f'"{schema}".{table}')) is not None

    size = await value(
        SQL(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = to_regnamespace({})"
        ).format(f'"{schema}"')
    )
    found = Generation(schema, kind, bytes=size)
    if await there("alembic_version"):
        found = found._replace(
            revision=await value(
                SQL("SELECT version_num FROM {}").format(Identifier(schema, "alembic_version"))
            )
        )
    if kind == "live" or not await there("replay"):
        return found
    cursor = await connection.execute(
        SQL("SELECT reached, up_to FROM {}").format(Identifier(schema, "replay"))
    )
    reached, up_to = await cursor.fetchone() or (0, None)
    sweeps = await value(SQL("SELECT count(*) FROM {}").format(Identifier(schema, "replay_sweeps")))
    vectors = None
    if await there("vector_replay"):
        vectors = await value(SQL("SELECT reached FROM {}").format(Identifier(schema, "vector_replay")))
        sweeps += await value(SQL("SELECT count(*) FROM {}").format(Identifier(schema, "vector_sweeps")))
    return found._replace(reached=reached, up_to=up_to, sweeps=sweeps, vectors=vectors)


async def create_generation(database: Database, schema: str, up_to: int | None = None) -> None:
    """Create the schema of a generation with the record of its progress; it has no other tables yet.

    Raises:
        DatabaseUnavailable: the database cannot do it now.
    """
    async with database.transaction() as connection:
        await connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
        await create_progress_record(connection, schema, 0, up_to)


async def create_progress_record(
    connection: Connection, schema: str, reached: int, up_to: int | None = None
) -> None:
    """Create the record of a generation's progress."""
    await connection.execute(
        SQL("CREATE TABLE {} (reached bigint NOT NULL, up_to bigint)").format(Identifier(schema, "replay"))
    )
    await connection.execute(
        SQL("CREATE TABLE {} (tenant text, user_id text, PRIMARY KEY (tenant, user_id))").format(
            Identifier(schema, "replay_sweeps")
        )
    )
    await connection.execute(
        SQL("INSERT INTO {} VALUES (%s, %s)").format(Identifier(schema, "replay")), (reached, up_to)
    )


async def record_progress(database: Database, reached: int, watermarked: Iterable[Owner]) -> None:
    """Record the applied position, and the users whose content is to be removed from now on.

    Raises:
        DatabaseUnavailable: nothing is recorded.
    """
    async with database.transaction() as connection:
        if later := [{"tenant": tenant, "user_id": user} for tenant, user in sorted(watermarked)]:
            await _SWEEP_LATER.execute_each(connection, later)
        await _REACHED.execute_each(connection, [{"position": reached}])


async def list_owners_to_sweep(database: Database) -> list[Owner]:
    """Return some of the users whose content is to be removed, at most `OWNERS_PER_SWEEP`.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """

    async def query(connection: Connection) -> list[Owner]:
        cursor = await connection.execute(
            "SELECT tenant, user_id FROM replay_sweeps LIMIT %s", (OWNERS_PER_SWEEP,)
        )
        return [(tenant, user) for tenant, user in await cursor.fetchall()]

    return await database.run_query(query)


async def remove_swept_owners(database: Database, owners: Sequence[Owner]) -> None:
    """Remove users from the list of those to sweep.

    Raises:
        DatabaseUnavailable: they stay on the list.
    """
    async with database.transaction() as connection:
        await _SWEPT.execute_each(
            connection, [{"of_tenant": tenant, "of_user": user} for tenant, user in owners]
        )


async def analyze_tables(database: Database) -> None:
    """Update PostgreSQL's statistics, so that the first readers do not pay for bad plans.

    Raises:
        DatabaseUnavailable: the database cannot do it now.
    """
    async with database.transaction() as connection:
        await connection.execute("SET LOCAL statement_timeout = 0")
        for table in PROJECTIONS:
            await connection.execute(SQL("ANALYZE {}").format(Identifier(table.name)))


async def drop_schema(database: Database, schema: str) -> None:
    """Drop a generation with all its tables.

    Raises:
        DatabaseUnavailable: it stays.
    """
    async with database.transaction() as connection:
        await connection.execute("SET LOCAL statement_timeout = 0")
        await connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))
