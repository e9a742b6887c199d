"""The whole context of one answer, before it has a format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from mnemon_consumers.retrieve.context.coverage import ConversationExtent
from mnemon_consumers.retrieve.context.text import stamped, tools_used
from mnemon_consumers.retrieve.context.wording import ENGLISH, ContextLanguage, Wording
from mnemon_contracts.events.chat import Role
from mnemon_contracts.events.memory import Kind
from mnemon_contracts.settings.groups import TimeStamps
from mnemon_infra.database.memory.user_memory import StoredRow

SectionKind: TypeAlias = Literal[
    "facts", "summaries", "user_data", "working", "recent", "relevant", "documents", "conversation"
]
"""A part of the context; `mnemon_contracts.settings.groups.Sections` gives each its tokens."""

SECTIONS: tuple[SectionKind, ...] = get_args(SectionKind)


class ContextFact(NamedTuple):
    """A fact that may be shown.

    Attributes:
        id: its short id, by which it is shown once only.
        changed_at: when it was saved or rewritten last.
        score: how well it answers the query; more is better.
    """

    id: str
    text: str
    kind: Kind
    importance: int
    changed_at: datetime
    expires_at: datetime | None = None
    score: float = 0.0


class ContextMessage(NamedTuple):
    """A message that may be shown, time stamp included; `id` is its event id."""

    id: str
    role: Role
    text: str
    name: str | None = None


class DataField(NamedTuple):
    """A field of the user's data."""

    name: str
    value: Any


class ContextSummary(NamedTuple):
    """A summary of earlier messages in a few sentences, and the log positions that it covers."""

    text: str
    from_seq: int = 0
    to_seq: int = 0


class Passage(NamedTuple):
    """A passage of a document; `name` is its title, or else its id."""

    text: str
    name: str
    source: str | None = None


class CurrentTime(NamedTuple):
    """The date and time at which the context is made, as time stamps are written."""

    text: str


Item: TypeAlias = ContextFact | ContextMessage | DataField | ContextSummary | Passage | CurrentTime


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that may be shown, a field for each section.

    Attributes:
        facts: key facts, tier `profile`, in any order.
        working: what holds for now, tier `working`, in any order.
        relevant: facts found for this turn, in any order.
        user_data: what was set by a tool or by hand.
        summaries: oldest first.
        recent: the newest messages and those that no summary covers, oldest first.
        documents: passages of documents found for this turn, best first.
        conversation: earlier messages found for this turn, best first.
        current_time: None where it is not to be shown.
        language: of the fixed words.
        trimmed: something is left out for want of room.
        incomplete: something could not be read or searched.
        extent: all messages of the conversation, for the account of them; None where it is not known.
        conversation_limit: messages of `conversation` that are shown at most; None: as many as find room.
        not_considered: of each section the number of items that are stored and not among those above.
    """

    facts: Sequence[ContextFact] = ()
    summaries: Sequence[ContextSummary] = ()
    user_data: Sequence[DataField] = ()
    working: Sequence[ContextFact] = ()
    recent: Sequence[ContextMessage] = ()
    relevant: Sequence[ContextFact] = ()
    documents: Sequence[Passage] = ()
    conversation: Sequence[ContextMessage] = ()
    current_time: CurrentTime | None = None
    language: ContextLanguage = "en"
    trimmed: bool = False
    incomplete: bool = False
    extent: ConversationExtent | None = None
    conversation_limit: int | None = None
    not_considered: Mapping[SectionKind, int] = field(default_factory=dict)

    def of(self, section: SectionKind) -> Sequence[Item]:
        """The items of one section."""
        items: Sequence[Item] = getattr(self, section)
        return items


def said(rows: Sequence[StoredRow], stamps: TimeStamps, wording: Wording = ENGLISH) -> list[ContextMessage]:
    """Messages as a model is shown them, with a line after each answer that used tools.

    Of one without words only that line: there are models that refuse an empty message.
    """
    shown: list[ContextMessage] = []
    for row in rows:
        if row.content.strip():
            shown.append(ContextMessage(row.event_id, row.role, stamped(row, stamps), row.name))
        if row.tool_calls:
            shown.append(ContextMessage(row.event_id, "system", tools_used(row.tool_calls, wording)))
    return shown


def user_data(profile: Mapping[str, Any]) -> tuple[DataField, ...]:
    """The user's data, field by field; one without a value says nothing."""
    return tuple(DataField(name, value) for name, value in profile.items() if value is not None)
