"""State of a user's log: the facts that are kept, and the decision on each proposal."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from mnemon_consumers.dedupe.decide import DecisionEvent, Proposal
from mnemon_consumers.dedupe.user_facts import UserFacts, find_proposal_id
from mnemon_contracts.base import Event
from mnemon_contracts.events.fact_comparison import FactMergedV1
from mnemon_contracts.events.memory import (
    FactConfirmedV1,
    FactProposedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
)
from mnemon_contracts.identity import scope_event_id
from mnemon_contracts.registry import EVENTS
from mnemon_contracts.subjects import Owner, build_memory_subject
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.telemetry import tracing

REDECIDE: Final = "redecide"
"""Value of `by` of an event that redecide has published."""

Logged = tuple[Event, str, datetime]
"""An event about a user's facts, with its id and its time."""

FactWriteEvent = FactSavedV1 | FactUpdatedV1 | FactMergedV1
"""An event that writes the content of a fact."""

AcceptedEvent = FactSavedV1 | FactUpdatedV1 | FactConfirmedV1
"""A decision that accepts a proposal and names its fact."""

ProposalDecision = AcceptedEvent | FactRejectedV1
"""A decision that accepts or rejects a proposal."""


@dataclass(slots=True)
class LogState:
    """State of a user after all of the user's events in the log.

    A fact is identified by its origin, the proposal that made it, which is the same under all settings. The
    fact's id may differ, because ids are numbered in the order of saving.

    Attributes:
        versions: maps each fact id to the id of the event that wrote the fact last.
        proposals: proposals by event id.
        decisions: maps each proposal to its newest decision and the event id of that decision.
        origins: maps each fact id to its origin, for ended facts too. If the proposal is gone, or is the
            origin of another kept fact, the origin is `=` and the fact id.
        own: origins of facts that stay separate facts: facts changed by the verb `update`, facts merged
            after a comparison, and facts whose origin is `=` and their id.
    """

    facts: UserFacts = field(default_factory=UserFacts)
    versions: dict[str, str] = field(default_factory=dict)
    proposals: dict[str, Proposal] = field(default_factory=dict)
    decisions: dict[str, tuple[ProposalDecision, str]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)

    def find_origin(self, proposal_id: str) -> str:
        """Return the origin of the fact to which an open proposal (`is_open`) belongs."""
        decision, _ = self.decisions[proposal_id]
        assert decision.fact_id is not None, "a rejected proposal is not open"
        return self.origins[decision.fact_id]

    def is_open(self, proposal_id: str) -> bool:
        """Return whether a proposal may be decided again: it was accepted, and its fact has not ended."""
        decision, _ = self.decisions.get(proposal_id, (None, ""))
        return isinstance(decision, AcceptedEvent) and self._is_kept(decision.fact_id)

    def apply(self, event: Event, event_id: str, at: datetime) -> None:
        """Apply the next event of the log."""
        if isinstance(event, FactProposedV1):
            self.proposals.setdefault(event_id, Proposal(event_id, at, event))
            return
        proposal_id = find_proposal_id(event)
        if isinstance(event, ProposalDecision) and proposal_id is not None:
            self.decisions[proposal_id] = event, event_id
        if isinstance(event, FactSavedV1):
            self._assign_origin(event)
        self.facts.apply(event, event_id, at)
        if isinstance(event, FactWriteEvent) and self._is_kept(event.fact_id):
            self.versions[event.fact_id] = event_id
            if is_direct_update(event) or isinstance(event, FactMergedV1):
                self.own.add(self.origins[event.fact_id])

    def _is_kept(self, fact_id: str) -> bool:
        return fact_id in self.facts.facts

    def _assign_origin(self, event: FactSavedV1) -> None:
        if event.fact_id in self.origins:
            return
        origin = event.decision.proposal_id
        kept = (self.origins[fact_id] for fact_id in self.facts.facts)
        if origin not in self.proposals or origin in kept:
            origin = f"={event.fact_id}"
            self.own.add(origin)
        self.origins[event.fact_id] = origin


def fold_log(log: Iterable[Logged]) -> LogState:
    """Fold events into the state of a user's log. Of several copies of an event, the first counts.

    `log` has the events about the user's facts, in log order.
    """
    found, known = LogState(), set[str]()
    for event, event_id, at in log:
        if event_id not in known:
            known.add(event_id)
            found.apply(event, event_id, at)
    return found


def is_direct_update(event: Event) -> bool:
    """Return whether an event is a change of a fact by the verb `update`, without a proposal."""
    return isinstance(event, FactUpdatedV1) and event.decision is None and event.by is None


def parse_event(name: str, body: dict[str, Any]) -> Event:
    """Read an event from the body that the projections keep."""
    return EVENTS[name].latest.model_validate_json(json.dumps(body))


def build_log_event(owner: Owner, decided: DecisionEvent) -> LogEvent:
    """Convert a decision into an event for the log, in the current trace."""
    name, event = decided
    event_id = scope_event_id(*owner, str(event.id))
    return LogEvent(
        build_memory_subject(*owner, name), event.encode_body(), event_id, tracing.get_traceparent()
    )
