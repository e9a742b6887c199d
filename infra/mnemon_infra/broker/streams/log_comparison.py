"""Comparison of the log with a former state: shows whether the log was replaced or cut short."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from mnemon_contracts.streams import LOG

LOG_CHANGE_STEP: Final = (
    "Bring back the server with the newest state, or restore the newest backup (`mnemon restore`), then "
    "start again"
)

RECREATED: Final = f"the stream {LOG} was deleted and created again"

_SAME_TIME: Final = timedelta(milliseconds=1)
"""Maximum difference of two readings of one time, which are rounded differently."""


class ReceivedEvent(NamedTuple):
    """Position of an event, and the time at which the server stored the event."""

    position: int
    stored: datetime


class LogReading(NamedTuple):
    """State of the log at one moment.

    Attributes:
        created: time of the stream's creation.
        end: last position.
        stored: time at which the server stored the last event; None if the log no longer has the event.
        has_former_end: False if the log has another event at the last position of a former state.
        leader: the server that leads the stream; None if there is no cluster.
    """

    created: datetime | None
    end: int
    stored: datetime | None = None
    has_former_end: bool = True
    leader: str | None = None

    def include_received(self, newest: ReceivedEvent | None) -> "LogReading":
        """Return this state, extended to a received event; unchanged if the event is not newer."""
        if newest is None or newest.position <= self.end:
            return self
        return self._replace(end=newest.position, stored=newest.stored)

    def lacks_events_of(self, former: "LogReading") -> bool:
        """Return whether the log lacks events that it had in a former state."""
        return self.created != former.created or self.end < former.end or not self.has_former_end


async def compare_log(
    stream_context: JetStreamContext, former: LogReading | None, newest: ReceivedEvent | None
) -> tuple[LogReading | None, str | None]:
    """Return the state of the log, and a sentence about events that it has lost.

    Args:
        stream_context: JetStream on any connection.
        former: the last state that this process has read; None if it has read none.
        newest: the newest event that this process has received, which may be newer than `former`.

    Returns:
        The state, or None if the log does not exist; and the sentence, or None if no event is lost.
    """
    now = await _read_log_state(stream_context, former)
    if now is None or former is None:
        return now, None
    if change := _describe_log_change(former, now):
        return now, change
    received = former.include_received(newest)
    if received is not former:
        now = await _read_log_state(stream_context, received)
        return now, now and _describe_log_change(received, now)
    return now, None


def _describe_log_change(former: LogReading, now: LogReading) -> str | None:
    """Return a sentence about a log that lacks events of a former state; None if it lacks none."""
    if not now.lacks_events_of(former):
        return None
    if now.created != former.created:
        return RECREATED
    of_leader = f" on its leader {now.leader}" if now.leader else ""
    if now.end < former.end:
        return f"the log{of_leader} ends at position {now.end}, and had events up to position {former.end}"
    return f"the log{of_leader} has another event at position {former.end} than before"


async def _read_log_state(stream_context: JetStreamContext, former: LogReading | None) -> LogReading | None:
    """Return the state of the log, compared with a former state; None if the log does not exist."""
    try:
        info = await stream_context.stream_info(LOG)
    except NotFoundError:
        return None
    end = info.state.last_seq
    stored = await _load_stored_time(stream_context, end)
    has_former_end = True
    if former and former.stored and former.end <= end:
        at_former_end = stored if former.end == end else await _load_stored_time(stream_context, former.end)
        has_former_end = at_former_end is None or abs(at_former_end - former.stored) < _SAME_TIME
    leader = info.cluster.leader if info.cluster else None
    return LogReading(info.created, end, stored, has_former_end, leader)


async def _load_stored_time(stream_context: JetStreamContext, position: int) -> datetime | None:
    """Return the time at which the server stored an event; None if the position has no event."""
    if not position:
        return None
    try:
        return (await stream_context.get_msg(LOG, position)).time
    except NotFoundError:
        return None
