"""Plan of redecide: the facts that a user would have under other settings. No I/O, no clock.

The plan decides on the proposals again, in the order of their first decisions, each against the facts that
would have existed by then. The plan decides again only which facts are the same. A rejected proposal stays
rejected. A fact that was changed by the verb `update`, or merged after a model's comparison, keeps this
change and stays a separate fact. A fact that has ended stays ended, with everything that had been merged into
it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import numpy as np

from mnemon_consumers.dedupe.classification import classify_proposal
from mnemon_consumers.dedupe.comparison import Likeness, NearestFact
from mnemon_consumers.dedupe.decide import (
    CandidateFact,
    DecisionEvent,
    Proposal,
    examine_proposal,
    save_candidate,
    settle_candidate,
)
from mnemon_consumers.dedupe.state.log import (
    REDECIDE,
    AcceptedEvent,
    FactWriteEvent,
    Logged,
    LogState,
)
from mnemon_consumers.dedupe.user_facts import KeptFact, UserFacts, find_proposal_id
from mnemon_consumers.domain.policy.wording import join_lines
from mnemon_contracts.base import Event
from mnemon_contracts.events.fact_comparison import FactMergedV1
from mnemon_contracts.events.memory import (
    Decision,
    FactConfirmedV1,
    FactForgottenV1,
    FactProposedV1,
    FactSavedV1,
    FactUpdatedV1,
)
from mnemon_contracts.settings.groups import FactLimits, Policy, SettingsV1
from mnemon_infra.models.embedding import Dense

MOST_FACTS: Final = 100_000
"""Maximum number of a user's facts while decisions are taken again. The corrections then apply the tenant's
limits."""

NEAREST: Final = 10
"""Maximum number of facts near in meaning to compare, as in the first decisions."""

_LENIENT_POLICY: Final = Policy(
    min_length=1, max_length=10_000, refuse_questions=False, refuse_commands=False, refuse_secrets=False
)
"""The most lenient policy: current settings must not reject a fact that was kept before."""


@dataclass(frozen=True, slots=True)
class FactVectors:
    """Vectors of facts by text, and the thresholds of the model that made them."""

    likeness: Likeness
    vectors: Mapping[str, Dense]

    def find_nearest(self, text: str, facts: Sequence[KeptFact]) -> list[NearestFact]:
        """Return the `NEAREST` facts that are nearest in meaning to a text, the nearest first."""
        if not facts:
            return []
        similarities = np.stack([self.vectors[each.fact.text] for each in facts]) @ self.vectors[text]
        places = np.argsort(-similarities, kind="stable")[:NEAREST].tolist()
        return [NearestFact(facts[place].id, float(similarities[place])) for place in places]


@dataclass(slots=True)
class RedecidedFacts:
    """The facts that a user would have if the proposals were decided again; see `redecide_proposals`.

    Facts, and events about them, are identified by their origins instead of their ids; see `LogState`.

    Attributes:
        decisions: maps each redecided proposal to its new decision.
        writers: maps each fact to the event that would have written it last.
        successors: maps each replaced fact to the fact that replaced it.
    """

    facts: UserFacts = field(default_factory=UserFacts)
    decisions: dict[str, AcceptedEvent] = field(default_factory=dict)
    writers: dict[str, FactWriteEvent] = field(default_factory=dict)
    successors: dict[str, str] = field(default_factory=dict)

    def find_origin(self, proposal_id: str) -> str:
        """Return the origin of the fact that a proposal would belong to."""
        origin = self.decisions[proposal_id].fact_id
        while origin in self.successors:
            origin = self.successors[origin]
        return origin


def collect_texts(log: Iterable[Logged], standing: LogState) -> set[str]:
    """Return the texts that `redecide_proposals` may compare: those of open proposals and of kept facts."""
    found = set[str]()
    for event, event_id, _ in log:
        match event:
            case FactProposedV1() if standing.is_open(event_id):
                found.add(join_lines(event.text))
            case FactSavedV1() | FactUpdatedV1() | FactMergedV1() if event.fact_id in standing.facts.facts:
                found.add(event.fact.text)
    return found


def redecide_proposals(
    log: Iterable[Logged], standing: LogState, settings: SettingsV1, meanings: FactVectors
) -> RedecidedFacts:
    """Decide again on the open proposals of a log, see `LogState.is_open`.

    A fact in `LogState.own` stays a separate fact. A decision that gives the same fact the same words again
    keeps the other content of the first decision.

    Args:
        log: the events about the user's facts, in log order.
        standing: the state that these events lead to.
        settings: the settings to decide with. `_LENIENT_POLICY` replaces their policy. Of the limits, only
            the number of days that a working fact is kept matters.
        meanings: vectors of all texts that `collect_texts` returns.

    Raises:
        ValueError: this version cannot decide a proposal, or would reject one that was accepted.
    """
    limits = FactLimits(
        per_user=MOST_FACTS, profile=MOST_FACTS, working=MOST_FACTS, working_days=settings.limits.working_days
    )
    lenient = settings.model_copy(update={"policy": _LENIENT_POLICY, "limits": limits})
    replay = _DecisionReplay(standing, lenient, meanings)
    for event, event_id, at in log:
        replay.replay_event(event, event_id, at)
    return replay.redecided


def replace_fact_ids(decision: Decision, ids: Mapping[str, str]) -> Decision:
    """Return a decision with new ids of the facts in `nearest` and `undecided`.

    `ids` maps the present ids to the new ones; a fact without a new id is left out.
    """
    undecided = tuple(ids[each] for each in decision.undecided if each in ids)
    return decision.model_copy(update={"nearest": ids.get(decision.nearest or ""), "undecided": undecided})


class _DecisionReplay:
    """Replay of a log, with the facts as the log decided them and as the given settings would decide them."""

    def __init__(self, standing: LogState, settings: SettingsV1, meanings: FactVectors) -> None:
        self.redecided = RedecidedFacts()
        self._actual = UserFacts()
        self._state = standing
        self._settings = settings
        self._meanings = meanings
        self._replayed: set[str] = set()

    def replay_event(self, event: Event, event_id: str, at: datetime) -> None:
        if event_id in self._replayed:
            return
        self._replayed.add(event_id)
        if isinstance(event, FactMergedV1):
            self._keep_event(event, event_id, at)
        elif isinstance(event, AcceptedEvent) and event.by != REDECIDE:
            self._replay_decision(event, event_id, at)
        self._actual.apply(event, event_id, at)

    def _replay_decision(self, event: AcceptedEvent, event_id: str, at: datetime) -> None:
        proposal = self._state.proposals.get(find_proposal_id(event) or "")
        if proposal is None:
            self._keep_event(event, event_id, at)
        elif proposal.id not in self.redecided.decisions and self._state.is_open(proposal.id):
            self._record_decision(proposal, self._redecide_proposal(proposal, event))

    def _keep_event(self, event: AcceptedEvent | FactMergedV1, event_id: str, at: datetime) -> None:
        """Apply an event of a kept fact without a new decision: a merge, or one without a known proposal."""
        if event.fact_id in self._state.facts.facts:
            origins = self._state.origins
            kept: dict[str, object] = {"fact_id": origins[event.fact_id]}
            if not isinstance(event, FactMergedV1) and event.decision is not None:
                kept["decision"] = replace_fact_ids(event.decision, origins)
            self._apply_event(event.model_copy(update=kept), event_id, at)

    def _record_decision(self, proposal: Proposal, decision: AcceptedEvent) -> None:
        self.redecided.decisions[proposal.id] = decision
        self._apply_event(decision, str(decision.id), proposal.at)

    def _apply_event(self, event: AcceptedEvent | FactMergedV1, event_id: str, at: datetime) -> None:
        self.redecided.facts.apply(event, event_id, at)
        if isinstance(event, FactWriteEvent) and event.fact_id in self.redecided.facts.facts:
            self.redecided.writers[event.fact_id] = event

    def _redecide_proposal(self, proposal: Proposal, event: AcceptedEvent) -> AcceptedEvent:
        *before, (_, decision) = (
            self._save_separate_fact(proposal)
            if proposal.id in self._state.own
            else self._decide_by_likeness(proposal)
        )
        if not isinstance(decision, AcceptedEvent):
            raise ValueError(
                f"the rules of this version would reject the accepted proposal {proposal.id}, so the user's "
                "facts stay unchanged; report this as a bug"
            )
        for _, other in before:
            if isinstance(other, FactForgottenV1):
                self.redecided.facts.apply(other, str(other.id), proposal.at)
                self.redecided.successors[other.fact_id] = decision.fact_id
        if isinstance(decision, FactSavedV1):
            decision = decision.model_copy(update={"fact_id": proposal.id})
        return decision if isinstance(decision, FactConfirmedV1) else self._keep_content(decision, event)

    def _save_separate_fact(self, proposal: Proposal) -> list[DecisionEvent]:
        fact = classify_proposal(proposal.event, proposal.at, self._settings)
        by = Decision(proposal_id=proposal.id)
        return save_candidate(CandidateFact(proposal, fact), by, self.redecided.facts, self._settings)

    def _decide_by_likeness(self, proposal: Proposal) -> list[DecisionEvent]:
        decided = self._decide_with_replaced_fact(proposal, self._find_replaced_fact(proposal))
        forgotten = {each.fact_id for _, each in decided if isinstance(each, FactForgottenV1)}
        if forgotten & self._state.own:
            return self._decide_with_replaced_fact(proposal, None)
        return decided

    def _decide_with_replaced_fact(self, proposal: Proposal, replaced: str | None) -> list[DecisionEvent]:
        known, at = self.redecided.facts, proposal.at
        proposal = replace(proposal, event=proposal.event.model_copy(update={"supersedes": replaced}))
        match examine_proposal(proposal, known, self._settings):
            case CandidateFact() as candidate:
                nearest = self._meanings.find_nearest(candidate.fact.text, known.list_live(at))
                return settle_candidate(candidate, known, nearest, self._settings, self._meanings.likeness)
            case decided:
                return decided

    def _find_replaced_fact(self, proposal: Proposal) -> str | None:
        """Return the origin, under the other settings, of the fact that a proposal names to replace.

        Returns:
            None if the proposal names no fact to replace, or the named fact was not live at that time.
        """
        fact_id = proposal.event.supersedes
        if fact_id is None or self._actual.find_live(fact_id, proposal.at) is None:
            return None
        origin = self._state.origins[fact_id]
        return self.redecided.find_origin(origin) if origin in self.redecided.decisions else origin

    def _keep_content(
        self, decision: FactSavedV1 | FactUpdatedV1, event: AcceptedEvent
    ) -> FactSavedV1 | FactUpdatedV1:
        """Return the new decision, with the first decision's content if both give one fact the same words.

        An update keeps the first content only if both updates also change the same former fact. So rules of
        later versions and other limits do not change the fact.
        """
        if isinstance(event, FactConfirmedV1) or type(event) is not type(decision):
            return decision
        is_same_fact = self._state.origins.get(event.fact_id) == decision.fact_id
        if not is_same_fact or event.fact.text != decision.fact.text:
            return decision
        if isinstance(decision, FactUpdatedV1):
            former = self._actual.facts.get(event.fact_id)
            if former is None or former.fact != decision.former:
                return decision
        return decision.model_copy(update={"fact": event.fact})
