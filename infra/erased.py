"""What an erasure takes of log, dead letters and triggers. No I/O."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

from contracts.base import InvalidBody
from contracts.decode import UnknownEvent, decode
from contracts.memory import Lineage
from contracts.streams import LOG
from contracts.subjects import InvalidSubject, parse, trigger_filters, user_filters
from infra.broker.delivery import Delivery
from infra.broker.letters import Letter

Owner = tuple[str, str]
"""A tenant and a user."""

EVERYWHERE: Final = 2**63 - 1
"""Beyond every log position."""


class Place(NamedTuple):
    """Where the log may have something: on a subject pattern, from a position on, below another one."""

    pattern: str
    begin: int
    end: int


class Taking(Protocol):
    """An erasure. `owner` is whose; `at` is when."""

    @property
    def owner(self) -> Owner: ...

    @property
    def at(self) -> datetime: ...

    def triggers(self) -> Sequence[str]:
        """The subject patterns of the triggers that go. They say nothing, and are derived again."""

    def places(self) -> Sequence[Place]:
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

    def places(self) -> Sequence[Place]:
        return [Place(each, 1, self.below) for each in user_filters(*self.owner)]

    def takes(self, delivery: Delivery) -> bool:
        return delivery.sequence < self.below or made_of(delivery) < self.below

    def takes_letter(self, letter: Letter) -> bool:
        begins = letter.sequence if letter.stream == LOG else _stretch(letter).get("from_seq")
        return begins < self.below if isinstance(begins, int) else letter.at < self.at


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


def _stretch(letter: Letter) -> dict[str, object]:
    """The stretch of a conversation that a letter is about, where it is an answer that was no use."""
    if letter.kind != "answer":
        return {}
    try:
        body = json.loads(letter.body)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
