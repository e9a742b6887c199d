"""Comparison of every event of the log with the row that `persist` must have written for it."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from mnemon.operations.audit.ledger import AuditFaults, PersistOutcomes, PositionSet
from mnemon_consumers.persist.decide import decide_outcome
from mnemon_contracts.subjects import parse_subject
from mnemon_infra.broker.erasure.scope import Erasures
from mnemon_infra.broker.outcomes import Ack, Dead
from mnemon_infra.database.audit.events import (
    RowDeviation,
    UserSample,
    compare_rows,
    is_erased,
)
from mnemon_infra.database.audit.removals import GoneSummary
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.users import load_erasures
from mnemon_infra.database.projections.rows import EventRow, MemoryRow, Row
from mnemon_infra.database.query_parts.item_states import SUMMARIES
from mnemon_infra.database.tables import conversation_erasures, erasures
from mnemon_infra.delivery import Delivery

_COPY: Final = "the event is a copy of an earlier event"
_ERASED: Final = "the event was erased"


class LogAudit:
    """Comparison of the events of the log with the rows, page by page.

    Args:
        database: the database with the rows.
        up_to: last log position to compare.
        dead: reasons of the dead letters of `persist`, by log position of the event.
        sample: users whose content is compared.
        faults: receives the faults.

    Attributes:
        outcomes: counts of the events by outcome.
        matched: log positions of the stored rows of the events, without rows of the table `erasures`.
        summaries: summaries without content that are not examined yet.
    """

    def __init__(
        self, database: Database, up_to: int, dead: Mapping[int, str], sample: UserSample, faults: AuditFaults
    ) -> None:
        self.outcomes = PersistOutcomes()
        self.matched = PositionSet(up_to)
        self.summaries: list[GoneSummary] = []
        self._database = database
        self._dead = dead
        self._sample = sample
        self._faults = faults

    async def audit_page(self, page: Sequence[Delivery]) -> None:
        """Compare each event of a page with the row that it must have; count outcomes and record faults.

        Raises:
            DatabaseUnavailable: the database cannot answer now.
        """
        self.outcomes.events += len(page)
        rows: list[Row] = []
        for delivery in page:
            row, outcome = decide_outcome(delivery)
            if row is not None:
                rows.append(row)
                continue
            match outcome:
                case Ack(reason):
                    self.outcomes.ignored[f"{parse_subject(delivery.subject).name}: {reason}"] += 1
                case Dead(reason, error):
                    self._count_dead(delivery.sequence, reason, error)
        said = {each.seq: each for each in await compare_rows(self._database, rows, self._sample)}
        lacking = [row for row in rows if (deviation := said.get(row.seq)) and _has_no_row(row, deviation)]
        of_conversations = [row for row in rows if _get_table(row) == conversation_erasures.name]
        owners = [row.key[:2] for row in (*lacking, *of_conversations)]
        erased_by_owner = await self._database.run_query(load_erasures(owners))
        for row in rows:
            erased = erased_by_owner.get(row.key[:2], Erasures())
            if deviation := said.get(row.seq):
                self._judge_deviation(row, deviation, erased)
            else:
                self._count_applied(row, erased)

    def _count_dead(self, seq: int, reason: str, error: str) -> None:
        if letter := self._dead.get(seq):
            self.outcomes.dead[letter] += 1
        else:
            self._faults.add("no_letter", seq, "persist", "DEAD", f"{reason}: {error}")

    def _count_applied(self, row: Row, erased: Erasures) -> None:
        self.outcomes.applied += 1
        if _get_table(row) != erasures.name:  # that table has one row for each user
            self.matched.add(row.seq)
        for seq in _list_erased_starts(row, erased.below):
            self.matched.add(seq)

    def _judge_deviation(self, row: Row, deviation: RowDeviation, erased: Erasures) -> None:
        """Count the outcome of an event whose row is missing, differs or has no content, or add a fault."""
        if deviation.stored is None and row.seq in self._dead:
            self.outcomes.dead[self._dead[row.seq]] += 1
        elif _has_no_row(row, deviation) and is_erased(row, erased):
            self.outcomes.ignored[_ERASED] += 1
        elif deviation.stored is None:
            self._faults.add("absent", row.seq, "persist", _get_table(row))
        elif deviation.stored > row.seq:
            later = f"its row is that of a later copy, at position {deviation.stored}"
            self._faults.add("absent", row.seq, "persist", _get_table(row), later)
        elif deviation.stored < row.seq:
            self.outcomes.ignored[_COPY] += 1
        elif deviation.differs:
            self.matched.add(row.seq)
            self._faults.add("differs", row.seq, "persist", _get_table(row), ", ".join(deviation.differs))
        else:
            self._count_applied(row, erased)
            self.outcomes.removed += deviation.is_gone
            if isinstance(row, MemoryRow) and row.event in SUMMARIES:
                self.summaries.append(_parse_summary(row))


def _has_no_row(row: Row, deviation: RowDeviation) -> bool:
    """Return whether the event has no row, or only the row of a later copy."""
    return deviation.stored is None or deviation.stored > row.seq


def _get_table(row: Row) -> str:
    if isinstance(row, EventRow):
        return row.table
    return "memory_events" if isinstance(row, MemoryRow) else "messages"


def _list_erased_starts(row: Row, below: int) -> set[int]:
    """Return the positions of the rows of `starts` that the erasure of a conversation writes.

    These are the beginnings of the conversation's spans, and the position of its last start that discarded
    earlier messages, from the position `below` of an erasure of the user on. For any other row, return an
    empty set.
    """
    if not isinstance(row, EventRow) or row.table != conversation_erasures.name:
        return set()
    begins = {int(each) for each in re.findall(r"\[(\d+),", row.values["spans"])}
    discarded = {row.values["discarded"]} - {None}
    return {each for each in begins | discarded if each >= below}


def _parse_summary(row: MemoryRow) -> GoneSummary:
    values = json.loads(row.values)
    return GoneSummary(row.key[:2], row.seq, values["conversation"], values["body"]["from_seq"])
