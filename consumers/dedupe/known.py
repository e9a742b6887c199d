"""What a process knows of one user: the facts, and what was proposed and is not decided yet."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from consumers.dedupe.decide import Proposal
from consumers.dedupe.state import UserFacts
from contracts.base import Event
from contracts.memory import FactSavedV1, FactUpdatedV1
from infra.erased import Erasures

TURN: Final = 100
"""Proposals of a user that are decided on at a time: then others have their turn."""


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
    """

    facts: UserFacts = field(default_factory=UserFacts)
    versions: dict[str, str] = field(default_factory=dict)
    position: int = 0
    erased: Erasures = field(default_factory=Erasures)
    findable: bool = False
    waiting: dict[str, tuple[int, Proposal]] = field(default_factory=dict)

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
        """The proposals that are to be decided now."""
        taken: list[Proposal] = []
        while len(taken) < TURN and self.next is not None:
            event_id = next(iter(self.waiting))
            taken.append(self.waiting.pop(event_id)[1])
        return taken

    def apply(self, event: Event, event_id: str, at: datetime) -> None:
        self.facts.apply(event, event_id, at)
        if isinstance(event, FactSavedV1 | FactUpdatedV1) and self.versions.get(event.fact_id) != event_id:
            self.versions[event.fact_id] = event_id
            self.findable = False
