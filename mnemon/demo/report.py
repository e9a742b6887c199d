"""What the demo saw: counted where it happened, and what the bot can ask for afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from contracts.ask import RenderedMessage, StoredMessage
from contracts.base import JsonObject


@dataclass(frozen=True, slots=True)
class Removed:
    """What one `started` that discards, or one `cleared`, took away.

    Attributes:
        count: how many messages a bot cannot see any more.
        messages: as they were shown before.
    """

    count: int
    messages: Sequence[StoredMessage]


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A message that was sent again with the same id."""

    id: str
    content: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that could not be applied, and why."""

    subject: str
    reason: str
    error: str
    body: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a bot is given when it asks.

    Attributes:
        context: of Anna, ready for a model.
        history: the last messages of Иван.
        profile: of Иван.
        cleared: what Lena's conversation holds that was cleared.
    """

    context: Sequence[RenderedMessage] = ()
    history: Sequence[StoredMessage] = ()
    profile: JsonObject = field(default_factory=dict)
    cleared: Sequence[StoredMessage] = ()


@dataclass(slots=True)
class Report:
    """How every event ended.

    Attributes:
        published: events that were sent.
        log_events: events that the log holds.
        kept: messages that are stored and visible, by user.
        discarded: what `/new` took away.
        cleared: what clearing a conversation took away.
        profile_changes: how often a user's data were set.
        duplicates: messages that the log had already.
        dead_letters: what could not be applied.
        seconds: how long each part took.
        remembered: what the bot is given, once everything is persisted.
    """

    published: int = 0
    log_events: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    discarded: list[Removed] = field(default_factory=list)
    cleared: list[Removed] = field(default_factory=list)
    profile_changes: int = 0
    duplicates: list[Duplicate] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    remembered: Remembered = Remembered()

    @property
    def ends(self) -> Mapping[str, int]:
        """How many events ended in which way."""
        return {
            "messages_kept": sum(self.kept.values()),
            "messages_discarded": sum(removed.count for removed in self.discarded),
            "messages_cleared": sum(removed.count for removed in self.cleared),
            "conversations_started": len(self.discarded),
            "conversations_cleared": len(self.cleared),
            "profile_changes": self.profile_changes,
            "duplicates": len(self.duplicates),
            "dead_letters": len(self.dead_letters),
        }

    @property
    def is_balanced(self) -> bool:
        """Whether every event that was published has ended in one of these ways."""
        return sum(self.ends.values()) == self.published

    def numbers(self) -> dict[str, Any]:
        """For a program."""
        return {
            "published": self.published,
            "log_events": self.log_events,
            "ends": self.ends,
            "balanced": self.is_balanced,
            "messages_by_user": self.kept,
            "dead_letters": [asdict(letter) for letter in self.dead_letters],
            "seconds": {part: round(seconds, 3) for part, seconds in self.seconds.items()},
        }
