"""Generations of the projections: made beside the live one, put in its place, dropped.

A generation is a schema. All but the live one have two tables more: how far the log is in them, and of whom
something has to be removed yet.
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

AT_ONCE: Final = 200
"""Users whose content is removed in one go."""

WORK_IN_HAND: Final = (windows, batches, rounds)
"""What is no projection, and goes along with the live generation."""

NOTED: Final = (erasures.c.is_settled, conversation_erasures.c.is_settled)
"""Columns that no event says: what was done outside of the database."""

PROJECTIONS: Final = tuple(table for table in metadata.sorted_tables if table not in WORK_IN_HAND)
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
    """A generation that is there.

    Attributes:
        schema: its name.
        kind: what it is to the live one.
        revision: of its tables; empty when it has none.
        reached: the log up to here is in it; None for the live one, which persist writes.
        up_to: nothing beyond is wanted in it.
        sweeps: users of whom something has to be removed yet, rows or vectors.
        vectors: the log up to here is in its vectors; None where it is not written down, or there are none.
        bytes: on the disk.
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
        """A schema of such a name that has not what a rebuild writes down is somebody else's."""
        return self.kind == "live" or self.reached is not None

    @property
    def is_complete(self) -> bool:
        """Nothing is left to be done in it."""
        if self.kind in ("live", "former"):
            return True
        return self.reached == self.up_to and self.vectors in (None, self.up_to) and not self.sweeps


async def generations(database: Database, live: str) -> list[Generation]:
    """All that are there, the live one first.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    pattern = re.compile(rf"{re.escape(live)}(?:{OTHERS})?")
    kinds: dict[str, GenerationKind] = {"": "live", "before": "former", "next": "next"}

    async def query(connection: Connection) -> list[Generation]:
        cursor = await connection.execute("SELECT nspname FROM pg_namespace ORDER BY nspname")
        named = [(name, pattern.fullmatch(name)) for (name,) in await cursor.fetchall()]
        return [
            await _described(connection, name, kinds.get(match[1] or "", "as of"))
            for name, match in named
            if match
        ]

    return sorted(await database.read(query), key=lambda each: each.kind != "live")


async def positions_as_of(database: Database, live: str) -> list[int]:
    """The log positions as of which there are generations, complete or not, in order.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    pattern = re.compile(rf"{re.escape(live)}_until_(\d+)")

    async def query(connection: Connection) -> list[int]:
        cursor = await connection.execute("SELECT nspname FROM pg_namespace")
        names = (pattern.fullmatch(name) for (name,) in await cursor.fetchall())
        return sorted(int(match[1]) for match in names if match)

    return await database.read(query)


async def as_of(database: Database, live: str, position: int) -> Generation:
    """What is to be known of the generation as of a position; it may have gone meanwhile.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    schema = name_of(live, "as of", position)
    return await database.read(lambda connection: _described(connection, schema, "as of"))


async def _described(connection: Connection, schema: str, kind: GenerationKind) -> Generation:
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


async def begin(database: Database, schema: str, up_to: int | None = None) -> None:
    """Make a schema that remembers how far it is; it has no other tables yet.

    Raises:
        DatabaseUnavailable: the database cannot do it now.
    """
    async with database.transaction() as connection:
        await connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
        await remember(connection, schema, 0, up_to)


async def remember(connection: Connection, schema: str, reached: int, up_to: int | None = None) -> None:
    """Have a generation remember how far it is, from now on."""
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


async def note(database: Database, reached: int, watermarked: Iterable[Owner]) -> None:
    """Write down that the log up to here is written, and of whom something has to be removed now.

    Raises:
        DatabaseUnavailable: nothing is written down.
    """
    async with database.transaction() as connection:
        if later := [{"tenant": tenant, "user_id": user} for tenant, user in sorted(watermarked)]:
            await _SWEEP_LATER.change(connection, later)
        await _REACHED.change(connection, [{"position": reached}])


async def to_sweep(database: Database) -> list[Owner]:
    """Some of the users of whom something has to be removed, `AT_ONCE` at most.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """

    async def query(connection: Connection) -> list[Owner]:
        cursor = await connection.execute("SELECT tenant, user_id FROM replay_sweeps LIMIT %s", (AT_ONCE,))
        return [(tenant, user) for tenant, user in await cursor.fetchall()]

    return await database.read(query)


async def swept(database: Database, owners: Sequence[Owner]) -> None:
    """Strike users off that list.

    Raises:
        DatabaseUnavailable: they stay there.
    """
    async with database.transaction() as connection:
        await _SWEPT.change(connection, [{"of_tenant": tenant, "of_user": user} for tenant, user in owners])


async def analyze(database: Database) -> None:
    """Have PostgreSQL look what is in the tables, so that the first readers need not pay for its guesses.

    Raises:
        DatabaseUnavailable: the database cannot do it now.
    """
    async with database.transaction() as connection:
        await connection.execute("SET LOCAL statement_timeout = 0")
        for table in PROJECTIONS:
            await connection.execute(SQL("ANALYZE {}").format(Identifier(table.name)))


async def drop(database: Database, schema: str) -> None:
    """Remove a generation with all that is in it.

    Raises:
        DatabaseUnavailable: it stays.
    """
    async with database.transaction() as connection:
        await connection.execute("SET LOCAL statement_timeout = 0")
        await connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))
