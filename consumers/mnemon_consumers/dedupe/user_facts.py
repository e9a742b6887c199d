"""Facts of a user, folded from the decisions in the order of the log."""

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from mnemon_contracts.base import Event
from mnemon_contracts.events.fact_comparison import FactComparedV1, FactMergedV1
from mnemon_contracts.events.memory import (
    Fact,
    FactConfirmedV1,
    FactEvictedV1,
    FactExpiredV1,
    FactForgottenV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
    Lineage,
    Tier,
)

PREFIXES: Final[dict[Tier, str]] = {"profile": "pf", "working": "wk", "archive": "ar"}

_SHORT_ID = re.compile(r"(pf|wk|ar)_(\d{3,18})")
_NO_LINEAGE: Final = Lineage()


@dataclass(frozen=True, slots=True)
class KeptFact:
    """A fact that was saved, and not forgotten, expired or evicted since.

    Attributes:
        saved_at: the time at which the fact was first saved.
        changed_at: the time at which the fact was last written or confirmed.
        order: a number that is higher the later the fact was last written or confirmed. The order of facts is
            the same whether they were just decided or read from the log; their times may differ.
        lineage: the sources of the fact, of its confirmations and of its rewrites; see `join_lineages`.
        answer: id of the model's answer that contained the fact's current words, perhaps with other facts;
            None if no answer of a model contained the words, or if a merge wrote them.
    """

    id: str
    fact: Fact
    saved_at: datetime
    changed_at: datetime
    order: int
    lineage: Lineage = field(default=_NO_LINEAGE, compare=False)
    answer: str | None = None

    def is_live(self, now: datetime) -> bool:
        """Return whether the fact has no end, or its end has not passed."""
        return self.fact.expires_at is None or self.fact.expires_at > now


@dataclass(slots=True)
class UserFacts:
    """Facts of one user, and the proposals and comparisons that are decided.

    Attributes:
        facts: the facts that are kept, by id. A fact whose end has passed stays until an event ends it.
        decided: event ids of the proposals and comparisons that are decided.
    """

    facts: dict[str, KeptFact] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    _numbers: dict[str, int] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)
    _applied: set[str] = field(default_factory=set)

    def apply(self, event: Event, event_id: str, at: datetime) -> None:
        """Apply an event. An event that was applied before, or that is not about facts, changes nothing.

        No later event restores a fact that is forgotten, expired or evicted.
        """
        if isinstance(event, FactComparedV1):
            self.decided.add(event_id)  # a comparison changes no fact; the events that it leads to do
            return
        if event_id in self._applied:
            return
        self._applied.add(event_id)
        if (proposal_id := find_proposal_id(event)) is not None:
            self.decided.add(proposal_id)
        match event:
            case FactSavedV1() | FactUpdatedV1() | FactMergedV1():
                self._record_number(event.fact_id)
                # A save never changes a fact that is kept, and the other events change only such a fact.
                if isinstance(event, FactSavedV1) != (event.fact_id in self.facts):
                    self._write_fact(event.fact_id, event.fact, at, event.lineage, event.lineage.answer)
            case FactConfirmedV1():
                if known := self.facts.get(event.fact_id):
                    self._write_fact(event.fact_id, known.fact, at, event.lineage, known.answer)
            case FactForgottenV1() | FactExpiredV1() | FactEvictedV1():
                self._record_number(event.fact_id)
                self._gone.add(event.fact_id)
                self.facts.pop(event.fact_id, None)

    def has_applied(self, event_id: str) -> bool:
        """Return whether an event was applied."""
        return event_id in self._applied

    def list_live(self, now: datetime) -> list[KeptFact]:
        """Return the facts whose end has not passed, in the order in which they were first saved."""
        return [known for known in self.facts.values() if known.is_live(now)]

    def find_live(self, fact_id: str, now: datetime) -> KeptFact | None:
        """Return a fact whose end has not passed; None if no such fact has this id."""
        known = self.facts.get(fact_id)
        return known if known is not None and known.is_live(now) else None

    def find_next_id(self, tier: Tier) -> str:
        """Return the id of the next fact of a tier: one above the highest id that was ever assigned."""
        prefix = PREFIXES[tier]
        return f"{prefix}_{self._numbers.get(prefix, 0) + 1:03d}"

    def _write_fact(
        self, fact_id: str, fact: Fact, at: datetime, lineage: Lineage, answer: str | None
    ) -> None:
        if fact_id in self._gone:
            return
        order = len(self._applied)
        known = self.facts.get(fact_id)
        self.facts[fact_id] = (
            KeptFact(fact_id, fact, at, at, order, lineage, answer)
            if known is None
            else replace(
                known,
                fact=fact,
                changed_at=max(at, known.changed_at),
                order=order,
                lineage=join_lineages(known.lineage, lineage),
                answer=answer,
            )
        )

    def _record_number(self, fact_id: str) -> None:
        if parts := _SHORT_ID.fullmatch(fact_id):
            prefix, number = parts[1], int(parts[2])
            self._numbers[prefix] = max(number, self._numbers.get(prefix, 0))


def find_proposal_id(event: Event) -> str | None:
    """Return the id of the proposal that an event decides on; None for any other event."""
    match event:
        case FactRejectedV1():
            return event.proposal_id
        case FactSavedV1() | FactConfirmedV1():
            return event.decision.proposal_id
        case FactUpdatedV1():
            return event.decision.proposal_id if event.decision else None
    return None


def join_lineages(one: Lineage, other: Lineage) -> Lineage:
    """Join two lineages: all sources, and the conversation if both name the same conversation.

    If one fact has no sources, because it was saved by a tool, imported or changed by the verb `update`, the
    result has none either. With only the sources of the other fact, the joined fact would be forgotten with
    the conversation of that fact.
    """
    if not one.sources or not other.sources:
        return _NO_LINEAGE
    return Lineage(
        sources=tuple(sorted({*one.sources, *other.sources})),
        conversation=one.conversation if one.conversation == other.conversation else None,
    )
