"""Detection of events that `persist` has ended and that have no row.

This happens when a log is restored beside an older database: a snapshot of a stream has the positions of
its consumers in it, so the server would never deliver the events that the rows lack.
"""

from collections.abc import Iterable, Iterator
from contextlib import aclosing
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import InvalidSubject
from mnemon_infra.broker.dead_letters.origins import letters
from mnemon_infra.broker.provisioning.topology import reset_consumer
from mnemon_infra.broker.streams.applied_position import applied_position
from mnemon_infra.broker.streams.stream_reader import whole
from mnemon_infra.database.audit.events import missing_rows
from mnemon_infra.database.engine import Database
from mnemon_infra.database.locks import locked
from mnemon_infra.database.projections.newest_position import newest_position
from mnemon_infra.database.projections.rows import Row, row_of
from mnemon_infra.delivery import Delivery

log = structlog.get_logger("app")

LOOKED_BACK: Final = 200
"""Events before the applied position that are checked even if newer rows exist."""


async def first_missing(connection: Client, database: Database) -> int | None:
    """Return the first of the latest log positions that `persist` has ended and that has no row.

    It checks the events after the newest row, and the last `LOOKED_BACK` before the applied position; an
    audit checks all. None if no row is missing.

    Raises:
        DatabaseUnavailable: the database does not answer.
        nats.errors.Error: the server does not answer.
    """
    # In this order: an event that is ended later may get its row later.
    applied = await applied_position(connection.jetstream())
    newest = await database.read(newest_position())
    after = max(0, min(newest, applied - LOOKED_BACK))
    dead: dict[int, str] | None = None
    async with aclosing(whole(connection, LOG, up_to=applied, after=after)) as pages:
        async for page in pages:
            absent = await missing_rows(database, list(_rows(delivery for _, delivery in page)))
            if absent and dead is None:
                dead = (await letters(connection)).of_log.get("persist", {})
            for row in absent:
                if row.seq not in (dead or {}):
                    return row.seq
    return None


async def replay_missing(connection: Client, database: Database) -> None:
    """Have `persist` read the log from its start if rows are missing. Existing rows do not change.

    Raises:
        DatabaseUnavailable: the database does not answer.
        nats.errors.Error: the server does not answer.
    """
    if await first_missing(connection, database) is None:
        return
    # Of several processes that start at the same time, one does it.
    async with locked(database, "persist", "replay"):
        position = await first_missing(connection, database)
        if position is not None:
            events = await reset_consumer(connection, LOG, "persist")
            log.warning("rows are missing, replaying the log", first_missing=position, events=events)


def _rows(deliveries: Iterable[Delivery]) -> Iterator[Row]:
    for delivery in deliveries:
        try:
            row = row_of(delivery)
        except (InvalidSubject, UnknownEvent, InvalidBody):
            continue  # a dead letter
        if row is not None:
            yield row
