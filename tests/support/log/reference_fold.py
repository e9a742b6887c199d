"""Reference fold of a log: events one after another, in log order.

The reference that the projections are held against, whatever order, batches and copies they came in.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from mnemon_contracts.identity import derive_first_conversation, derive_started_conversation

TENANT, USER = "acme", "u1"

EventKind = Literal[
    "message",
    "started",
    "cleared",
    "profile.set",
    "fact.saved",
    "fact.updated",
    "fact.confirmed",
    "fact.compared",
    "fact.merged",
    "fact.rejected",
    "fact.forgotten",
    "fact.expired",
    "fact.evicted",
    "task.added",
    "task.done",
    "task.removed",
    "document.added",
    "document.removed",
    "summary.written",
    "summary.merged",
    "user.erased",
]


@dataclass(frozen=True)
class ReferenceEvent:
    """An event of the one user that a fold is about. `conversation` None is the current one.

    What an event says is its own id. `item` is the fact, task or document that it is about; a summary is its
    own, covers what follows `from_seq`, and may stand for others. `up_to` is how far an erasure goes.
    """

    seq: int
    id: str
    kind: EventKind
    conversation: str | None = None
    discard: bool = False
    fields: dict[str, Any] = field(default_factory=dict)
    item: str = "x"
    from_seq: int = 1
    merged: tuple[str, ...] = ()
    up_to: int = 0


@dataclass
class ReferenceState:
    """State at the end of the log."""

    current: str
    messages: dict[str, list[str]] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, list[str]] = field(default_factory=dict)
    """Of each fact all versions, newest first."""
    tasks: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Of each task what it says, and whether it is done."""
    documents: dict[str, str] = field(default_factory=dict)
    summaries: dict[str, set[str]] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    """The memory events whose content is still there when all has been swept."""


def fold(events: Iterable[ReferenceEvent], user: str = USER) -> ReferenceState:
    """A user's state after a log; of several copies of an event the first counts that nothing has erased."""
    ordered = sorted(events, key=lambda event: event.seq)
    erased = erased_up_to(ordered)
    first: dict[str, ReferenceEvent] = {}
    for event in ordered:
        if event.seq >= erased and not (event.kind.startswith("summary.") and event.from_seq < erased):
            first.setdefault(event.id, event)
    log = list(first.values())
    state = ReferenceState(derive_first_conversation(TENANT, user))
    floors = _fold_conversations(log, state, user)
    _fold_facts(log, state)
    _fold_items(log, state)
    _fold_summaries(log, state, floors)
    return state


def erased_up_to(events: Iterable[ReferenceEvent]) -> int:
    """Return the position below which everything is erased."""
    erasures = (min(event.up_to, event.seq) for event in events if event.kind == "user.erased")
    return max(erasures, default=0)


def _fold_conversations(log: list[ReferenceEvent], state: ReferenceState, user: str) -> dict[str | None, int]:
    """Returns the floors of the conversations, and under None that of all."""
    started: set[str] = set()
    floors: dict[str | None, int] = {}
    for event in log:
        match event.kind:
            case "message":
                if event.conversation is not None and event.conversation not in started:
                    started.add(event.conversation)
                    state.current = event.conversation
                state.messages.setdefault(event.conversation or state.current, []).append(event.id)
            case "started":
                state.current = event.conversation or derive_started_conversation(TENANT, user, event.id)
                started.add(state.current)
                if event.discard:
                    state.messages.clear()
                    floors[None] = event.seq
            case "cleared":
                state.messages.pop(event.conversation or state.current, None)
                floors[event.conversation or state.current] = event.seq
            case "profile.set":
                state.profile.update(event.fields)
    state.profile = {name: value for name, value in state.profile.items() if value is not None}
    state.messages = {place: said for place, said in state.messages.items() if said}
    return floors


def _fold_facts(log: list[ReferenceEvent], state: ReferenceState) -> None:
    ended = {each.item for each in log if each.kind in ("fact.forgotten", "fact.expired", "fact.evicted")}
    saved = {each.item for each in log if each.kind == "fact.saved"}
    for event in log:
        if event.kind in ("fact.saved", "fact.updated", "fact.merged") and event.item not in ended:
            state.texts.add(event.id)
            if event.item in saved:
                state.facts.setdefault(event.item, []).insert(0, event.id)


def _fold_items(log: list[ReferenceEvent], state: ReferenceState) -> None:
    added: dict[str, set[str]] = {}
    for event in log:
        match event.kind:
            case "task.added":
                state.tasks[event.item] = event.id, False
                added.setdefault(f"task {event.item}", set()).add(event.id)
            case "task.done" if event.item in state.tasks:
                state.tasks[event.item] = state.tasks[event.item][0], True
            case "task.removed":
                state.tasks.pop(event.item, None)
                added.pop(f"task {event.item}", None)
            case "document.added":
                state.documents[event.item] = event.id
                added.setdefault(f"document {event.item}", set()).add(event.id)
            case "document.removed":
                state.documents.pop(event.item, None)
                added.pop(f"document {event.item}", None)
    state.texts.update(*added.values())


def _fold_summaries(log: list[ReferenceEvent], state: ReferenceState, floors: dict[str | None, int]) -> None:
    kept = [
        event
        for event in log
        if event.kind in ("summary.written", "summary.merged")
        and event.from_seq >= max(floors.get(event.conversation, 0), floors.get(None, 0))
    ]
    state.texts.update(event.id for event in kept)
    merged = {
        (event.conversation, each)
        for event in kept
        if event.kind == "summary.merged"
        for each in event.merged
    }
    for event in kept:
        assert event.conversation is not None
        if (event.conversation, event.id) not in merged:
            state.summaries.setdefault(event.conversation, set()).add(event.id)
