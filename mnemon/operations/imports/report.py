"""What came of an import, for a person and for a program."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from mnemon.operations.imports.records import Doubt, Incoming, Left, Refused

FIRST: Final = 10
"""Refusals and doubts that are shown, at most of each."""


@dataclass(slots=True)
class ImportReport:
    """Counts, and the first refusals.

    Attributes:
        keep: is given each refused record.
        events: what was found that can come in, by event.
        users: how many have some of it.
        published: how much of it is new in the log.
        already_there: how much was there before.
        left: records that are no memory, by reason.
        refused: how many cannot come in.
        first: some of them.
        doubts: how often something was guessed, or looks like a mistake.
        first_doubts: some of them.
        last_seq: log position of the last of it; 0 when nothing came in.
    """

    keep: Callable[[Refused], None] | None = None
    events: Counter[str] = field(default_factory=Counter)
    users: int = 0
    published: int = 0
    already_there: int = 0
    left: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    first: list[Refused] = field(default_factory=list)
    doubts: int = 0
    first_doubts: list[Doubt] = field(default_factory=list)
    last_seq: int = 0
    _user: tuple[str | None, str] | None = None

    def comes(self, incoming: Incoming, name: str) -> None:
        """Something can come in."""
        self.events[name] += 1
        user = incoming.tenant, incoming.user
        # Sources have their users one after another; one that comes back is counted again.
        self.users += user != self._user
        self._user = user

    def refuse(self, refused: Refused) -> None:
        """Something cannot."""
        self.refused += 1
        if len(self.first) < FIRST:
            self.first.append(refused)
        if self.keep:
            self.keep(refused)

    def doubt(self, doubt: Doubt) -> None:
        """A person is to look at something."""
        self.doubts += 1
        if len(self.first_doubts) < FIRST:
            self.first_doubts.append(doubt)

    def leave(self, left: Left) -> None:
        """Something is no memory."""
        self.left[left.reason] += 1

    def figures(self) -> dict[str, Any]:
        """All of it, for a program."""
        return {
            "events": dict(self.events),
            "users": self.users,
            "published": self.published,
            "already_there": self.already_there,
            "left": dict(self.left),
            "refused": self.refused,
            "first_refusals": [
                {"place": each.place, "field": each.field, "reason": each.reason} for each in self.first
            ],
            "doubts": self.doubts,
            "first_doubts": [{"place": each.place, "reason": each.reason} for each in self.first_doubts],
            "last_seq": self.last_seq or None,
        }


def refused_line(refused: Refused) -> str:
    """A refused record as a line of JSON, with the reason beside it."""
    about = {"place": refused.place, "field": refused.field, "reason": refused.reason}
    return json.dumps({**about, "record": refused.source}, ensure_ascii=False, default=str)
