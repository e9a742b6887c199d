"""Reference fold of a log: one user's state, computed from the events in log order.

Tests compare the projections with it, for any order, batches and copies of the deliveries.
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
    """An event of the user of a fold. The text of a message, fact, task, document or summary is its event id.

    Attributes:
        conversation: None: the current one.
        discard: whether a `started` event discards earlier messages.
        fields: fields that a `profile.set` event sets.
        item: id of the fact, task or document; a summary has its event id instead.
        from_seq: first position that a summary covers.
        merged: ids of the summaries that a merged summary replaces.
        up_to: position below which an erasure removes content.
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
    """State of the user at the end of the log; messages and summaries are by conversation."""

    current: str
    messages: dict[str, list[str]] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, list[str]] = field(default_factory=dict)
    """Texts of all versions of each fact, newest first."""
    tasks: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Text of each task, and whether the task is done."""
    documents: dict[str, str] = field(default_factory=dict)
    summaries: dict[str, set[str]] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    """Ids of the memory events whose content stays after every sweep."""


def fold(events: Iterable[ReferenceEvent], user: str = USER) -> ReferenceState:
    """Return a user's state after a log; of several copies of an event, the first one not erased counts."""
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
    """Fold messages, conversations and profile; return the watermarks.

    These are the positions of the last clear of each conversation and, for None, of the last discard.
    """
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
