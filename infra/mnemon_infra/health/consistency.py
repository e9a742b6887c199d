"""Consistency checks of log, rows and points, while processes start and run.

A log that was lost, or replaced by an older copy, ends before the newest rows. A log that was restored beside
an older database has events without rows: a NATS snapshot of a stream contains the positions of its
consumers, so the server would never deliver those events. Points may be lost, or a former version did not
write them.
"""

from collections.abc import Iterable
from contextlib import aclosing
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.dead_letters.origins import summarise_letters
from mnemon_infra.broker.provisioning.topology import reset_durable
from mnemon_infra.broker.streams.applied_position import read_applied_position, read_log_end
from mnemon_infra.broker.streams.stream_reader import read_stream
from mnemon_infra.database.audit.events import find_missing_rows
from mnemon_infra.database.engine import Database
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.database.memory.indexable import has_indexable_rows, list_indexable_owners
from mnemon_infra.database.projections.row_positions import find_newest_position
from mnemon_infra.database.projections.rows import build_rows
from mnemon_infra.vectors.port import Collection, VectorStore

log = structlog.get_logger("health")

LOOKED_BACK: Final = 200
"""Number of log positions before the applied position that are checked even if newer rows exist."""

FROM_ROWS = frozenset({Collection.MEMORIES, Collection.SUMMARIES})
"""Collections whose points the index sweep of a user can write again from rows, without the log."""


class LogLost(Exception):
    """The database has rows of events that the log does not have; the message names the next step."""

    def __init__(self, end: int, position: int) -> None:
        super().__init__(
            f"the log ends at position {end}, but the database has the event at position {position}: the "
            "stream LOG was deleted, or an older one restored. Nothing has been changed. Restore the newest "
            "backup (`mnemon restore`), or name a new schema in MNEMON_DATABASE_SCHEMA for this log"
        )


async def require_same_log(connection: Client, database: Database) -> None:
    """Check that the log does not end before the newest row.

    A log that ends earlier would assign the row's position again.

    Raises:
        LogLost: the database has an event beyond the end of the log.
        DatabaseUnavailable: the database does not answer.
        nats.errors.Error: the server does not answer.
    """
    # In this order: events that are written meanwhile are in the log before they are in the database.
    position = await database.run_query(find_newest_position())
    end = await read_log_end(connection.jetstream())
    if position > end:
        raise LogLost(end, position)


async def find_first_missing(connection: Client, database: Database) -> int | None:
    """Return the first recent log position whose row is missing; None if no row is missing.

    Recent positions are those after the newest row, and the last `LOOKED_BACK`, both up to the applied
    position. Events that became dead letters of `persist` do not count as missing. An audit checks all
    positions.

    Raises:
        DatabaseUnavailable: the database does not answer.
        nats.errors.Error: the server does not answer.
    """
    # In this order: an event that `persist` ends later may get its row later.
    applied = await read_applied_position(connection.jetstream())
    newest = await database.run_query(find_newest_position())
    after = max(0, min(newest, applied - LOOKED_BACK))
    dead: dict[int, str] | None = None
    async with aclosing(read_stream(connection, LOG, up_to=applied, after=after)) as pages:
        async for page in pages:
            absent = await find_missing_rows(database, list(build_rows(delivery for _, delivery in page)))
            if absent and dead is None:
                dead = (await summarise_letters(connection)).log_reasons.get("persist", {})
            for row in absent:
                if row.seq not in (dead or {}):
                    return row.seq
    return None


async def replay_missing_rows(connection: Client, database: Database) -> None:
    """Reset `persist` to the start of the log if `find_first_missing` finds a row missing.

    Existing rows do not change.

    Raises:
        DatabaseUnavailable: the database does not answer.
        LogTooNew, RestoreUnfinished, TooFewServers: `persist` cannot be reset now.
        nats.errors.Error: the server does not answer, or refuses the reset.
    """
    if await find_first_missing(connection, database) is None:
        return
    # If several processes start at the same time, one of them resets the consumer.
    async with hold_lock(database, "persist", "replay"):
        position = await find_first_missing(connection, database)
        if position is not None:
            events = await reset_durable(connection, LOG, "persist")
            log.warning("rows found missing, replaying the log", first_missing=position, events=events)


async def find_lost_collections(database: Database, vectors: VectorStore) -> list[Collection]:
    """Return the collections that are empty although the database has rows that need points in them.

    Raises:
        DatabaseUnavailable, VectorsUnavailable: the database or the vector store does not answer.
    """
    empty = [each for each in Collection if not await vectors.count(each)]
    return [each for each in empty if await has_indexable_rows(database, each)]


async def list_owners_to_sweep(database: Database, collections: Iterable[Collection]) -> set[Owner]:
    """Return the users whose points in these collections a sweep of `index` can write again from rows.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    return {
        owner
        for each in FROM_ROWS.intersection(collections)
        for owner in await list_indexable_owners(database, each)
    }
