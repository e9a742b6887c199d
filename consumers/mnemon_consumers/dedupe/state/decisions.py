"""What a user's decisions amount to, folded in the order of the log."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from mnemon_contracts.base import Event
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
from mnemon_contracts.events.merging import FactComparedV1, FactMergedV1

PREFIXES: Final[dict[Tier, str]] = {"profile": "pf", "working": "wk", "archive": "ar"}

_SHORT_ID = re.compile(r"(pf|wk|ar)_(\d{3,18})")
_NOWHERE: Final = Lineage()


@dataclass(frozen=True, slots=True)
class KeptFact:
    """A fact that is kept.

    Attributes:
        saved_at: when it was first saved.
        changed_at: when it was last written, or said again.
        order: grows with every change of any of the user's facts. Unlike a time it is the same whether the
            fact was just decided or is read back from the log.
        lineage: where it was learned, said again and rewritten, as `joined` gives it.
        answer: the answer of a model that its words came in, with other facts perhaps.
    """

    id: str
    fact: Fact
    saved_at: datetime
    changed_at: datetime
    order: int
    lineage: Lineage = field(default=_NOWHERE, compare=False)
    answer: str | None = None

    def is_live(self, now: datetime) -> bool:
        """Whether its date has not passed."""
        return self.fact.expires_at is None or self.fact.expires_at > now


@dataclass(slots=True)
class UserFacts:
    """One user's facts.

    Attributes:
        facts: those that are kept, by id; one whose date has passed is among them until it is expired.
        decided: event ids of the proposals and comparisons that are decided.
    """

    facts: dict[str, KeptFact] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    _numbers: dict[str, int] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)
    _applied: set[str] = field(default_factory=set)

    def apply(self, event: Event, event_id: str, at: datetime) -> None:
        """Take an event into account; one that was applied before changes nothing, nor does one of no fact.

        What is forgotten, expired or evicted is so for good, whatever comes later.
        """
        if isinstance(event, FactComparedV1):
            self.decided.add(event_id)  # it changes no fact: the events that follow from it do
            return
        if event_id in self._applied:
            return
        self._applied.add(event_id)
        match event:
            case FactSavedV1():
                self.decided.add(event.decision.proposal_id)
                self._number(event.fact_id)
                if event.fact_id not in self.facts:
                    self._keep(event.fact_id, event.fact, at, event.lineage, event.lineage.answer)
            case FactUpdatedV1():
                if event.decision is not None:
                    self.decided.add(event.decision.proposal_id)
                self._number(event.fact_id)
                if event.fact_id in self.facts:
                    self._keep(event.fact_id, event.fact, at, event.lineage, event.lineage.answer)
            case FactMergedV1():
                self._number(event.fact_id)
                if event.fact_id in self.facts:
                    self._keep(event.fact_id, event.fact, at, event.lineage, event.lineage.answer)
            case FactConfirmedV1():
                self.decided.add(event.decision.proposal_id)
                if known := self.facts.get(event.fact_id):
                    self._keep(event.fact_id, known.fact, at, event.lineage, known.answer)
            case FactRejectedV1():
                self.decided.add(event.proposal_id)
            case FactForgottenV1() | FactExpiredV1() | FactEvictedV1():
                self._number(event.fact_id)
                self._gone.add(event.fact_id)
                self.facts.pop(event.fact_id, None)

    def has_applied(self, event_id: str) -> bool:
        """Whether an event was taken into account."""
        return event_id in self._applied

    def live(self, now: datetime) -> list[KeptFact]:
        """The facts whose date has not passed, in the order in which they were first saved."""
        return [known for known in self.facts.values() if known.is_live(now)]

    def live_fact(self, fact_id: str, now: datetime) -> KeptFact | None:
        """One of them, or None."""
        known = self.facts.get(fact_id)
        return known if known is not None and known.is_live(now) else None

    def next_id(self, tier: Tier) -> str:
        """The id of the next fact of a tier: one above the highest ever given."""
        prefix = PREFIXES[tier]
        return f"{prefix}_{self._numbers.get(prefix, 0) + 1:03d}"

    def _keep(self, fact_id: str, fact: Fact, at: datetime, lineage: Lineage, answer: str | None) -> None:
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
                lineage=joined(known.lineage, lineage),
                answer=answer,
            )
        )

    def _number(self, fact_id: str) -> None:
        if parts := _SHORT_ID.fullmatch(fact_id):
            prefix, number = parts[1], int(parts[2])
            self._numbers[prefix] = max(number, self._numbers.get(prefix, 0))


def joined(one: Lineage, other: Lineage) -> Lineage:
    """Join two lineages: all sources, and the conversation where all are of one.

    Something without sources was told to a tool, imported or changed by hand. Then there are none: with the
    sources of the other alone, both would be forgotten with the other's conversation.
    """
    if not one.sources or not other.sources:
        return _NOWHERE
    return Lineage(
        sources=tuple(sorted({*one.sources, *other.sources})),
        conversation=one.conversation if one.conversation == other.conversation else None,
    )


def fold(events: Iterable[tuple[Event, str, datetime]]) -> UserFacts:
    """What events amount to: each with its id and its time, in the order of the log."""
    facts = UserFacts()
    for event, event_id, at in events:
        facts.apply(event, event_id, at)
    return facts
