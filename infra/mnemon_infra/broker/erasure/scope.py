"""Scope of an erasure: its events, dead letters and triggers. No I/O."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, Self, TypeAlias

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent, decode_event
from mnemon_contracts.events.erasure import UserErasedV1
from mnemon_contracts.events.memory import Lineage
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import (
    InvalidSubject,
    Owner,
    build_conversation_filter,
    build_conversation_trigger_filters,
    build_thing_filter,
    build_user_filters,
    build_user_trigger_filters,
    find_origin,
    parse_conversation,
    parse_subject,
)
from mnemon_infra.broker.dead_letters.listing import Letter
from mnemon_infra.delivery import Delivery

EVERYWHERE: Final = 2**63 - 1
"""A position beyond every log position."""


def escape_as_json(words: str) -> tuple[str, str]:
    """Return a text with the escapes of a JSON string, and with those of JSON inside a JSON string.

    Dead letters contain models' answers as JSON in a string; messages contain tools' arguments in this way.
    """
    once = json.dumps(words, ensure_ascii=False)[1:-1]
    return once, json.dumps(once, ensure_ascii=False)[1:-1]


class LogRange(NamedTuple):
    """A range of log positions on a subject pattern: from `begin` up to, but not including, `end`."""

    pattern: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class ErasedUser:
    """Erasure of a user: the events below the log position `below`, and those with a source below it.

    A dead letter that names no log position, such as that of a trigger, is erased if it is older than `at`.
    """

    owner: Owner
    below: int
    at: datetime

    def list_trigger_patterns(self) -> Sequence[str]:
        """Return the subject patterns of the triggers to remove.

        Triggers have no content and can be derived again. The user's schedule stays: `extract` remembers it,
        and makes no other one for messages after the erasure until it is due.
        """
        return build_user_trigger_filters(*self.owner)

    def list_log_ranges(self) -> Sequence[LogRange]:
        """Return the ranges of the log in which `purge_messages` looks for events to remove."""
        return [LogRange(each, 1, self.below) for each in build_user_filters(*self.owner)]

    def removes(self, delivery: Delivery) -> bool:
        """Return whether the erasure removes an event of the user."""
        return delivery.sequence < self.below or find_first_source(delivery) < self.below

    def removes_letter(self, letter: Letter) -> bool:
        """Return whether the erasure removes a dead letter of the user."""
        begins = letter.sequence if letter.stream == LOG else _parse_window(letter).get("from_seq")
        return begins < self.below if isinstance(begins, int) else letter.at < self.at


@dataclass(frozen=True, slots=True)
class ErasedConversation:
    """Erasure of a conversation: its events below a log position, and all that was derived from them alone.

    Attributes:
        below: the log position below which the events of the conversation are erased.
        spans: ranges of positions in which the conversation was the current one; each excludes its end.
        derived: positions of the facts and proposals that were derived from this conversation alone.
        event_id: id of the erasure event; `seq` is that event's position.
        at: time at which the log stored that event; a dead letter of a trigger is erased if it is older.
    """

    owner: Owner
    conversation: str
    below: int
    spans: tuple[tuple[int, int], ...]
    derived: frozenset[int]
    event_id: str
    seq: int
    at: datetime

    @classmethod
    def from_event(cls, owner: Owner, event: UserErasedV1, event_id: str, seq: int, at: datetime) -> Self:
        """Return the erasure that an event `user.erased` with a conversation describes."""
        return cls(
            owner,
            event.conversation or "",
            min(event.up_to_seq, seq),
            tuple((each.from_seq, each.to_seq) for each in event.spans),
            frozenset(event.derived),
            event_id,
            seq,
            at,
        )

    def list_trigger_patterns(self) -> Sequence[str]:
        return build_conversation_trigger_filters(*self.owner, self.conversation)

    def list_log_ranges(self) -> Sequence[LogRange]:
        on_current = build_conversation_filter(*self.owner, None)
        return [
            LogRange(build_conversation_filter(*self.owner, self.conversation), 1, self.below),
            *(LogRange(on_current, begin, min(end, self.below)) for begin, end in self.spans),
            *(LogRange(build_thing_filter(*self.owner, thing), 1, EVERYWHERE) for thing in DERIVED),
        ]

    def removes(self, delivery: Delivery) -> bool:
        if delivery.sequence in self.derived:
            return True
        origin = find_origin(delivery.subject)
        if origin and origin.space == "chat":
            return self.removes_message(origin.conversation, delivery.sequence)
        try:
            event = decode_event(parse_subject(delivery.subject), delivery.body)
        except (InvalidSubject, UnknownEvent, InvalidBody):
            return False
        if isinstance(event, UserErasedV1):
            return False  # the event stays: it keeps late events from being written
        if conversation := getattr(event, "conversation", None):
            return self.removes_window(conversation, getattr(event, "from_seq", delivery.sequence))
        return self.removes_fact(delivery.sequence, getattr(event, "lineage", None))

    def removes_letter(self, letter: Letter) -> bool:
        if letter.stream == LOG:
            about = Delivery(letter.subject, letter.body, None, LOG, letter.sequence, 1, 0)
            return self.removes(about)
        if letter.kind == "answer":
            window = _parse_window(letter)
            conversation, begins = window.get("conversation"), window.get("from_seq")
            return isinstance(begins, int) and self.removes_window(str(conversation), begins)
        return letter.at < self.at and _parse_trigger_conversation(letter) == self.conversation

    def removes_message(self, conversation: str | None, seq: int) -> bool:
        """Return whether the erasure removes the message at the log position `seq`.

        `conversation` is the conversation that the subject of the message names; None for a message on `-`,
        which belongs to the conversation that was current at `seq`.
        """
        if conversation is None:
            return seq < self.below and any(begin <= seq < end for begin, end in self.spans)
        return seq < self.below and conversation == self.conversation

    def removes_window(self, conversation: str, from_seq: int) -> bool:
        """Return whether the erasure removes a summary or another result of a window.

        The messages of the window begin at the log position `from_seq`.
        """
        return conversation == self.conversation and from_seq < self.below

    def removes_fact(self, seq: int, lineage: Lineage | None) -> bool:
        """Return whether the erasure removes the event of a fact at the log position `seq`.

        `lineage` is that of the event; None if the event has none. A fact at the position `below` or beyond
        is removed if all its sources are removed: a model may have been reading the sources during the
        erasure. If the lineage names no conversation, its sources count as messages on `-`. Any other fact is
        removed only if `derived` has its position.
        """
        if seq in self.derived or lineage is None or seq < self.below or not lineage.sources:
            return seq in self.derived
        if lineage.conversation is None:
            return all(self.removes_message(None, each) for each in lineage.sources)
        return lineage.conversation == self.conversation and max(lineage.sources) < self.below


ErasureScope: TypeAlias = ErasedUser | ErasedConversation
"""Scope of one erasure: both classes have the methods that `ErasedUser` describes."""


class Erasures(NamedTuple):
    """Erasures of a user: of everything below the log position `below`, and of conversations."""

    below: int = 0
    conversations: tuple[ErasedConversation, ...] = ()

    def removes_message(self, conversation: str | None, seq: int) -> bool:
        """Return whether a message is erased.

        The arguments are those of `ErasedConversation.removes_message`.
        """
        return seq < self.below or any(each.removes_message(conversation, seq) for each in self.conversations)

    def removes_window(self, conversation: str, from_seq: int) -> bool:
        """Return whether a summary or another result of a window of a conversation is erased."""
        return from_seq < self.below or any(
            each.removes_window(conversation, from_seq) for each in self.conversations
        )

    def removes_fact(self, seq: int, lineage: Lineage | None) -> bool:
        """Return whether a fact is erased, because of its position `seq` or because of its sources.

        `lineage` has the sources; None if the event of the fact has none.
        """
        begins = min([seq, *lineage.sources]) if lineage else seq
        return begins < self.below or any(each.removes_fact(seq, lineage) for each in self.conversations)


DERIVED: Final = "fact", "summary", "window"
"""Kinds of events that are derived from conversations."""


def build_full_erasure(owner: Owner) -> ErasedUser:
    """Return an erasure that covers all events and dead letters of a user, at every log position."""
    return ErasedUser(owner, EVERYWHERE, datetime.max.replace(tzinfo=UTC))


def find_first_source(delivery: Delivery) -> int:
    """Return the lowest log position among those of an event, its sources and its `from_seq`.

    For an event that cannot be decoded, return the position of the event.
    """
    try:
        event = decode_event(parse_subject(delivery.subject), delivery.body)
    except (InvalidSubject, UnknownEvent, InvalidBody):
        return delivery.sequence
    lineage: Lineage = getattr(event, "lineage", None) or Lineage()
    from_seq: int = getattr(event, "from_seq", delivery.sequence)
    return min([delivery.sequence, from_seq, *lineage.sources])


def _parse_trigger_conversation(letter: Letter) -> str | None:
    try:
        return parse_conversation(letter.subject)[2]
    except InvalidSubject:
        return None


def _parse_window(letter: Letter) -> dict[str, object]:
    """Return the body of a dead letter of the kind `answer`, which has the fields of a window.

    The result is empty for other kinds, and if the body is not a JSON object.
    """
    if letter.kind != "answer":
        return {}
    try:
        body = json.loads(letter.body)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
