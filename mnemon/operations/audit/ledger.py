"""What an audit finds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from mnemon_infra.database.facts.decisions import BatchCounts
from mnemon_infra.vectors.port import Collection

NAMED: Final = 20
"""Faults of one kind that are named; the others are counted."""

FaultKind = Literal[
    "absent",
    "no_letter",
    "differs",
    "emptied",
    "kept",
    "stray",
    "beyond_log",
    "undecided",
    "decided_twice",
    "no_point",
    "left_point",
]

MEANINGS: Final[Mapping[FaultKind, str]] = {
    "absent": "has no row and no dead letter",
    "no_letter": "cannot be applied, and has no dead letter",
    "differs": "has a row with other content",
    "emptied": "has lost its content without a reason",
    "kept": "still has its content, though it was cleared, discarded or forgotten",
    "stray": "is named by a row, but is not in the log like that",
    "beyond_log": "has a row, but the log ends before it",
    "undecided": "was proposed, but not decided",
    "decided_twice": "decides a proposal that was decided already",
    "no_point": "has a row, but no point",
    "left_point": "was removed, but its point still exists",
}
"""What is said of an event of each kind of fault."""

_PROJECT_AGAIN: Final = "rebuild the rows from the log: mnemon rebuild"
_INDEX_AGAIN: Final = "index the log again: mnemon reindex"
NEXT: Final[Mapping[FaultKind, str]] = {
    "absent": _PROJECT_AGAIN,
    "no_letter": "the event is in the log at its position; its sender can correct it and send it again",
    "differs": _PROJECT_AGAIN,
    "emptied": _PROJECT_AGAIN,
    "kept": "the trigger of its sweep was lost; the next clear or forget of the user removes the content",
    "stray": _PROJECT_AGAIN,
    "beyond_log": "the log does not belong to these rows: restore its newest backup (nats stream restore)",
    "undecided": "propose it again, with a new id",
    "decided_twice": "show both with `mnemon get`, and forget one of them",
    "no_point": _INDEX_AGAIN,
    "left_point": _INDEX_AGAIN,
}
"""What to do about each kind of fault."""


@dataclass(frozen=True, slots=True)
class AuditFault:
    """Something that is not accounted for: the log position, who should have seen to it, where, and what."""

    kind: FaultKind
    seq: int
    consumer: str
    where: str
    detail: str = ""


@dataclass(slots=True)
class AuditFaults:
    """All that is not accounted for: counted, and the first of each kind named."""

    counts: Counter[FaultKind] = field(default_factory=Counter)
    named: list[AuditFault] = field(default_factory=list)
    _by: Counter[str] = field(default_factory=Counter)

    def add(self, kind: FaultKind, seq: int, consumer: str, where: str, detail: str = "") -> None:
        self.counts[kind] += 1
        self._by[consumer] += 1
        if self.counts[kind] <= NAMED:
            self.named.append(AuditFault(kind, seq, consumer, where, detail))

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def of(self, *consumers: str) -> int:
        """How many there are of some consumers."""
        return sum(self._by[each] for each in consumers)

    def sequences(self) -> list[int]:
        """The first log positions, each once."""
        return sorted({each.seq for each in self.named})[:NAMED]


@dataclass(slots=True)
class Persisted:
    """What became of the events that `persist` has ended.

    Attributes:
        events: how many were read.
        applied: those that have a row.
        nothing: those that deliberately have none, by reason.
        dead: those that have a dead letter, by reason.
        removed: applied ones whose content was removed, as it must be.
        waiting: events whose content a sweep that is on its way removes.
    """

    events: int = 0
    applied: int = 0
    nothing: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    removed: int = 0
    waiting: int = 0


@dataclass(slots=True)
class Deduped:
    """What became of proposals: how many there are up to `position`, and how they were decided."""

    position: int = 0
    proposals: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class CollectionAudit:
    """What can be found in one collection.

    Attributes:
        points: how many there are.
        shown: how many messages, facts, documents or summaries must have some.
        dead: points of messages of which there is a dead letter and no row: they are shown to nobody.
        waiting: those whose user `index` is about to look through.
    """

    points: int = 0
    shown: int = 0
    dead: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Durable:
    """A consumer of a stream: what waits for it, what it has in hand, and what of that it had before."""

    stream: str
    name: str
    pending: int
    in_work: int
    redelivered: int


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    Attributes:
        up_to: the log position up to which every event must have ended.
        beyond: positions of the log beyond it, which are still on their way.
        every: the content of every so many-th user was compared.
        seconds: how long it took.
        vectors: what can be found, by collection; None where nobody knows of vectors.
        letters: dead letters, by consumer and reason.
    """

    up_to: int
    beyond: int
    every: int
    seconds: float
    persist: Persisted
    dedupe: Deduped
    extract: BatchCounts
    vectors: Mapping[Collection, CollectionAudit] | None
    letters: Mapping[tuple[str, str], int]
    durables: Sequence[Durable]
    faults: AuditFaults
