"""Corrections that turn a user's facts into the facts that other settings would keep. No I/O, no clock.

Corrections are events, because the log holds the decisions: the next rebuild would undo a change that only
the projections have. The id of an event is derived from the state that it changes. So the same correction
made again has the same id and changes nothing. After another change of the fact, the id differs.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from mnemon_consumers.dedupe.decide import DecisionEvent, evict_excess
from mnemon_consumers.dedupe.redecide.plan import RedecidedFacts, replace_fact_ids
from mnemon_consumers.dedupe.state.log import REDECIDE, FactWriteEvent, LogState
from mnemon_contracts.base import Event
from mnemon_contracts.events.fact_comparison import FactMergedV1
from mnemon_contracts.events.memory import (
    Decision,
    FactConfirmedV1,
    FactEvictedV1,
    FactForgottenV1,
    FactSavedV1,
    FactUpdatedV1,
)
from mnemon_contracts.identity import derive_id
from mnemon_contracts.settings.groups import FactLimits
from mnemon_contracts.subjects import Owner

CorrectionKind = Literal["merged", "apart", "rewritten", "evicted"]


class Correction(NamedTuple):
    """A correction of one fact.

    Attributes:
        kind: `merged`: the fact becomes part of another fact; `apart`: the fact becomes a separate fact;
            `rewritten`: the fact gets other content, such as another text, tier or expiry; `evicted`: the
            limits leave no room for the fact.
        text: the text of the fact before the correction; for `apart`, the text that it will have.
        other: the id of the other fact, of which this fact becomes a part, or was a part.
        becomes: the new text of the fact, or of `other` if the fact is merged.
    """

    kind: CorrectionKind
    fact_id: str
    text: str
    other: str | None = None
    becomes: str | None = None


@dataclass(slots=True)
class CorrectionPlan:
    """The corrections of a user's facts, and the events to append to the log, in order, to make them."""

    events: list[DecisionEvent] = field(default_factory=list)
    corrections: list[Correction] = field(default_factory=list)


def build_corrections(
    owner: Owner, standing: LogState, redecided: RedecidedFacts, limits: FactLimits, now: datetime
) -> CorrectionPlan:
    """Return the corrections and their events, and apply the events to the facts of `standing`.

    Args:
        owner: the user.
        standing: the state of the user's log.
        redecided: the facts that the user would have under other settings.
        limits: the tenant's limits of facts.
        now: the current time by the clock of the log; facts that expire at or before it are not restored.
    """
    return _CorrectionBuilder(owner, standing, redecided, now).build_corrections(limits)


class _CorrectionBuilder:
    def __init__(self, owner: Owner, standing: LogState, redecided: RedecidedFacts, now: datetime) -> None:
        self._plan = CorrectionPlan()
        self._owner = owner
        self._state = standing
        self._redecided = redecided
        self._now = now
        self._ids = {standing.origins[fact_id]: fact_id for fact_id in standing.facts.facts}
        """Maps each origin to the id of its fact."""

    def build_corrections(self, limits: FactLimits) -> CorrectionPlan:
        kept = dict(self._ids)
        for origin, known in self._redecided.facts.facts.items():
            # A fact that would have ended before now is not restored, and no proposal moves to it.
            if origin not in kept and known.is_live(self._now):
                self._save_fact(origin)
        for proposal_id in self._redecided.decisions:
            place = self._redecided.find_origin(proposal_id)
            is_new = proposal_id in self._ids and proposal_id not in kept
            if not is_new and place in self._ids and place != self._state.find_origin(proposal_id):
                self._move_proposal(proposal_id, place)
        for origin, fact_id in kept.items():
            if origin in self._redecided.facts.facts:
                self._update_fact(origin, fact_id)
            elif origin in self._redecided.decisions and self._redecided.find_origin(origin) in self._ids:
                self._forget_fact(origin, fact_id)
        if self._plan.events:
            self._evict_excess_facts(limits)
        return self._plan

    def _save_fact(self, origin: str) -> None:
        known, decision = self._redecided.facts.facts[origin], self._redecided.decisions[origin].decision
        assert decision is not None, "a proposal was decided"
        former, event_id = self._state.decisions[origin]
        fact_id = self._state.facts.find_next_id(known.fact.tier)
        event = FactSavedV1(
            id=self._derive_id(event_id),
            by=REDECIDE,
            fact_id=fact_id,
            fact=known.fact,
            decision=replace_fact_ids(decision, self._ids),
            lineage=self._state.proposals[origin].event.lineage,
        )
        self._ids[origin] = fact_id
        self._add_event("fact.saved", event)
        self._plan.corrections.append(Correction("apart", fact_id, known.fact.text, former.fact_id))

    def _move_proposal(self, proposal_id: str, place: str) -> None:
        _, event_id = self._state.decisions[proposal_id]
        decision = self._redecided.decisions[proposal_id].decision
        assert decision is not None, "a proposal was decided"
        confirmed = FactConfirmedV1(
            id=self._derive_id(event_id),
            by=REDECIDE,
            fact_id=self._ids[place],
            decision=replace_fact_ids(decision, self._ids),
            lineage=self._state.proposals[proposal_id].event.lineage,
        )
        self._add_event("fact.confirmed", confirmed)

    def _update_fact(self, origin: str, fact_id: str) -> None:
        fact, former = self._redecided.facts.facts[origin].fact, self._state.facts.facts[fact_id].fact
        if fact == former:
            return
        writer = self._redecided.writers[origin]
        event = FactUpdatedV1(
            id=self._derive_id(self._state.versions[fact_id], fact.model_dump_json()),
            by=REDECIDE,
            fact_id=fact_id,
            fact=fact,
            former=former,
            decision=self._find_decision(writer),
            lineage=writer.lineage,
        )
        self._add_event("fact.updated", event)
        self._plan.corrections.append(Correction("rewritten", fact_id, former.text, becomes=fact.text))

    def _forget_fact(self, origin: str, fact_id: str) -> None:
        text = self._state.facts.facts[fact_id].fact.text
        event = FactForgottenV1(
            id=self._derive_id("forgotten", fact_id), by=REDECIDE, fact_id=fact_id, reason="superseded"
        )
        self._add_event("fact.forgotten", event)
        place = self._redecided.find_origin(origin)
        into = self._redecided.facts.facts[place].fact.text
        self._plan.corrections.append(Correction("merged", fact_id, text, self._ids[place], into))

    def _evict_excess_facts(self, limits: FactLimits) -> None:
        facts = dict(self._state.facts.facts)
        for name, event in evict_excess(self._state.facts, limits, self._now):
            assert isinstance(event, FactEvictedV1)
            self._add_event(name, event)
            self._plan.corrections.append(
                Correction("evicted", event.fact_id, facts[event.fact_id].fact.text)
            )

    def _add_event(self, name: str, event: Event) -> None:
        self._state.facts.apply(event, str(event.id), self._now)
        self._plan.events.append((name, event))

    def _find_decision(self, writer: FactWriteEvent) -> Decision | None:
        """Return the decision that gave a fact its content.

        Returns:
            None if the verb `update`, or a merge after a model's comparison, wrote the content.
        """
        if isinstance(writer, FactMergedV1) or writer.decision is None:
            return None
        return replace_fact_ids(writer.decision, self._ids)

    def _derive_id(self, *of: str) -> str:
        return derive_id(*self._owner, REDECIDE, *of)
