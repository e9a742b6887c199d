"""What a log amounts to, in the plainest words: events one after another, in log order.

The reference that the projections are held against, whatever order, batches and copies they came in.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from contracts.identity import first_conversation, started_conversation

TENANT, USER = "acme", "u1"

EventKind = Literal["message", "started", "cleared", "profile"]


@dataclass(frozen=True)
class LoggedEvent:
    """An event of the one user that a fold is about. `conversation` None is the current one."""

    seq: int
    id: str
    kind: EventKind
    conversation: str | None = None
    discard: bool = False
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass
class State:
    """What is left at the end of the log."""

    current: str = field(default_factory=lambda: first_conversation(TENANT, USER))
    messages: dict[str, list[str]] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)


def fold(events: Iterable[LoggedEvent]) -> State:
    """The state after a log; of several copies of an event the first counts."""
    state = State()
    seen: set[tuple[str, str]] = set()
    started: set[str] = set()
    for event in sorted(events, key=lambda event: event.seq):
        if (event.kind, event.id) in seen:
            continue
        seen.add((event.kind, event.id))
        match event.kind:
            case "message":
                if event.conversation is not None and event.conversation not in started:
                    started.add(event.conversation)
                    state.current = event.conversation
                state.messages.setdefault(event.conversation or state.current, []).append(event.id)
            case "started":
                state.current = event.conversation or started_conversation(TENANT, USER, event.id)
                started.add(state.current)
                if event.discard:
                    state.messages.clear()
            case "cleared":
                state.messages.pop(event.conversation or state.current, None)
            case "profile":
                state.profile.update(event.fields)
    state.profile = {name: value for name, value in state.profile.items() if value is not None}
    state.messages = {place: said for place, said in state.messages.items() if said}
    return state
