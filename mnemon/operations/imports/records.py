"""Records that a reader yields from a source. Values, no I/O."""

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from typing import Any, NamedTuple

from mnemon_contracts.base import ID_LIMIT, Event, InvalidBody
from mnemon_contracts.events.chat import MessageV1


class IncomingEvent(NamedTuple):
    """An event to import. Its id is the same each time the source is read.

    Attributes:
        place: the place of the event in the source, in words: `line 12`.
        user: the user that the event belongs to.
        event: the event, with an id.
        source: the record as the source has it, for the report if the event is refused later.
        conversation: the conversation; None means the user's current conversation.
        tenant: the tenant, if the source names it.
        number: the number by which other events of this user name the event
            (`mnemon.operations.memory_lines`).
        instead: the event to import instead if another fact has the fact's id, or if the user has facts from
            another kind of source.
    """

    place: str
    user: str
    event: Event
    source: Any = None
    conversation: str | None = None
    tenant: str | None = None
    number: int | None = None
    instead: Event | None = None


class RefusedRecord(NamedTuple):
    """A record that cannot be imported: its field at fault, and the reason."""

    place: str
    field: str
    reason: str
    source: Any = None


class LeftOutRecord(NamedTuple):
    """A valid record that is not part of a memory, such as Telegram's service message about a phone call."""

    place: str
    reason: str


class ImportDoubt(NamedTuple):
    """A remark for a person to check: a guess, a possible mistake, or a chat imported with other speakers."""

    place: str
    reason: str


class Reassignment(NamedTuple):
    """A chat whose assistant the operator has named; an earlier import may have had another assistant.

    The reader yields this record before the messages of the chat.

    Attributes:
        place: the place of the chat in the source.
        user: the user that the chat belongs to.
        conversation: the conversation that the chat becomes.
        assistant: the sender who is the assistant.
        users: the users that the chat may belong to after an earlier import with another assistant, and
            `user`.
        ids: first part of the ids of the messages of the chat.
    """

    place: str
    user: str
    conversation: str
    assistant: str
    users: frozenset[str]
    ids: str


ImportRecord = IncomingEvent | RefusedRecord | LeftOutRecord | ImportDoubt | Reassignment


class NotReadable(ValueError):
    """The source does not have the expected format, or contradicts the options; the message says why."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The user and the conversation that messages belong to.

    Attributes:
        conversation: the conversation; None means the user's current conversation.
    """

    user: str
    conversation: str | None

    def create_message(self, place: str, source: Any, **fields: Any) -> ImportRecord:
        """Return a message with these fields, or the refusal if they do not satisfy the contract."""
        try:
            return IncomingEvent(
                place, self.user, MessageV1.create_strict(**fields), source, self.conversation
            )
        except InvalidBody as error:
            return RefusedRecord(place, error.field, error.problem, source)


def create_import_id(*parts: object) -> str:
    """Return an id from the parts that identify a record in its source: as text, or as a digest.

    A digest replaces a text that is too long or has unprintable characters; the first part stays readable.
    """
    readable = ":".join(str(part) for part in parts)
    if readable.isprintable() and len(readable.encode()) <= ID_LIMIT:
        return readable
    return f"{parts[0]}:{sha256(readable.encode(errors='surrogatepass')).hexdigest()}"


def parse_unix_time(seconds: object) -> datetime | None:
    """Return the time of a number of seconds since 1970, which may be a string; None for None or "".

    Raises:
        ValueError: the value is not a time.
    """
    if seconds is None or seconds == "":
        return None
    try:
        return datetime.fromtimestamp(float(str(seconds)), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"must be a time in seconds since 1970, not {seconds!r}") from error


def set_zone(written: datetime, zone: tzinfo) -> datetime:
    """Return a time with its own time zone, or with `zone` if the time has no time zone."""
    return written if written.tzinfo else written.replace(tzinfo=zone)
