"""The JSON lines of an export, which an import takes: a header, then one event of one user on each line.

    {"mnemon": "memory", "version": 1}
    {"tenant": "acme", "user": "u42", "event": "message.v1", "conversation": "c1", "n": 1, "body": {...}}
    {"tenant": "acme", "user": "u42", "event": "fact.saved.v1", "body": {...}}

Event, version and body follow the contracts, except for log positions: where an event names the
position of a message, a line names the number `n` of that message among the messages of the user. A file
therefore does not depend on the log that it comes from.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from mnemon_contracts.base import Event
from mnemon_contracts.events.memory import Lineage
from mnemon_contracts.identity import derive_id
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
"""Events that make up a memory, without model calls, batches, comparisons, rejected facts and erasures."""

AnyEvent = TypeVar("AnyEvent", bound=Event)


class MessagePositions(NamedTuple):
    """Functions that map log positions of messages to their numbers `n` in a file, or numbers to positions.

    Attributes:
        map_exactly: maps the given message; returns None if the message is gone.
        map_first: maps the given message, or the next message that still exists; returns None without one.
        map_last: maps the given message, or the last message before it that still exists; returns None
            without one.
    """

    map_exactly: Callable[[int], int | None]
    map_first: Callable[[int], int | None]
    map_last: Callable[[int], int | None]


def has_positions(event: Event) -> bool:
    """Return whether an event names positions of other events."""
    lineage = getattr(event, "lineage", None)
    return hasattr(event, "from_seq") or bool(lineage and lineage.sources)


def map_positions(event: AnyEvent, to: MessagePositions) -> AnyEvent | None:
    """Return the event with its positions mapped; None if no message of its range still exists.

    Sources that are gone are left out of the lineage: the fact stays without them.
    """
    changes: dict[str, Any] = {}
    lineage = getattr(event, "lineage", None)
    if isinstance(lineage, Lineage) and lineage.sources:
        known = (to.map_exactly(each) for each in lineage.sources)
        sources = tuple(each for each in known if each is not None)
        changes["lineage"] = lineage.model_copy(update={"sources": sources})
    if hasattr(event, "from_seq") and hasattr(event, "to_seq"):
        first, last = to.map_first(event.from_seq), to.map_last(event.to_seq)
        if first is None or last is None or first > last:
            return None
        changes |= {"from_seq": first, "to_seq": last}
    return event.model_copy(update=changes) if changes else event


def derive_start_id(tenant: str, user: str, conversation: str) -> str:
    """Return the id for the start of a conversation whose first message is gone."""
    return derive_id(tenant, user, "started", conversation)


def derive_portable_id(tenant: str, user: str, event_id: str, content: str = "") -> str:
    """Return the id of an event for use in another log.

    An event without an id is identified by its log position (`LOG:17`), which names a different event in
    another log. Such an event gets an id derived from its owner, its position and `content`.
    """
    if event_id.startswith(f"{LOG}:"):
        return derive_id(tenant, user, event_id, content)
    return event_id
