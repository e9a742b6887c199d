"""Model of the log with one consumer, as JetStream keeps them, and strategies for events to publish."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, get_args

from hypothesis import strategies as st

from tests.support.log.reference_fold import EventKind, ReferenceEvent

Logged = tuple[str, ReferenceEvent]
"""A user and an event of this user."""

_KINDS: list[EventKind] = [*get_args(EventKind)]
_OFTEN: list[EventKind] = ["message", "message", "message", "started", "cleared", "fact.saved", "task.added"]
_ITEMS = st.sampled_from(["x", "y"])


class Draft(NamedTuple):
    """An event before it has a position.

    Attributes:
        repeats: the event is a copy of an earlier event of the user: 0 of the last one, 1 of the one before
            the last, and so on. None: the event is new.
        place: the conversation; None: the current one.
        back: number of positions before the event at which a summary begins to cover.
        erased: limit of an erasure: `all`: all earlier events; `itself not`: the position of the event;
            `one less`: the position before it.
    """

    user: str
    repeats: int | None
    kind: EventKind
    place: str | None
    discard: bool
    fields: dict[str, int | None]
    item: str
    back: int
    erased: Literal["all", "itself not", "one less"]


USERS = st.sampled_from(["u1", "u2"])
DRAFTS = st.builds(
    Draft,
    USERS,
    st.sampled_from([None, None, None, None, 0, 1, 2, 3]),
    st.sampled_from([*_OFTEN, *_KINDS]),
    st.sampled_from([None, None, "c1", "c2"]),
    st.booleans(),
    st.dictionaries(st.sampled_from("ab"), st.none() | st.integers(0, 3), min_size=1, max_size=2),
    _ITEMS,
    st.integers(0, 8),
    st.sampled_from(["all", "itself not", "one less"]),
)
WORKERS = st.integers(0, 2)
PICKS = st.lists(st.integers(0, 40), min_size=1, max_size=8)
"""Numbers of stored events to deliver, from 0 for the newest; larger numbers start again at the newest."""

Reached = Literal["taken", "written", "told", "acknowledged"]


@dataclass
class LogModel:
    """A stream with one consumer, as JetStream keeps them.

    Attributes:
        held: stored events by position; the others are purged.
        acknowledged: positions that the consumer has acknowledged.
    """

    ever: list[Logged] = field(default_factory=list)
    """All events that were published, also those that are purged."""
    held: dict[int, Logged] = field(default_factory=dict)
    acknowledged: set[int] = field(default_factory=set)
    triggers: set[str] = field(default_factory=set)
    """Users with a waiting trigger."""

    @property
    def end(self) -> int:
        return len(self.ever)

    @property
    def open(self) -> list[Logged]:
        """Stored events that are not acknowledged."""
        return [each for seq, each in self.held.items() if seq not in self.acknowledged]

    @property
    def floor(self) -> int:
        """Position up to which every stored event is acknowledged."""
        return min((event.seq for _, event in self.open), default=self.end + 1) - 1

    def publish(self, draft: Draft) -> None:
        """Store the event at the next position."""
        self.ever.append((draft.user, event := self._event(draft)))
        self.held[event.seq] = draft.user, event

    def of(self, user: str) -> list[ReferenceEvent]:
        """Return all events of a user that were published, also those that are purged."""
        return events_of(user, self.ever)

    def _event(self, draft: Draft) -> ReferenceEvent:
        seq = self.end + 1
        theirs = self.of(draft.user)
        if theirs and draft.repeats is not None:
            first = theirs[-1 - draft.repeats % len(theirs)]
            # The copy has the id of the first event, but may have another body.
            return replace(first, seq=seq, discard=draft.discard, item=draft.item)
        summaries = (each.id for each in theirs if each.kind.startswith("summary."))
        return ReferenceEvent(
            seq,
            f"e{len(theirs)}",
            draft.kind,
            draft.place or "c1" if draft.kind.startswith("summary.") else draft.place,
            draft.discard,
            draft.fields,
            draft.item,
            max(seq - draft.back, 1),
            tuple(dict.fromkeys(summaries)),
            {"all": 2**53 - 1, "itself not": seq, "one less": seq - 1}[draft.erased],
        )


@dataclass
class Hand:
    """Batch of a worker, and the last stage that the worker has completed."""

    batch: list[Logged]
    reached: Reached = "taken"


def events_of(user: str, logged: Iterable[Logged]) -> list[ReferenceEvent]:
    return [event for whose, event in logged if whose == user]
