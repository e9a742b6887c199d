"""Results of an audit: faults, outcomes and counts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from mnemon_infra.database.facts.decisions import BatchCounts
from mnemon_infra.vectors.port import Collection

MAX_NAMED: Final = 20
"""Maximum number of faults of one kind that an audit names; further faults are only counted."""

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
    "absent": "has no row of its own, though it must have one",
    "no_letter": "cannot be applied, and has no dead letter",
    "differs": "has a row with other content",
    "emptied": "has lost its content without a reason",
    "kept": "still has its content, though it was cleared, discarded, removed or erased",
    "stray": "is named by a row, but the log has no event for this row",
    "beyond_log": "has a row, but the log ends before it",
    "undecided": "was proposed, but not decided",
    "decided_twice": "decides a proposal that was decided already",
    "no_point": "has a row, but lacks a point",
    "left_point": "was removed, but its point still exists",
}
"""Description of each kind of fault; the event is the subject of the sentence."""

_PROJECT_AGAIN: Final = "rebuild the rows from the log: mnemon rebuild"
_INDEX_AGAIN: Final = "index the log again: mnemon reindex"
NEXT_STEPS: Final[Mapping[FaultKind, str]] = {
    "absent": _PROJECT_AGAIN,
    "no_letter": "the event is in the log at its position; its sender can correct it and send it again",
    "differs": _PROJECT_AGAIN,
    "emptied": _PROJECT_AGAIN,
    "kept": (
        "erase an erased user or conversation again (mnemon erase); otherwise, the trigger of a sweep was "
        "lost, and the next clear or forget of the user removes the content"
    ),
    "stray": _PROJECT_AGAIN,
    "beyond_log": "the log does not belong to these rows: restore the newest backup (mnemon restore)",
    "undecided": "propose it again, with a new id",
    "decided_twice": "if its proposal became two facts of the user, forget one of them (mnemon forget)",
    "no_point": _INDEX_AGAIN,
    "left_point": _INDEX_AGAIN,
}
"""Next step for each kind of fault."""


@dataclass(frozen=True, slots=True)
class AuditFault:
    """An event, row or point that is not accounted for.

    Attributes:
        seq: log position of the event; for a row or a point, the position that it names.
        consumer: the consumer that is responsible; `persist-sweep` for content that a sweep removes.
        where: table or collection; `DEAD` for a missing dead letter, `content` for content of any table.
        detail: further details, such as an id, a reason or the columns that differ; may be empty.
    """

    kind: FaultKind
    seq: int
    consumer: str
    where: str
    detail: str = ""


@dataclass(slots=True)
class AuditFaults:
    """Events, rows and points that an audit found not accounted for.

    Attributes:
        counts: number of faults of each kind.
        named: the first `MAX_NAMED` faults of each kind.
    """

    counts: Counter[FaultKind] = field(default_factory=Counter)
    named: list[AuditFault] = field(default_factory=list)
    _by_consumer: Counter[str] = field(default_factory=Counter)

    def add(self, kind: FaultKind, seq: int, consumer: str, where: str, detail: str = "") -> None:
        """Count a fault, and add the fault to `named` if it is among the first `MAX_NAMED` of its kind."""
        self.counts[kind] += 1
        self._by_consumer[consumer] += 1
        if self.counts[kind] <= MAX_NAMED:
            self.named.append(AuditFault(kind, seq, consumer, where, detail))

    @property
    def total(self) -> int:
        """Number of faults of all kinds."""
        return sum(self.counts.values())

    def count_consumer_faults(self, *consumers: str) -> int:
        """Return the number of faults of the named consumers."""
        return sum(self._by_consumer[each] for each in consumers)

    def list_sequences(self) -> list[int]:
        """Return the lowest log positions of the named faults, each once, at most `MAX_NAMED`."""
        return sorted({each.seq for each in self.named})[:MAX_NAMED]


@dataclass(slots=True)
class PersistOutcomes:
    """Outcomes of the events that `persist` has handled.

    Attributes:
        events: events read.
        applied: events that have a correct row.
        ignored: events that have no row on purpose, by reason.
        dead: events that have a dead letter, by reason.
        removed: applied events whose content was removed.
        waiting: events whose content a pending sweep removes.
    """

    events: int = 0
    applied: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    removed: int = 0
    waiting: int = 0


@dataclass(slots=True)
class DedupeOutcomes:
    """Counts of the proposals and decisions of `dedupe`.

    Attributes:
        position: log position up to which proposals are counted.
        proposals: number of proposals up to `position`.
        outcomes: number of decisions up to `Audit.up_to`, by name of event.
    """

    position: int = 0
    proposals: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class CollectionAudit:
    """Counts of one collection of points.

    Attributes:
        shown: messages, facts, documents or summaries that must have points.
        dead: points of events that have a dead letter and no row: searches do not return them.
        waiting: items that lack points, and points without an item, of users for whom a sweep of `index` is
            pending.
    """

    points: int = 0
    shown: int = 0
    dead: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Durable:
    """Counts of a durable, all 0 if the durable does not exist.

    Attributes:
        pending: messages that are not delivered yet.
        in_work: messages that are delivered and not acknowledged.
        redelivered: messages of `in_work` that were delivered more than once.
    """

    stream: str
    name: str
    pending: int
    in_work: int
    redelivered: int


@dataclass(frozen=True, slots=True)
class Audit:
    """Result of an audit.

    Attributes:
        up_to: log position up to which every event must be handled.
        beyond: number of positions after `up_to` at the end of the audit, which the audit did not examine.
        every: N if the audit compared the content of about one in N users; 0 if it compared no content.
        seconds: duration of the audit.
        extract: counts of batches and of answered windows, from the rows of events up to `up_to`.
        vectors: counts of points, by collection; None if the audit had no access to points.
        letters: number of dead letters, by consumer and reason.
        faults: events, rows and points that are not accounted for.
    """

    up_to: int
    beyond: int
    every: int
    seconds: float
    persist: PersistOutcomes
    dedupe: DedupeOutcomes
    extract: BatchCounts
    vectors: Mapping[Collection, CollectionAudit] | None
    letters: Mapping[tuple[str, str], int]
    durables: Sequence[Durable]
    faults: AuditFaults


class PositionSet:
    """Set of positions from 0 to `limit`, as one bit each: a hundred million positions take 12 MB."""

    def __init__(self, limit: int) -> None:
        self._bits = bytearray(limit // 8 + 1)
        self._count = 0

    def add(self, position: int) -> None:
        bit = 1 << (position & 7)
        self._count += not self._bits[position >> 3] & bit
        self._bits[position >> 3] |= bit

    def __contains__(self, position: int) -> bool:
        return bool(self._bits[position >> 3] & 1 << (position & 7))

    def __len__(self) -> int:
        return self._count
