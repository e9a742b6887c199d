"""Swap of the live generation for another, in one transaction."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Final

from psycopg.errors import DeadlockDetected, LockNotAvailable
from psycopg.sql import SQL, Identifier

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Database, DatabaseUnavailable
from mnemon_infra.database.generations.generation_repository import PROJECTIONS
from mnemon_infra.database.generations.progress import ROWS
from mnemon_infra.database.generations.watch import announce_row_swap
from mnemon_infra.database.tables import WORK_TABLES, conversation_erasures, erasures
from mnemon_infra.generation_names import name_generation

LOCK_TIMEOUT: Final = 2.0
"""Maximum seconds for which the swap waits for each table, and blocks others that wait for the same table."""

# The order in which persist writes these tables, so that persist and the swap cannot deadlock.
_FIRST: Final = ("erasures", "messages", "memory_events")
_WRITTEN: Final = sorted(PROJECTIONS, key=lambda table: (*_FIRST, table.name).index(table.name))

_SETTLED: Final = SQL(
    "UPDATE {} AS rebuilt SET is_settled = live.is_settled FROM {} AS live"
    " WHERE (rebuilt.tenant, rebuilt.user_id, rebuilt.seq) = (live.tenant, live.user_id, live.seq)"
)


class TablesBusy(DatabaseUnavailable):
    """Other transactions keep the tables locked longer than the swap may wait.

    A later attempt may succeed.
    """


@asynccontextmanager
async def lock_out_writers(database: Database, live: str) -> AsyncIterator[Connection]:
    """Open a transaction during which no other transaction writes the live generation.

    Writers wait until this transaction ends, and then write the generation that is live at that time. Readers
    of projections do not wait.

    Raises:
        TablesBusy: other transactions keep the tables locked; this transaction has locked nothing.
        DatabaseUnavailable: the database cannot answer now.
    """
    async with database.transaction() as connection:
        await connection.execute(SQL("SET LOCAL lock_timeout = {}").format(f"{LOCK_TIMEOUT * 1000:.0f}"))
        # Lock first the tables that other transactions may lock for long, while a model is asked: until then
        # the other tables stay readable.
        for tables, mode in (WORK_TABLES, "ACCESS EXCLUSIVE"), (_WRITTEN, "EXCLUSIVE"):
            names = SQL(", ").join(Identifier(live, table.name) for table in tables)
            try:
                await connection.execute(SQL("LOCK TABLE {} IN {} MODE").format(names, SQL(mode)))
            except (LockNotAvailable, DeadlockDetected) as error:
                raise TablesBusy(
                    "other transactions lock tables of the live generation: run the command again"
                ) from error
        yield connection


async def swap_schemas(
    connection: Connection, live: str, to: str, applied: int, unswept: Collection[Owner]
) -> None:
    """Make the generation `to` the live one; the generation that is live now becomes the former one.

    `live` is the name of the live generation's schema, which is the same before and after the swap. The
    connection is that of `lock_out_writers`. `applied` is the applied position of the generation that is
    live now, and `unswept` are the users whose rows in it are yet to be swept for events up to this position.
    """
    former = name_generation(live, "former")
    for table in WORK_TABLES:
        await connection.execute(SQL("DROP TABLE IF EXISTS {}").format(Identifier(to, table.name)))
        await connection.execute(
            SQL("ALTER TABLE {} SET SCHEMA {}").format(Identifier(live, table.name), Identifier(to))
        )
    for noted in erasures, conversation_erasures:
        await connection.execute(_SETTLED.format(Identifier(to, noted.name), Identifier(live, noted.name)))
    await ROWS.drop(connection, to)
    await ROWS.create(connection, live, applied, None, owners=unswept)
    aside = f"{live}_aside"
    for name, new in (live, aside), (to, live), (aside, former):
        await connection.execute(
            SQL("ALTER SCHEMA {} RENAME TO {}").format(Identifier(name), Identifier(new))
        )
    await announce_row_swap(connection, live)
