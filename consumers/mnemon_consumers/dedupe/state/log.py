"""What stands in a user's log: the facts that are kept, and where each proposal has come to."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from mnemon_consumers.dedupe.decide import Proposal
from mnemon_consumers.dedupe.state.decisions import UserFacts
from mnemon_contracts.base import Event
from mnemon_contracts.events.memory import (
    FactConfirmedV1,
    FactProposedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
)
from mnemon_contracts.events.merging import FactMergedV1

REDECIDE: Final = "redecide"
"""As `by` of an event: it was decided anew."""

Logged = tuple[Event, str, datetime]
"""An event about a user's facts, its id and its time."""

FactWriteEvent = FactSavedV1 | FactUpdatedV1 | FactMergedV1
"""What makes a fact what it is."""

AcceptedEvent = FactSavedV1 | FactUpdatedV1 | FactConfirmedV1
"""What says to which fact a proposal has come."""

ProposalDecision = AcceptedEvent | FactRejectedV1
"""What says what has become of a proposal."""


@dataclass(slots=True)
class Standing:
    """A user's log as a whole.

    Whatever is decided, a fact is known by the proposal that made it, its origin: an id says only which
    number came next.

    Attributes:
        facts: those that are kept.
        versions: the event that made each of them what it is.
        proposals: by event id.
        decisions: of each proposal the newest decision, with its event id.
        origins: by fact id, of those that have ended too. Where the proposal is gone, it is the id itself.
        own: origins of facts that stay facts of their own: those changed by hand, merged after a comparison,
            or without a proposal.
    """

    facts: UserFacts = field(default_factory=UserFacts)
    versions: dict[str, str] = field(default_factory=dict)
    proposals: dict[str, Proposal] = field(default_factory=dict)
    decisions: dict[str, tuple[ProposalDecision, str]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)

    def place(self, proposal_id: str) -> str:
        """The origin of the fact that a proposal has come to, which `is_open`."""
        decision, _ = self.decisions[proposal_id]
        assert decision.fact_id is not None, "a proposal that is refused is not open"
        return self.origins[decision.fact_id]

    def is_open(self, proposal_id: str) -> bool:
        """Whether a proposal may be decided anew: what a rule refused, and what has ended, stays so."""
        decision, _ = self.decisions.get(proposal_id, (None, ""))
        return isinstance(decision, AcceptedEvent) and self._is_kept(decision.fact_id)

    def apply(self, event: Event, event_id: str, at: datetime) -> None:
        """Take the next event of the log into account."""
        if isinstance(event, FactProposedV1):
            self.proposals.setdefault(event_id, Proposal(event_id, at, event))
            return
        proposal_id = proposal_of(event)
        if isinstance(event, ProposalDecision) and proposal_id is not None:
            self.decisions[proposal_id] = event, event_id
        if isinstance(event, FactSavedV1):
            self._name(event)
        self.facts.apply(event, event_id, at)
        if isinstance(event, FactWriteEvent) and self._is_kept(event.fact_id):
            self.versions[event.fact_id] = event_id
            if is_by_hand(event) or isinstance(event, FactMergedV1):
                self.own.add(self.origins[event.fact_id])

    def _is_kept(self, fact_id: str) -> bool:
        return fact_id in self.facts.facts

    def _name(self, event: FactSavedV1) -> None:
        if event.fact_id in self.origins:
            return
        origin = event.decision.proposal_id
        kept = (self.origins[fact_id] for fact_id in self.facts.facts)
        if origin not in self.proposals or origin in kept:
            origin = f"={event.fact_id}"
            self.own.add(origin)
        self.origins[event.fact_id] = origin


def standing(log: Iterable[Logged]) -> Standing:
    """What a log amounts to, in its order; of copies of an event the first counts."""
    found, known = Standing(), set[str]()
    for event, event_id, at in log:
        if event_id not in known:
            known.add(event_id)
            found.apply(event, event_id, at)
    return found


def proposal_of(event: Event) -> str | None:
    """The proposal that an event decides on."""
    match event:
        case FactRejectedV1():
            return event.proposal_id
        case FactSavedV1() | FactConfirmedV1():
            return event.decision.proposal_id
        case FactUpdatedV1():
            return event.decision.proposal_id if event.decision else None
    return None


def is_by_hand(event: Event) -> bool:
    """Whether a fact was changed by a command."""
    return isinstance(event, FactUpdatedV1) and event.decision is None and event.by is None
