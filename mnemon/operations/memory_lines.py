"""The lines of an export, which are the lines of an import: one event of one user each, as JSON.

    {"mnemon": "memory", "version": 1}
    {"tenant": "acme", "user": "u42", "event": "message.v1", "conversation": "c1", "n": 1, "body": {...}}
    {"tenant": "acme", "user": "u42", "event": "fact.saved.v1", "body": {...}}

Event, version and body are those of the contracts, but for log positions: where an event names one, a line
names the message there by its number among the user's, `n`. So a file says the same wherever it comes from.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from mnemon_contracts.base import Event
from mnemon_contracts.events.memory import Lineage
from mnemon_contracts.identity import derived_id
from mnemon_contracts.streams import LOG

VERSION: Final = 1
HEADER: Final = {"mnemon": "memory", "version": VERSION}

CHAT: Final = frozenset({"message", "started", "cleared"})
EVENTS: Final = CHAT | {
    *("fact.proposed", "fact.saved", "fact.updated", "fact.confirmed", "fact.merged"),
    *("fact.forgotten", "fact.expired", "fact.evicted"),
    *("summary.written", "summary.merged", "window.answered"),
    *("profile.set", "task.added", "task.done", "task.removed"),
    *("document.added", "document.removed"),
}
"""What a memory is made of. What it cost, what was refused, and who was erased is no part of it."""

AnyEvent = TypeVar("AnyEvent", bound=Event)


class MessagePositions(NamedTuple):
    """From one way of naming a message to the other; each gives None where there is none.

    Attributes:
        exactly: this one.
        first: this one, or the next after it.
        last: this one, or the next before it.
    """

    exactly: Callable[[int], int | None]
    first: Callable[[int], int | None]
    last: Callable[[int], int | None]


def names_positions(event: Event) -> bool:
    """Whether an event says where other events are."""
    lineage = getattr(event, "lineage", None)
    return hasattr(event, "from_seq") or bool(lineage and lineage.sources)


def renamed(event: AnyEvent, to: MessagePositions) -> AnyEvent | None:
    """The same event with its positions named the other way; None where its stretch has none there.

    A source that is gone is left out: what was learned stays, from where is not known any more.
    """
    changes: dict[str, Any] = {}
    lineage = getattr(event, "lineage", None)
    if isinstance(lineage, Lineage) and lineage.sources:
        known = (to.exactly(each) for each in lineage.sources)
        sources = tuple(each for each in known if each is not None)
        changes["lineage"] = lineage.model_copy(update={"sources": sources})
    if hasattr(event, "from_seq") and hasattr(event, "to_seq"):
        first, last = to.first(event.from_seq), to.last(event.to_seq)
        if first is None or last is None or first > last:
            return None
        changes |= {"from_seq": first, "to_seq": last}
    return event.model_copy(update=changes) if changes else event


def start_id(tenant: str, user: str, conversation: str) -> str:
    """The id of the start of a conversation that started with a message which is gone."""
    return derived_id(tenant, user, "started", conversation)


def portable_id(tenant: str, user: str, event_id: str, content: str = "") -> str:
    """An event's id as it goes to another log.

    One that has none is known by its place in the log (`LOG:17`): elsewhere something else has that place.
    """
    if event_id.startswith(f"{LOG}:"):
        return derived_id(tenant, user, event_id, content)
    return event_id
