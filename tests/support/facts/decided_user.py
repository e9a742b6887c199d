"""A user whose facts are decided and redecided in memory, without a server."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from mnemon_consumers.dedupe.comparison import Likeness
from mnemon_consumers.dedupe.decide import Proposal, decide_proposal
from mnemon_consumers.dedupe.redecide.corrections import Correction, build_corrections
from mnemon_consumers.dedupe.redecide.plan import FactVectors, collect_texts, redecide_proposals
from mnemon_consumers.dedupe.state.log import Logged, fold_log
from mnemon_consumers.dedupe.user_facts import UserFacts
from mnemon_contracts.base import Event
from mnemon_contracts.events.memory import FactProposedV1, FactUpdatedV1, Lineage
from mnemon_contracts.settings.groups import Dedupe, FactLimits, SettingsV1
from mnemon_infra.models.embedding import Dense, Thresholds

OWNER = "acme", "u1"
BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)
THRESHOLDS = Thresholds(update=0.8, duplicate=0.95, relevant=0.5)
LIKENESS = Likeness("given", THRESHOLDS)


def by(update: float, duplicate: float = 1, limits: FactLimits | None = None, **said: Any) -> SettingsV1:
    dedupe = Dedupe(update_threshold=update, duplicate_threshold=duplicate, **said)
    return SettingsV1(dedupe=dedupe, limits=limits or FactLimits())


class DecidedUser:
    """Log of a user, and the facts that result from it; each text has a vector of a given direction.

    Attributes:
        log: all events.
        facts: the facts after these events.
        now: time of the last event.
        vectors: vectors by text.
    """

    def __init__(self) -> None:
        self.log: list[Logged] = []
        self.facts = UserFacts()
        self.now = BEGIN
        self.vectors: dict[str, Dense] = {}
        self.meanings = FactVectors(LIKENESS, self.vectors)
        self._proposed: list[Proposal] = []

    @property
    def contents(self) -> list[str]:
        """Live facts as JSON, without their ids, sorted."""
        return sorted(known.fact.model_dump_json() for known in self.facts.list_live(self.now))

    @property
    def said(self) -> dict[str, str]:
        return {known.id: known.fact.text for known in self.facts.facts.values()}

    def publish(self, event: Event, event_id: str | None = None) -> None:
        self.now += timedelta(minutes=1)
        logged = event, event_id or str(event.id or f"event {len(self.log)}"), self.now
        self.log.append(logged)
        self.facts.apply(*logged)

    def propose(self, text: str, degrees: float, **said: Any) -> None:
        """Propose a fact whose vector has the direction `degrees`.

        The similarity of two facts is the cosine of the angle between their vectors.
        """
        angle = np.radians(degrees)
        self.vectors.setdefault(text, np.array([np.cos(angle), np.sin(angle)], dtype=np.float32))
        lineage = Lineage(sources=(len(self.log) + 1,), extractor="offline")
        event = FactProposedV1(text=text, lineage=lineage, **said)
        event_id = f"p{len(self.log)}"
        self.publish(event, event_id)
        self._proposed.append(Proposal(event_id, self.now, event))

    def decide(self, by: SettingsV1) -> None:
        """Decide all proposals, as `dedupe` does with the settings `by`."""
        for proposal in self._proposed:
            known = self.facts
            words = " ".join(proposal.event.text.split())
            nearest = self.meanings.find_nearest(words, known.list_live(proposal.at))
            for _, event in decide_proposal(proposal, known, nearest, by, LIKENESS):
                self.publish(event)
        self._proposed.clear()

    def say(self, text: str, degrees: float, settings: SettingsV1, **said: Any) -> None:
        self.propose(text, degrees, **said)
        self.decide(settings)

    def rewrite(self, fact_id: str, text: str) -> None:
        """Change the text of a fact, as the verb `update` does."""
        former = self.facts.facts[fact_id].fact
        self.vectors.setdefault(text, np.array([0, 1], dtype=np.float32))
        fact = former.model_copy(update={"text": text})
        self.publish(FactUpdatedV1(fact_id=fact_id, fact=fact, former=former))

    def redecide(self, settings: SettingsV1) -> list[Correction]:
        """Redecide all proposals with these settings, publish the events, and return the corrections."""
        found = fold_log(self.log)
        vectors = {text: self.vectors[text] for text in collect_texts(self.log, found)}
        redecided = redecide_proposals(self.log, found, settings, FactVectors(LIKENESS, vectors))
        needed = build_corrections(OWNER, found, redecided, settings.limits, self.now)
        for _, event in needed.events:
            self.publish(event)
        assert self.facts.facts.keys() == found.facts.facts.keys()
        return needed.corrections
