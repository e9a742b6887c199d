"""What the demo saw: counted where it happened, and what the bot can ask for afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from mnemon_contracts.base import Event, JsonObject
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.events.memory import FactConfirmedV1, FactRejectedV1, FactSavedV1, FactUpdatedV1
from mnemon_contracts.verbs.ask import ContextReplyV1, RenderedMessage, StoredMessage
from mnemon_contracts.verbs.tools import Scope, SearchHitV2, StoredFact


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


@dataclass(frozen=True, slots=True)
class ToldFact:
    """A fact that was proposed, and the event by which it was decided on."""

    user: str
    text: str
    event: Event

    def numbers(self) -> dict[str, Any]:
        """For a program."""
        named = {"user": self.user, "text": self.text}
        match self.event:
            case FactSavedV1(fact_id=fact_id, fact=fact):
                return named | {"decision": "saved", "id": fact_id, "tier": fact.tier}
            case FactUpdatedV1(fact_id=fact_id, former=former, decision=by):
                similarity = by.similarity if by else None
                known = {"id": fact_id, "former": former.text, "similarity": similarity}
                return named | {"decision": "updated", **known}
            case FactConfirmedV1(fact_id=fact_id):
                return named | {"decision": "confirmed", "id": fact_id}
            case FactRejectedV1(reason=rule):
                return named | {"decision": "rejected", "rule": rule}
        raise TypeError(f"{self.event!r} decides nothing")


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The fact that a query found and that was removed; `seen_seq` is from where on it is gone."""

    user: str
    query: str
    fact: StoredFact
    seen_seq: int


@dataclass(frozen=True, slots=True)
class DemoSearch:
    """What a search found, best first."""

    user: str
    query: str
    scope: Scope
    hits: Sequence[SearchHitV2]

    def numbers(self) -> dict[str, Any]:
        """For a program."""
        hits = [{"id": hit.id, "score": hit.score, "text": hit.text} for hit in self.hits]
        return {"user": self.user, "query": self.query, "scope": self.scope, "hits": hits}


@dataclass(frozen=True, slots=True)
class Facts:
    """What became of facts.

    Attributes:
        told: all that was proposed.
        forgotten: the one that was removed.
        kept: what is left, by user.
        found: searches for it, and for what was said.
        context: of Иван, as XML.
    """

    told: Sequence[ToldFact]
    forgotten: Forgotten
    kept: Mapping[str, Sequence[StoredFact]]
    found: Sequence[DemoSearch]
    context: ContextReplyV1

    def numbers(self) -> dict[str, Any]:
        """For a program."""
        return {
            "told": [told.numbers() for told in self.told],
            "forgotten": self.forgotten.fact.text,
            "kept": {user: [fact.text for fact in facts] for user, facts in self.kept.items()},
            "found": [found.numbers() for found in self.found],
            "context_tokens": self.context.tokens,
        }


class Drawn(NamedTuple):
    """A fact that was drawn from what was said; `source` is the first message that says it."""

    user: str
    id: str
    text: str
    source: MessageV1 | None


class Spent(NamedTuple):
    """What a model was asked, and how many tokens that took."""

    model: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned while nobody asked.

    Attributes:
        model: that was asked; None: rules.
        summaries: of what was said, by user, oldest first.
        drawn: facts that were new.
        decisions: how many proposed facts ended in which way, such as `saved`.
        spent: by purpose.
        seq: the log position that has all of it.
    """

    model: str | None
    summaries: Mapping[str, Sequence[str]]
    drawn: Sequence[Drawn]
    decisions: Mapping[str, int]
    spent: Mapping[str, Spent]
    seq: int

    def numbers(self) -> dict[str, Any]:
        """For a program."""
        return {
            "model": self.model or "offline",
            "summaries": self.summaries,
            "facts": {
                user: [each.text for each in self.drawn if each.user == user] for user in self.summaries
            },
            "decisions": self.decisions,
            "spent": {purpose: spent._asdict() for purpose, spent in self.spent.items()},
        }


@dataclass(slots=True)
class DemoReport:
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
        facts: what became of those that were told.
        learned: what was learned while nobody asked.
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
    facts: Facts | None = None
    learned: Learned | None = None
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
            "facts": self.facts.numbers() if self.facts else None,
            "learned": self.learned.numbers() if self.learned else None,
            "seconds": {part: round(seconds, 3) for part, seconds in self.seconds.items()},
        }
