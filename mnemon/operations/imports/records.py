"""What a reader finds in a source. Values, no I/O."""

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from typing import Any, NamedTuple

from mnemon_contracts.base import ID_LIMIT, Event, InvalidBody
from mnemon_contracts.events.chat import MessageV1


class Incoming(NamedTuple):
    """An event that is to come in. Its id is the same each time the source is read.

    Attributes:
        place: where it stands in the source, for a person: `line 12`.
        user: whose it is.
        event: with an id.
        source: the record as the source has it, should it be refused later.
        conversation: None is the user's current one.
        tenant: where the source names it.
        number: by which other events of this user name it: see `mnemon.operations.imports.jsonl`.
        instead: what comes in where the user has facts that are not of this kind of source.
    """

    place: str
    user: str
    event: Event
    source: Any = None
    conversation: str | None = None
    tenant: str | None = None
    number: int | None = None
    instead: Event | None = None


class Refused(NamedTuple):
    """A record that cannot come in: which field of it, and why."""

    place: str
    field: str
    reason: str
    source: Any = None


class Left(NamedTuple):
    """A record that is no memory, such as the notice of a call: nothing is wrong with it."""

    place: str
    reason: str


class Doubt(NamedTuple):
    """Something that the reader guessed, or that looks like a mistake: a person is to look at it."""

    place: str
    reason: str


class Recast(NamedTuple):
    """A chat begins whose assistant was named; earlier it may have come in with another one.

    Attributes:
        place: where it stands in the source.
        user: whose it is.
        conversation: which it becomes.
        assistant: the sender who is the assistant.
        users: whose it may have become with another assistant, `user` among them.
        ids: how the ids of its messages begin.
    """

    place: str
    user: str
    conversation: str
    assistant: str
    users: frozenset[str]
    ids: str


ImportRecord = Incoming | Refused | Left | Doubt | Recast


class NotReadable(ValueError):
    """The source is not what it should be; the message says what it lacks."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """Whose conversation messages belong to, and which.

    Attributes:
        user: whose.
        conversation: which.
    """

    user: str
    conversation: str | None

    def says(self, place: str, source: Any, **fields: Any) -> ImportRecord:
        """A message with these fields, or why it cannot be one."""
        try:
            return Incoming(place, self.user, MessageV1.strictly(**fields), source, self.conversation)
        except InvalidBody as error:
            return Refused(place, error.field, error.problem, source)


def import_id(*parts: object) -> str:
    """An id made of where something stands in its source: readable, unless that is too long for one."""
    readable = ":".join(str(part) for part in parts)
    if readable.isprintable() and len(readable.encode()) <= ID_LIMIT:
        return readable
    return f"{parts[0]}:{sha256(readable.encode(errors='surrogatepass')).hexdigest()}"


def at_second(seconds: object) -> datetime | None:
    """A time from seconds since 1970, as a number or in digits; None where there is none.

    Raises:
        ValueError: it is no time.
    """
    if seconds is None or seconds == "":
        return None
    try:
        return datetime.fromtimestamp(float(str(seconds)), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{seconds!r} is not a time in seconds since 1970") from error


def in_zone(written: datetime, zone: tzinfo) -> datetime:
    """A time as a source means it, which says what time zone it is in, or else is in this one."""
    return written if written.tzinfo else written.replace(tzinfo=zone)
