"""State of one user in a process: the facts, and the proposals and comparisons that are not decided yet."""

from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Final

from mnemon_consumers.dedupe.decide import Proposal
from mnemon_consumers.dedupe.merge import Comparison
from mnemon_consumers.dedupe.user_facts import UserFacts
from mnemon_contracts.base import Event
from mnemon_contracts.events.fact_comparison import FactMergedV1
from mnemon_contracts.events.memory import (
    FactEvictedV1,
    FactExpiredV1,
    FactForgottenV1,
    FactSavedV1,
    FactUpdatedV1,
)
from mnemon_infra.broker.erasure.scope import Erasures
from mnemon_infra.models.embedding import Dense

Undecided = Proposal | Comparison
"""An event on which a decision is due."""

TURN: Final = 50
"""Maximum number of proposals and comparisons in one turn of a user; then other users have their turns."""

TURN_SECONDS: Final = 2.0
"""Seconds after which a turn takes no further decision. The limit matters while bots send many requests,
because decisions wait for requests."""


@dataclass(slots=True)
class UserState:
    """State that a process keeps of one user.

    Attributes:
        facts: the user's facts, as of `position`.
        versions: maps each fact to the event that wrote it last.
        position: the log position up to which the user's events are applied.
        erased: the erasures of the user; erased events are ignored.
        findable: whether the vector store is known to have the current point of every fact.
        waiting: proposals and comparisons up to `position`, by event id, in the order of the log; each with
            its log position. Those in `facts.decided` no longer wait.
        meanings: vectors by text, kept for the next turn, so that the embedder gets each text once.
    """

    facts: UserFacts = field(default_factory=UserFacts)
    versions: dict[str, str] = field(default_factory=dict)
    position: int = 0
    erased: Erasures = field(default_factory=Erasures)
    findable: bool = False
    waiting: dict[str, tuple[int, Undecided]] = field(default_factory=dict)
    meanings: dict[str, Dense] = field(default_factory=dict)
    _worded_by: dict[str, list[str]] = field(default_factory=dict)
    """Maps each fact to the events that gave the fact, or a fact merged into it, the fact's current words."""

    @property
    def wording(self) -> dict[str, str]:
        """Map the id of each event to the id of the fact that has the words of that event now."""
        return {version: fact_id for fact_id, versions in self._worded_by.items() for version in versions}

    @property
    def next_position(self) -> int | None:
        """Return the log position of the first event without a decision; None if all are decided."""
        while self.waiting:
            event_id, (seq, _) = next(iter(self.waiting.items()))
            if event_id not in self.facts.decided:
                return seq
            del self.waiting[event_id]
        return None

    def list_turn(self) -> list[Undecided]:
        """Return the proposals and comparisons of the next turn."""
        undecided = (each for each in self.waiting.items() if each[0] not in self.facts.decided)
        return [each for _, (_, each) in islice(undecided, TURN)]

    def apply(self, event: Event, event_id: str, at: datetime) -> None:
        """Apply an event to the facts; an event that was applied before changes nothing."""
        if self.facts.has_applied(event_id):
            return
        self._record_wording(event, event_id)
        self.facts.apply(event, event_id, at)
        written = FactSavedV1 | FactUpdatedV1 | FactMergedV1
        if isinstance(event, written) and self.versions.get(event.fact_id) != event_id:
            self.versions[event.fact_id] = event_id
            self.findable = False

    def _record_wording(self, event: Event, event_id: str) -> None:
        match event:
            case FactSavedV1() if event.fact_id in self.facts.facts:
                pass  # a fact that exists is not saved again
            case FactSavedV1() | FactUpdatedV1() | FactMergedV1():
                former = [event.fact_id, *([event.merged_id] if isinstance(event, FactMergedV1) else [])]
                kept = [
                    version
                    for fact_id in former
                    if (known := self.facts.facts.get(fact_id)) and known.fact.text == event.fact.text
                    for version in self._worded_by.get(fact_id, ())
                ]
                self._worded_by[event.fact_id] = list(dict.fromkeys([*kept, event_id]))
            case FactForgottenV1() | FactExpiredV1() | FactEvictedV1():
                self._worded_by.pop(event.fact_id, None)
