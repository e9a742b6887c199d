"""Replay of a restored log into the database, before processes serve."""

import asyncio
from collections.abc import Callable
from typing import Final

from nats.aio.client import Client
from tenacity import AsyncRetrying, retry_if_result, stop_after_delay, wait_fixed

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.triggers import has_waiting_sweep
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.database.projections.row_positions import find_newest_position
from mnemon_infra.health.fault import count_unhandled_messages

ReplayProgress = Callable[[int, int], None]
"""Function that receives the number of replayed events, and the number of all."""

PAUSE: Final = 0.1
"""Seconds between two checks of the progress."""

SWEEP_TIMEOUT: Final = 60.0
"""Maximum seconds to wait for pending sweeps after the last event is handled."""


class DatabaseNotEmpty(Exception):
    """The schema already has rows of events; the message names the next step for servers of your own.

    Attributes:
        position: highest log position among the rows of messages and memory; other rows, such as those of
            calls of models, may have higher ones.
    """

    def __init__(self, schema: str, position: int) -> None:
        self.position = position
        super().__init__(
            f"the schema {schema} has rows of events, at least up to position {position:,}: name a new "
            "schema in MNEMON_DATABASE_SCHEMA, or another database"
        )


async def require_empty_database(deployment: Deployment) -> None:
    """Migrate the database, and check that it has no rows of events.

    Raises:
        DatabaseNotEmpty: the database has rows.
        DatabaseUnavailable: the database does not answer.
        SchemaTooNew: a newer version has prepared the database.
    """
    assert deployment.database_url is not None
    await asyncio.to_thread(migrate_schema, deployment.database_url, deployment.database_schema)
    async with Database(deployment, name="mnemon-restore") as database:
        position = await database.run_query(find_newest_position())
    if position:
        raise DatabaseNotEmpty(deployment.database_schema, position)


async def replay_log(deployment: Deployment, progress: ReplayProgress) -> int:
    """Run `persist` until it has handled every event of the log and the sweeps. Return the number of events.

    Sweeps that still wait after `SWEEP_TIMEOUT` seconds are left to later runs of `persist`.

    Raises:
        DatabaseUnavailable, nats.errors.Error: a server does not answer.
    """
    from mnemon_consumers.app import run_consumers

    async with (
        await connect_deployment(deployment, name="mnemon-restore") as connection,
        run_consumers(("persist",), deployment),
    ):
        events = (await connection.jetstream().stream_info(LOG)).state.messages
        while waiting := await _measure_persist_lag(connection):
            progress(events - waiting, events)
            await asyncio.sleep(PAUSE)
        progress(events, events)
        await _wait_for_sweeps(connection)
    return events


async def _measure_persist_lag(connection: Client) -> int:
    """Return the number of messages of the log that `persist` has not handled yet."""
    return count_unhandled_messages(await connection.jetstream().consumer_info(LOG, "persist"))


async def _wait_for_sweeps(connection: Client) -> None:
    """Wait up to `SWEEP_TIMEOUT` seconds for pending sweeps; a later run of `persist` does the others."""
    waiting = AsyncRetrying(
        retry=retry_if_result(bool),
        stop=stop_after_delay(SWEEP_TIMEOUT),
        wait=wait_fixed(PAUSE),
        retry_error_callback=lambda _: None,
    )
    await waiting(has_waiting_sweep, connection, "persist")
