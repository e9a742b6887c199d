"""Check that the log reaches as far as the rows: a lost log, or an older one that was restored, does not."""

from nats.aio.client import Client

from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.database.engine import Database
from mnemon_infra.database.projections.newest_position import newest_position


class LogLost(Exception):
    """The database has rows of events that the log does not have; the message says what to do."""

    def __init__(self, end: int, position: int) -> None:
        super().__init__(
            f"the log ends at position {end}, and the database has an event of position {position}: the "
            "stream LOG was deleted, or an older one restored. Nothing has been changed. Restore the newest "
            "backup (nats stream restore), or begin with what the log has in another schema, named in "
            "MNEMON_DATABASE_SCHEMA"
        )


async def require_same_log(connection: Client, database: Database) -> None:
    """Stop before the log assigns positions a second time: of two events at one position, readers lose one.

    Raises:
        LogLost: the database has an event beyond the end of the log.
        DatabaseUnavailable: the database does not answer.
        nats.errors.Error: the server does not answer.
    """
    # In this order: events that are written meanwhile are in the log before they are in the database.
    position = await database.read(newest_position())
    end = await read_log_end(connection.jetstream())
    if position > end:
        raise LogLost(end, position)
