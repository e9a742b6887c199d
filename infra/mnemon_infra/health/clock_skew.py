"""Clock skew between the servers and this process. With a wrong clock, facts could expire too early."""

import json
import time
from datetime import UTC, datetime
from typing import Final, NamedTuple

from nats.aio.client import Client
from nats.js.errors import APIError

from mnemon_contracts.streams import LOG
from mnemon_infra.database.engine import Database, load_clock_time

MAX_SKEW: Final = 60.0
"""Seconds by which clocks may differ. A larger difference is a fault of a clock, not of the network."""

_TIMEOUT: Final = 5.0
"""Maximum seconds for the broker to answer."""


class Clocks(NamedTuple):
    """Seconds by which each clock is ahead of this process's clock; negative if it is behind.

    Attributes:
        broker: the clock that stamps the events of the log.
        database: the clock of PostgreSQL.
        log: seconds by which the newest event is ahead of the broker's clock; 0 if the event is behind.
    """

    broker: float
    database: float
    log: float

    @property
    def problem(self) -> str | None:
        """Description of a difference that is too large, with the next step; None if the clocks agree."""
        if self.log > MAX_SKEW:
            wrong = f"the newest event of LOG is stamped {self.log:,.0f} s ahead of the broker's clock"
        elif min(self.broker, self.database) > MAX_SKEW or max(self.broker, self.database) < -MAX_SKEW:
            wrong = (
                f"this machine's clock is {_format_lead(-self.broker)} those of the broker and the database"
            )
        elif abs(self.broker) > MAX_SKEW:
            wrong = f"the broker's clock is {_format_lead(self.broker)} this machine's"
        elif abs(self.database) > MAX_SKEW:
            wrong = f"the database's clock is {_format_lead(self.database)} this machine's"
        else:
            return None
        return (
            f"{wrong}: no fact expires and no finished work is removed until the clocks agree. Synchronise "
            "the clocks, for example by NTP"
        )


async def compare_clocks(connection: Client, database: Database) -> Clocks:
    """Compare the clocks of broker and database with the clock of this process.

    Raises:
        nats.errors.Error: the broker does not answer, or has no log.
        DatabaseUnavailable: the database does not answer.
    """
    begun = time.time()
    broker, newest = await _load_log_times(connection)
    broker_answered = time.time()
    database_time = await database.run_query(load_clock_time)
    return Clocks(
        broker=_compute_lead(broker, begun, broker_answered),
        database=_compute_lead(database_time, broker_answered, time.time()),
        log=max(0.0, newest - broker),
    )


async def read_log_time(connection: Client) -> datetime:
    """Return the time with which the log would stamp an event now.

    Raises:
        nats.errors.Error: the broker does not answer, or has no log.
    """
    broker, _ = await _load_log_times(connection)
    return datetime.fromtimestamp(broker, UTC)


async def _load_log_times(connection: Client) -> tuple[float, float]:
    """Return the broker's time and the stamp of the newest event of the log, in seconds since 1970."""
    # nats-py's own parsing of this answer omits the clock.
    reply = await connection.request(f"$JS.API.STREAM.INFO.{LOG}", timeout=_TIMEOUT)
    said = json.loads(reply.data)
    if "error" in said:
        raise APIError.from_error(said["error"])
    return _parse_seconds(said["ts"]), _parse_seconds(said["state"]["last_ts"])


def _compute_lead(reading: float, asked_at: float, answered_at: float) -> float:
    """Return the seconds by which a clock is certainly ahead, negative if behind.

    The clock showed `reading` at a time between `asked_at` and `answered_at` of this process's clock, all in
    seconds since 1970. A reading between the two counts as no difference.
    """
    return max(0.0, reading - answered_at) - max(0.0, asked_at - reading)


def _format_lead(ahead: float) -> str:
    return f"{abs(ahead):,.0f} s {'ahead of' if ahead > 0 else 'behind'}"


def _parse_seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
