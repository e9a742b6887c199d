"""What a process knows of one user: the facts, and what was proposed and is not decided yet."""

from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Final

from consumers.dedupe.decide import Proposal
from consumers.dedupe.state import UserFacts
from contracts.base import Event
from contracts.memory import FactSavedV1, FactUpdatedV1
from infra.erased import Erasures
from infra.vectors.port import Dense

TURN: Final = 50
"""Proposals of a user that are decided on at a time: then others have their turn."""

TURN_SECONDS: Final = 2.0
"""The same in seconds: while much is asked, each proposal takes long."""


@dataclass(slots=True)
class Known:
    """What a process knows of one user.

    Attributes:
        facts: the user's facts, as of `position`.
        versions: the event that made each fact what it is.
        position: the log position up to which the user's events are taken into account.
        erased: what is gone, and counts for nothing.
        findable: every fact has its point.
        waiting: proposals up to `position` that were not decided on, by event id, in the order of the log;
            each with its log position.
        meanings: vectors of what is next, by text: who embeds is asked once for it.
    """

    facts: UserFacts = field(default_factory=UserFacts)
    versions: dict[str, str] = field(default_factory=dict)
    position: int = 0
    erased: Erasures = field(default_factory=Erasures)
    findable: bool = False
    waiting: dict[str, tuple[int, Proposal]] = field(default_factory=dict)
    meanings: dict[str, Dense] = field(default_factory=dict)

    @property
    def next(self) -> int | None:
        """The log position of the first proposal that is not decided; None when there is none."""
        while self.waiting:
            event_id, (seq, _) = next(iter(self.waiting.items()))
            if event_id not in self.facts.decided:
                return seq
            del self.waiting[event_id]
        return None

    def turn(self) -> list[Proposal]:
        """The proposals that are next."""
        undecided = (each for each in self.waiting.items() if each[0] not in self.facts.decided)
        return [proposal for _, (_, proposal) in islice(undecided, TURN)]

    def apply(self, event: Event, event_id: str, at: datetime) -> None:
        self.facts.apply(event, event_id, at)
        if isinstance(event, FactSavedV1 | FactUpdatedV1) and self.versions.get(event.fact_id) != event_id:
            self.versions[event.fact_id] = event_id
            self.findable = False
