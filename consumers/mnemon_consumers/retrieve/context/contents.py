"""Contents of a context, before they are rendered in a format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from mnemon_consumers.retrieve.context.coverage import ConversationExtent
from mnemon_consumers.retrieve.context.text import format_tools_used, stamp_message
from mnemon_consumers.retrieve.context.wording import ENGLISH, ContextLanguage, Wording
from mnemon_contracts.events.chat import Role
from mnemon_contracts.events.memory import Kind
from mnemon_contracts.settings.groups import TimeStamps
from mnemon_infra.database.memory.user_memory import StoredRow

SectionKind: TypeAlias = Literal[
    "facts", "summaries", "user_data", "working", "recent", "relevant", "documents", "conversation"
]
"""A section of the context; `mnemon_contracts.settings.groups.Sections` has the tokens of each section."""

SECTIONS: tuple[SectionKind, ...] = get_args(SectionKind)


class ContextFact(NamedTuple):
    """A fact that may be shown.

    Attributes:
        id: its short id; a context shows each id once.
        changed_at: the time of its current version, as in `FactRecord`.
        score: relevance to the query; a higher score is better.
    """

    id: str
    text: str
    kind: Kind
    importance: int
    changed_at: datetime
    expires_at: datetime | None = None
    score: float = 0.0


class ContextMessage(NamedTuple):
    """A message that may be shown; `text` includes any timestamp, and `id` is the event id."""

    id: str
    role: Role
    text: str
    name: str | None = None


class DataField(NamedTuple):
    """A field of the user's profile, with its JSON value."""

    name: str
    value: Any


class ContextSummary(NamedTuple):
    """A summary of earlier messages in a few sentences, and the log positions that it covers."""

    text: str
    from_seq: int = 0
    to_seq: int = 0


class Passage(NamedTuple):
    """A chunk of a document; `name` is the title of the document, or else its id."""

    text: str
    name: str
    source: str | None = None


class CurrentTime(NamedTuple):
    """The date and time of the context, in the format of timestamps."""

    text: str


Item: TypeAlias = ContextFact | ContextMessage | DataField | ContextSummary | Passage | CurrentTime


@dataclass(frozen=True, slots=True)
class Context:
    """Contents of a context: all items that may be shown, with a field for each section.

    Attributes:
        facts: facts of the tier `profile`, in any order.
        working: facts of the tier `working`, in any order.
        relevant: facts found for this turn, in any order.
        user_data: fields that a tool or a person set.
        summaries: summaries of earlier messages, oldest first.
        recent: the newest messages, and messages that no summary covers, oldest first.
        documents: chunks of documents found for this turn, best first.
        conversation: earlier messages found for this turn, best first.
        current_time: the current time; None if the context must not show it.
        language: language of the fixed words.
        trimmed: whether items are left out, for lack of room or by the settings.
        incomplete: whether a part could not be read or searched, or was searched by words only.
        extent: all messages of the conversation, for the coverage; None if the messages are unknown.
        conversation_limit: maximum number of messages of `conversation` to show; None for no limit.
        not_considered: for the sections `facts`, `summaries` and `recent`, the number of stored items that
            are not in the fields above; messages that a summary covers are not counted.
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

    def get_section(self, section: SectionKind) -> Sequence[Item]:
        """Return the items of one section."""
        items: Sequence[Item] = getattr(self, section)
        return items


def build_messages(
    rows: Sequence[StoredRow], stamps: TimeStamps, wording: Wording = ENGLISH
) -> list[ContextMessage]:
    """Return messages as a model is shown them, with a line after each answer that used tools.

    A message without words consists of that line alone, or is left out if it used no tools, because some
    models refuse an empty message.
    """
    shown: list[ContextMessage] = []
    for row in rows:
        if row.content.strip():
            shown.append(ContextMessage(row.event_id, row.role, stamp_message(row, stamps), row.name))
        if row.tool_calls:
            shown.append(ContextMessage(row.event_id, "system", format_tools_used(row.tool_calls, wording)))
    return shown


def build_user_data(profile: Mapping[str, Any]) -> tuple[DataField, ...]:
    """Return the user's data field by field, without fields that have no value."""
    return tuple(DataField(name, value) for name, value in profile.items() if value is not None)
