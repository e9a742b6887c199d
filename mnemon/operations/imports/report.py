"""Report of an import, for a person and for a program."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from mnemon.operations.imports.records import ImportDoubt, IncomingEvent, LeftOutRecord, RefusedRecord

MAX_FIRST: Final = 10
"""Maximum number of users, of refusals and of doubts that the report names."""


@dataclass(slots=True)
class ImportReport:
    """Counts of an import, with the first refusals and doubts.

    Attributes:
        keep: receives each refused record.
        events: number of events that can be imported, by name of event.
        users: number of users with such events; a user counts again after events of another user.
        first_users: the first of these users, at most `MAX_FIRST`, each with the tenant that the source
            names; None if it names none.
        has_more_users: True if there are users beyond `first_users`.
        published: events that are new in the log.
        already_there: events that the log had already, before the import or by an earlier record of it.
        left_out: number of records that are not part of a memory, by reason.
        refused: number of records that cannot be imported.
        judged_by_default_policy: number of proposed facts that the default policy accepted or rejected; an
            import asks the policy of their tenant.
        first: the first refused records, at most `MAX_FIRST`.
        doubts: number of remarks that a person should check, see `ImportDoubt`.
        first_doubts: the first doubts, at most `MAX_FIRST`.
        last_seq: highest log position of the events that were sent; 0 if none was sent.
    """

    keep: Callable[[RefusedRecord], None] | None = None
    events: Counter[str] = field(default_factory=Counter)
    users: int = 0
    first_users: list[tuple[str | None, str]] = field(default_factory=list)
    has_more_users: bool = False
    published: int = 0
    already_there: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    judged_by_default_policy: int = 0
    first: list[RefusedRecord] = field(default_factory=list)
    doubts: int = 0
    first_doubts: list[ImportDoubt] = field(default_factory=list)
    last_seq: int = 0
    _user: tuple[str | None, str] | None = None

    def count_event(self, incoming: IncomingEvent, name: str) -> None:
        """Count an event that can be imported."""
        self.events[name] += 1
        user = incoming.tenant, incoming.user
        # Sources list users one after another; a user who appears again later is counted again.
        if user == self._user:
            return
        self.users += 1
        self._user = user
        if user not in self.first_users:
            if len(self.first_users) < MAX_FIRST:
                self.first_users.append(user)
            else:
                self.has_more_users = True

    def count_refused(self, refused: RefusedRecord) -> None:
        """Count a record that cannot be imported."""
        self.refused += 1
        if len(self.first) < MAX_FIRST:
            self.first.append(refused)
        if self.keep:
            self.keep(refused)

    def count_doubt(self, doubt: ImportDoubt) -> None:
        """Count a remark that a person should check."""
        self.doubts += 1
        if len(self.first_doubts) < MAX_FIRST:
            self.first_doubts.append(doubt)

    def count_left_out(self, left: LeftOutRecord) -> None:
        """Count a record that is not part of a memory."""
        self.left_out[left.reason] += 1

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values, for a program."""
        return {
            "events": dict(self.events),
            "users": self.users,
            "first_users": [{"tenant": tenant, "user": user} for tenant, user in self.first_users],
            "published": self.published,
            "already_there": self.already_there,
            "left": dict(self.left_out),
            "refused": self.refused,
            "judged_by_default_policy": self.judged_by_default_policy,
            "first_refusals": [
                {"place": each.place, "field": each.field, "reason": each.reason} for each in self.first
            ],
            "doubts": self.doubts,
            "first_doubts": [{"place": each.place, "reason": each.reason} for each in self.first_doubts],
            "last_seq": self.last_seq or None,
        }


def format_refused(refused: RefusedRecord) -> str:
    """Return a refused record and the reason as a line of JSON."""
    about = {"place": refused.place, "field": refused.field, "reason": refused.reason}
    return json.dumps({**about, "record": refused.source}, ensure_ascii=False, default=str)
