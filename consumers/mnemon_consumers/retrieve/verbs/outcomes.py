"""Outcomes of a user's events: applied, rejected or waiting. No I/O, no clock."""

from collections.abc import Sequence
from typing import Final

from mnemon_contracts.streams import LOG
from mnemon_contracts.verbs.ask import EventOutcome, RejectedEvent
from mnemon_infra.broker.dead_letters.listing import Letter

MOST_REJECTED: Final = 10
"""Maximum number of rejected events of a reply."""

_BEFORE_THE_EVENT: Final = 3
"""Number of tokens of a subject before the event: namespace, tenant and user."""


def list_rejected_events(letters: Sequence[Letter]) -> tuple[RejectedEvent, ...]:
    """Return the events of the `MOST_REJECTED` newest letters, newest first; `letters` are in log order."""
    return tuple(_build_rejected_event(letter) for letter in reversed(letters[-MOST_REJECTED:]))


def find_outcome(seq: int, letters: Sequence[Letter], applied: int) -> EventOutcome:
    """Return the outcome of the event at position `seq`: applied, rejected or waiting.

    Every event up to the position `applied` is handled. `letters` are the dead letters of the user's rejected
    events.
    """
    for letter in letters:
        if (letter.stream, letter.sequence) == (LOG, seq):
            return EventOutcome(seq=seq, outcome="rejected", rejected=_build_rejected_event(letter))
    return EventOutcome(seq=seq, outcome="applied" if seq <= applied else "waiting")


def _build_rejected_event(letter: Letter) -> RejectedEvent:
    event = ".".join(letter.subject.split(".")[_BEFORE_THE_EVENT:])
    return RejectedEvent(
        seq=letter.sequence, event=event, reason=letter.reason, error=letter.error, at=letter.at
    )
