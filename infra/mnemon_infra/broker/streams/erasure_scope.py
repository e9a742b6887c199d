"""What an erasure takes of log, dead letters and triggers. No I/O."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol, Self

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent, decode
from mnemon_contracts.events.erasure import UserErasedV1
from mnemon_contracts.events.memory import Lineage
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import (
    InvalidSubject,
    Owner,
    conversation_filter,
    conversation_triggers,
    origin_of,
    parse,
    parse_conversation,
    thing_filter,
    trigger_filters,
    user_filters,
)
from mnemon_infra.broker.dead_letters.listing import Letter
from mnemon_infra.delivery import Delivery

EVERYWHERE: Final = 2**63 - 1
"""Beyond every log position."""


class LogRange(NamedTuple):
    """Where the log may have something: on a subject pattern, from a position on, below another one."""

    pattern: str
    begin: int
    end: int


class ErasureScope(Protocol):
    """An erasure. `owner` is whose; `at` is when."""

    @property
    def owner(self) -> Owner: ...

    @property
    def at(self) -> datetime: ...

    def triggers(self) -> Sequence[str]:
        """The subject patterns of the triggers that go. They say nothing, and are derived again."""

    def places(self) -> Sequence[LogRange]:
        """Where to look for events that go."""

    def takes(self, delivery: Delivery) -> bool:
        """Whether an event of the user goes."""

    def takes_letter(self, letter: Letter) -> bool:
        """Whether a dead letter of the user goes."""


@dataclass(frozen=True, slots=True)
class ErasedUser:
    """A user of whom all goes that lies below a log position, or was there before a time."""

    owner: Owner
    below: int
    at: datetime

    def triggers(self) -> Sequence[str]:
        return trigger_filters(*self.owner)

    def places(self) -> Sequence[LogRange]:
        return [LogRange(each, 1, self.below) for each in user_filters(*self.owner)]

    def takes(self, delivery: Delivery) -> bool:
        return delivery.sequence < self.below or made_of(delivery) < self.below

    def takes_letter(self, letter: Letter) -> bool:
        begins = letter.sequence if letter.stream == LOG else _stretch(letter).get("from_seq")
        return begins < self.below if isinstance(begins, int) else letter.at < self.at


@dataclass(frozen=True, slots=True)
class ErasedConversation:
    """A conversation of which all goes that lies below a log position, and what was drawn from it alone.

    Attributes:
        spans: where it was the current one: positions, the second beyond the last.
        derived: where facts and proposals were that were drawn from it alone.
        event_id: of the event that says so; `seq` is its position.
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
    def of(cls, owner: Owner, event: UserErasedV1, event_id: str, seq: int, at: datetime) -> Self:
        """What an event says, which names a conversation."""
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

    def triggers(self) -> Sequence[str]:
        return conversation_triggers(*self.owner, self.conversation)

    def places(self) -> Sequence[LogRange]:
        on_current = conversation_filter(*self.owner, None)
        return [
            LogRange(conversation_filter(*self.owner, self.conversation), 1, self.below),
            *(LogRange(on_current, begin, min(end, self.below)) for begin, end in self.spans),
            *(LogRange(thing_filter(*self.owner, thing), 1, EVERYWHERE) for thing in _DERIVED),
        ]

    def takes(self, delivery: Delivery) -> bool:
        if delivery.sequence in self.derived:
            return True
        origin = origin_of(delivery.subject)
        if origin and origin.space == "chat":
            return self.has_said(origin.conversation, delivery.sequence)
        try:
            event = decode(parse(delivery.subject), delivery.body)
        except (InvalidSubject, UnknownEvent, InvalidBody):
            return False
        if conversation := getattr(event, "conversation", None):
            return self.has_stretch(conversation, getattr(event, "from_seq", delivery.sequence))
        return self.has_learned(delivery.sequence, getattr(event, "lineage", None))

    def takes_letter(self, letter: Letter) -> bool:
        if letter.stream == LOG:
            about = Delivery(letter.subject, letter.body, None, LOG, letter.sequence, 1, 0)
            return self.takes(about)
        if letter.kind == "answer":
            about_stretch = _stretch(letter)
            conversation, begins = about_stretch.get("conversation"), about_stretch.get("from_seq")
            return isinstance(begins, int) and self.has_stretch(str(conversation), begins)
        return letter.at < self.at and _of_trigger(letter) == self.conversation

    def has_said(self, conversation: str | None, seq: int) -> bool:
        """Whether it takes what was said at a position; None is the conversation that was the current one."""
        if conversation is None:
            return seq < self.below and any(begin <= seq < end for begin, end in self.spans)
        return seq < self.below and conversation == self.conversation

    def has_stretch(self, conversation: str, from_seq: int) -> bool:
        """Whether it takes what was made of a stretch that begins at a position."""
        return conversation == self.conversation and from_seq < self.below

    def has_learned(self, seq: int, lineage: Lineage | None) -> bool:
        """Whether it takes what was learned: a model may have been reading while it was erased."""
        if seq in self.derived or lineage is None or seq < self.seq or not lineage.sources:
            return seq in self.derived
        is_its = lineage.conversation == self.conversation
        return all(each < self.below and (is_its or self.has_said(None, each)) for each in lineage.sources)


class Erasures(NamedTuple):
    """What of a user is gone, whether it is purged yet or not: all below a position, and conversations."""

    below: int = 0
    conversations: tuple[ErasedConversation, ...] = ()

    def has_said(self, conversation: str | None, seq: int) -> bool:
        """Whether what was said is gone; None is the conversation that was the current one."""
        return seq < self.below or any(each.has_said(conversation, seq) for each in self.conversations)

    def has_stretch(self, conversation: str, from_seq: int) -> bool:
        """Whether what was made of a stretch of a conversation is gone."""
        return from_seq < self.below or any(
            each.has_stretch(conversation, from_seq) for each in self.conversations
        )

    def has_learned(self, seq: int, lineage: Lineage | None) -> bool:
        """Whether what was learned is gone."""
        begins = min([seq, *lineage.sources]) if lineage else seq
        return begins < self.below or any(each.has_learned(seq, lineage) for each in self.conversations)


_DERIVED: Final = "fact", "summary", "window"
"""What is made of conversations."""


def whole(owner: Owner) -> ErasedUser:
    """All that there is of a user."""
    return ErasedUser(owner, EVERYWHERE, datetime.max.replace(tzinfo=UTC))


def made_of(delivery: Delivery) -> int:
    """The first log position that an event is made of: its own, where it is made of nothing else."""
    try:
        event = decode(parse(delivery.subject), delivery.body)
    except (InvalidSubject, UnknownEvent, InvalidBody):
        return delivery.sequence
    lineage: Lineage = getattr(event, "lineage", None) or Lineage()
    from_seq: int = getattr(event, "from_seq", delivery.sequence)
    return min([delivery.sequence, from_seq, *lineage.sources])


def _of_trigger(letter: Letter) -> str | None:
    try:
        return parse_conversation(letter.subject)[2]
    except InvalidSubject:
        return None


def _stretch(letter: Letter) -> dict[str, object]:
    """The stretch of a conversation that a letter is about, where it is an answer that was no use."""
    if letter.kind != "answer":
        return {}
    try:
        body = json.loads(letter.body)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
