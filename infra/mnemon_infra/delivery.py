"""A stored message as a consumer's `decide` gets it: a plain value, without a connection."""

from collections.abc import Mapping
from typing import Final, NamedTuple, Self

import msgspec
from nats.aio.msg import Msg

from mnemon_contracts.identity import MESSAGE_ID

STORED_AT: Final = "Mnemon-Stored-At"
"""Header of a restored event: its position, a colon, and its original time in nanoseconds since 1970.

Readers ignore the header at any other position. So a bot cannot set the time of its own event: the position
is unknown before the log stores the event.
"""


MOVED: Final = "Mnemon-Moved"
"""Header of an event that a move copied from another deployment: `<position>:<time>:<event id>`.

Position and time are those of the other log, the time in nanoseconds since 1970; the id is empty if only the
body has it. `Nats-Msg-Id` of such an event identifies the copy. A bot that sends the header sets the time
and the id of its own events, which it may do with `sent_at` and `id` too.
"""


class MovedFrom(NamedTuple):
    """Origin of an event that a move copied from the log of another deployment ("the other log").

    Attributes:
        position: position of the event in the other log.
        at: time at which the other log stored the event, in nanoseconds since 1970.
        event_id: id of the event in the other log; None if only the body has the id.
    """

    position: int
    at: int
    event_id: str | None

    def format(self) -> str:
        """Return the value of the header `MOVED`."""
        return f"{self.position}:{self.at}:{self.event_id or ''}"


class Delivery(msgspec.Struct, frozen=True):
    """One delivery of a stored message.

    Each message needs an instance, and msgspec builds one in a quarter of the time of a named tuple.

    Attributes:
        deliveries: number of deliveries of the message, this one included.
        stored_at: the time at which the stream stored the message, in seconds since 1970; for an event that
            was restored or that a move copied, the time at which the original log stored it.
        traceparent: the header `traceparent` of the message; None if the message has none.
        is_moved: whether the message has the header `MOVED`, as events that a move copied have.
    """

    subject: str
    body: bytes
    message_id: str | None
    stream: str
    sequence: int
    deliveries: int
    stored_at: float
    traceparent: str | None = None
    is_moved: bool = False

    @classmethod
    def from_message(cls, message: Msg) -> Self:
        """Convert a message that a consumer received; the reply subject has its position and time.

        nats-py's `metadata` returns the same values in five times the time, and every message passes here.
        """
        fields = message.reply.split(".")
        # $JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<consumer sequence>.<nanoseconds>.<pending>;
        # servers with a domain put it and an account hash before the stream.
        if len(fields) > 9:
            fields = fields[2:]
        headers = message.headers or {}
        sequence, nanoseconds = int(fields[5]), int(fields[7])
        moved = MOVED in headers
        if moved or STORED_AT in headers:
            nanoseconds = read_original_time(headers, sequence, nanoseconds)
        return cls(
            message.subject,
            message.data,
            read_message_id(headers) if moved else headers.get(MESSAGE_ID),
            fields[2],
            sequence,
            int(fields[4]),
            nanoseconds / 1e9,
            headers.get("traceparent"),
            moved,
        )


def read_storage_time(headers: Mapping[str, str] | None, sequence: int, nanoseconds: int) -> int:
    """Return the time at which the log stored an event, in nanoseconds since 1970.

    For a restored event, the time is that of the log from which the event was restored, in the headers. For
    any other event, the time is `nanoseconds`, the server's time of storage. `sequence` is the event's
    position.
    """
    position, _, original = (headers or {}).get(STORED_AT, "").partition(":")
    return int(original) if position == str(sequence) and _is_number(original) else nanoseconds


def read_original_time(headers: Mapping[str, str] | None, sequence: int, nanoseconds: int) -> int:
    """Return the storage time of an event; for an event that a move copied, its time in the other log.

    Arguments and unit are those of `read_storage_time`.
    """
    moved = parse_moved(headers)
    return read_storage_time(headers, sequence, nanoseconds) if moved is None else moved.at


def parse_moved(headers: Mapping[str, str] | None) -> MovedFrom | None:
    """Return the origin of an event that a move copied; None for other events and for a malformed header."""
    if not headers or MOVED not in headers:
        return None
    position, _, rest = headers[MOVED].partition(":")
    at, _, event_id = rest.partition(":")
    if not (_is_number(position) and _is_number(at)):
        return None
    return MovedFrom(int(position), int(at), event_id or None)


def read_message_id(headers: Mapping[str, str]) -> str | None:
    """Return `Nats-Msg-Id` of an event; for an event that a move copied, the id before the move.

    Returns:
        None if the event has no such header, or if only the body of a moved event has the id.
    """
    moved = parse_moved(headers)
    return headers.get(MESSAGE_ID) if moved is None else moved.event_id


def build_restored_time(sequence: int, nanoseconds: int) -> str:
    """Return the value of the header `STORED_AT`.

    Args:
        sequence: the log position of the event.
        nanoseconds: the time when the log stored it, in nanoseconds since 1970.
    """
    return f"{sequence}:{nanoseconds}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 19
