"""Notifications of a swap of generations, for processes that cache values from the former generation."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import structlog
from psycopg.sql import SQL, Literal

from mnemon_infra.database.engine import Connection, Database, DatabaseUnavailable
from mnemon_infra.process.cancellation import run_task

log = structlog.get_logger("database")

CHANNEL: Final = "mnemon_generation"
"""Channel of PostgreSQL for notifications of swaps. The payload is the name of the schema that is live."""

PAUSE: Final = 0.5
"""Seconds before the next attempt to listen when the database does not answer."""

_IDENTITY: Final = "SELECT current_schema()::regnamespace::oid::bigint"


async def load_generation_identity(connection: Connection) -> int:
    """Return an id of the generation that this connection reads. A swap renames the schema; the id stays."""
    row = await (await connection.execute(_IDENTITY)).fetchone()
    assert row is not None
    return int(row[0])


async def announce_row_swap(connection: Connection, live: str) -> None:
    """Notify all processes of a swap; PostgreSQL sends the notification when the transaction commits."""
    await connection.execute(SQL("SELECT pg_notify({}, {})").format(Literal(CHANNEL), Literal(live)))


@asynccontextmanager
async def watch_row_swaps(database: Database, live: str, on_swap: Callable[[], None]) -> AsyncIterator[None]:
    """Call `on_swap` after each swap of generations, for the duration of the block.

    Args:
        database: the source of the notifications; listening takes a connection outside its pool.
        live: the schema of the live generation.
        on_swap: also called each time listening begins, because a notification may have been missed.
    """

    async def watch() -> None:
        while True:
            try:
                async for payload in database.listen(CHANNEL):
                    if payload in (None, live):
                        on_swap()
            except DatabaseUnavailable as error:
                log.warning("generation watch failed, retrying", error=str(error))
                await asyncio.sleep(PAUSE)

    async with run_task(watch(), "generation watch"):
        yield
