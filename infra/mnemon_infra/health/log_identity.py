"""Whether the log and the rows that were made from it belong together."""

from nats.aio.client import Client

from mnemon_infra.broker.streams.applied_position import log_end
from mnemon_infra.database.engine import Database
from mnemon_infra.database.projections.newest_position import newest_position


class LogLost(Exception):
    """The rows are of events that the log does not have; the message says what to do."""

    def __init__(self, end: int, position: int) -> None:
        super().__init__(
            f"the log ends at position {end}, and the database has an event of position {position}: the "
            "stream LOG was deleted, or an older one restored. Nothing has been changed. Restore the newest "
            "backup (nats stream restore), or begin with what the log has in another schema, named in "
            "MNEMON_DATABASE_SCHEMA"
        )


async def require_same_log(connection: Client, database: Database) -> None:
    """Stop before positions are given out a second time: of two events at one, a reader would lose one.

    Raises:
        LogLost: the database has what the log has not.
        DatabaseUnavailable: the database does not answer.
        nats.errors.Error: the server does not answer.
    """
    # In this order: what is written meanwhile is in the log before it is in the database.
    position = await database.read(newest_position())
    end = await log_end(connection.jetstream())
    if position > end:
        raise LogLost(end, position)
