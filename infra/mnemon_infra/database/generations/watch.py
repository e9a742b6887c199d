"""Notices of a switch of generations, for processes that keep what they read of the former one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog
from psycopg.sql import SQL, Literal

from mnemon_infra.database.engine import Connection, Database, DatabaseUnavailable

log = structlog.get_logger("database")

CHANNEL: Final = "mnemon_generation"
"""Channel of PostgreSQL; the payload is the schema that has another generation."""

PAUSE: Final = 0.5
"""Seconds before a database that does not answer is asked again."""

_IDENTITY: Final = "SELECT current_schema()::regnamespace::oid::bigint"


async def generation_identity(connection: Connection) -> int:
    """Identify the generation that this connection reads: a rename moves the name, never the number."""
    row = await (await connection.execute(_IDENTITY)).fetchone()
    assert row is not None
    return int(row[0])


async def announce_switch(connection: Connection, live: str) -> None:
    """Tell all processes of a switch; PostgreSQL sends it when the transaction commits, and only then."""
    await connection.execute(SQL("SELECT pg_notify({}, {})").format(Literal(CHANNEL), Literal(live)))


@asynccontextmanager
async def watch_switches(database: Database, live: str, on_switch: Callable[[], None]) -> AsyncIterator[None]:
    """Call back after each switch of generations, as long as the block lasts.

    Args:
        database: where the notices come from; they take a connection of their own.
        live: the schema of the live generation.
        on_switch: also called whenever a notice may have been missed: each time listening begins.
    """

    async def watch() -> None:
        while True:
            try:
                async for payload in database.notices(CHANNEL):
                    if payload in (None, live):
                        on_switch()
            except DatabaseUnavailable as error:
                log.warning("generation watch failed, retrying", error=str(error))
                await asyncio.sleep(PAUSE)

    watching = asyncio.create_task(watch(), name="generation watch")
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
