"""Report of the demo: the outcome of every event, and the replies that a bot gets afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemon_contracts.base import Event, JsonObject
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.events.memory import FactConfirmedV1, FactRejectedV1, FactSavedV1, FactUpdatedV1
from mnemon_contracts.verbs.ask import ContextReplyV1, RenderedMessage, StoredMessage
from mnemon_contracts.verbs.tools import Scope, SearchHitV2, StoredFact

if TYPE_CHECKING:
    from mnemon_infra.broker.dead_letters.listing import Letter


@dataclass(frozen=True, slots=True)
class RemovedMessages:
    """Messages that a `cleared` event, or a `started` event with `discard_previous`, removed.

    Attributes:
        count: number of messages that a bot no longer sees.
        messages: the messages as a bot saw them before.
    """

    count: int
    messages: Sequence[StoredMessage]


@dataclass(frozen=True, slots=True)
class DuplicateMessage:
    """A message that was sent again with the same id."""

    id: str
    content: str


@dataclass(frozen=True, slots=True)
class BotReplies:
    """Replies to the requests of the demo, as a bot gets them.

    Attributes:
        context: context of Anna, ready for a model.
        history: last messages of Иван.
        profile: profile of Иван.
        cleared: messages of Lena's conversation since the `cleared` event.
    """

    context: Sequence[RenderedMessage] = ()
    history: Sequence[StoredMessage] = ()
    profile: JsonObject = field(default_factory=dict)
    cleared: Sequence[StoredMessage] = ()


@dataclass(frozen=True, slots=True)
class ProposedText:
    """A proposed fact, and the event with the decision on it."""

    user: str
    text: str
    event: Event

    def to_json(self) -> dict[str, Any]:
        """Return the user, the text and the decision as JSON values.

        Raises:
            TypeError: the event is not a decision on a proposal.
        """
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
        raise TypeError(f"{self.event!r} is not a decision on a proposal; use an event such as fact.saved")


@dataclass(frozen=True, slots=True)
class ForgottenFact:
    """A fact that a query found and that was forgotten; no reply as of `seen_seq` or later has it."""

    user: str
    query: str
    fact: StoredFact
    seen_seq: int


@dataclass(frozen=True, slots=True)
class DemoSearch:
    """A search and its hits, best first."""

    user: str
    query: str
    scope: Scope
    hits: Sequence[SearchHitV2]

    def to_json(self) -> dict[str, Any]:
        """Return the search as JSON values, with id, score and text of each hit."""
        hits = [{"id": hit.id, "score": hit.score, "text": hit.text} for hit in self.hits]
        return {"user": self.user, "query": self.query, "scope": self.scope, "hits": hits}


@dataclass(frozen=True, slots=True)
class DemoFacts:
    """Facts that the demo proposes, forgets, keeps and searches.

    Attributes:
        kept: the facts that are left, by user.
        searches: searches for facts and for messages.
        context: context of Иван, as XML.
    """

    proposed: Sequence[ProposedText]
    forgotten: ForgottenFact
    kept: Mapping[str, Sequence[StoredFact]]
    searches: Sequence[DemoSearch]
    context: ContextReplyV1

    def to_json(self) -> dict[str, Any]:
        """Return the facts, the searches and the tokens of the context as JSON values."""
        return {
            "told": [told.to_json() for told in self.proposed],
            "forgotten": self.forgotten.fact.text,
            "kept": {user: [fact.text for fact in facts] for user, facts in self.kept.items()},
            "found": [found.to_json() for found in self.searches],
            "context_tokens": self.context.tokens,
        }


class ExtractedFact(NamedTuple):
    """A fact that was extracted from messages; `source` is its first source message, if it has one."""

    user: str
    id: str
    text: str
    source: MessageV1 | None


class ModelCalls(NamedTuple):
    """Calls of a model and their tokens."""

    model: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class DerivedMemory:
    """Memory that the consumers derived from messages.

    Attributes:
        model: the model that was asked; None if rules did the work.
        summaries: summaries by user, oldest first.
        decisions: number of decisions by outcome, such as `saved`.
        model_calls: calls of models, by purpose.
        seq: log position that includes all derived memory.
    """

    model: str | None
    summaries: Mapping[str, Sequence[str]]
    facts: Sequence[ExtractedFact]
    decisions: Mapping[str, int]
    model_calls: Mapping[str, ModelCalls]
    seq: int

    def to_json(self) -> dict[str, Any]:
        """Return the memory as JSON values; facts of users who are not in `summaries` are left out."""
        return {
            "model": self.model or "offline",
            "summaries": self.summaries,
            "facts": {
                user: [each.text for each in self.facts if each.user == user] for user in self.summaries
            },
            "decisions": self.decisions,
            "spent": {purpose: spent._asdict() for purpose, spent in self.model_calls.items()},
        }


@dataclass(slots=True)
class DemoReport:
    """Outcome of every event, and the results of each part of the demo.

    Attributes:
        vectors: name and version of the vector store.
        published: number of events that were sent.
        log_events: number of events in the log after the publication of the sample.
        kept: number of messages that are stored and visible, by user.
        discarded: messages that each `started` event with `discard_previous` removed.
        cleared: messages that each `cleared` event removed.
        profile_changes: number of changes of profiles.
        duplicates: messages that the log had already.
        dead_letters: events that could not be applied.
        seconds: duration of each part, in seconds.
        facts: decisions on facts, and searches.
        derived: memory derived from messages.
        replies: replies that a bot gets once all events are persisted.
    """

    vectors: str = ""
    published: int = 0
    log_events: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    discarded: list[RemovedMessages] = field(default_factory=list)
    cleared: list[RemovedMessages] = field(default_factory=list)
    profile_changes: int = 0
    duplicates: list[DuplicateMessage] = field(default_factory=list)
    dead_letters: "list[Letter]" = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    facts: DemoFacts | None = None
    derived: DerivedMemory | None = None
    replies: BotReplies = BotReplies()

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Number of events by outcome."""
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
        """True if every published event has one of the outcomes in `outcomes`."""
        return sum(self.outcomes.values()) == self.published

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values, with only the counts of removed messages and duplicates.

        The replies are left out.
        """
        return {
            "vectors": self.vectors,
            "published": self.published,
            "log_events": self.log_events,
            "ends": self.outcomes,
            "balanced": self.is_balanced,
            "messages_by_user": self.kept,
            "dead_letters": [
                {
                    "subject": letter.subject,
                    "reason": letter.reason,
                    "error": letter.error,
                    "body": letter.body.decode(errors="replace"),
                }
                for letter in self.dead_letters
            ],
            "facts": self.facts.to_json() if self.facts else None,
            "learned": self.derived.to_json() if self.derived else None,
            "seconds": {part: round(seconds, 3) for part, seconds in self.seconds.items()},
        }
