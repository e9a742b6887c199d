"""Counts of decisions and batches over all users, and proposals without a decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, LiteralString, NamedTuple

from sqlalchemy import select

from mnemon_contracts.events.memory import Lineage
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.audit.row_places import open_long_read
from mnemon_infra.database.engine import Connection, Database, Lookup, make_parameter
from mnemon_infra.database.query_parts.event_order import is_owned
from mnemon_infra.database.query_parts.item_states import has_name
from mnemon_infra.database.tables import memory_events

DECISIONS: Final = ("fact.saved", "fact.updated", "fact.confirmed", "fact.rejected")


class ProposalRecord(NamedTuple):
    """A proposal: its log position, user, id and lineage, and the id that `dedupe` gives its decision."""

    seq: int
    owner: Owner
    event_id: str
    decision_id: str
    lineage: Lineage


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """Counts of batches: a batch counts once for each of its users.

    Attributes:
        intended: number of all batches.
        open: number of batches that have neither completed nor failed.
        oldest: age of the oldest open batch; None if no batch is open.
        ended: number of events that end a batch, by event name: `batch.completed` or `batch.failed`.
        answered: number of `window.answered` events, by outcome; a window that was reopened may have several.
    """

    intended: int
    open: int
    oldest: timedelta | None
    ended: Mapping[str, int]
    answered: Mapping[str, int]


_THIS: Final = memory_events.c.proposal_id == make_parameter("proposal", str)
_BY_ID = Lookup(
    select(memory_events.c.seq).where(
        is_owned(memory_events), _THIS, memory_events.c.event_id == make_parameter("decision", str)
    )
)
_BY_PROPOSAL = Lookup(
    select(memory_events.c.seq).where(is_owned(memory_events), has_name(DECISIONS), _THIS).limit(1)
)

_OUTCOMES: Final = """
    SELECT event, count(*) FROM memory_events
    WHERE proposal_id IS NOT NULL AND event = ANY(%(decisions)s) AND seq <= %(up_to)s GROUP BY event
"""
_TWICE: Final = """
    SELECT max(seq), count(*) FROM memory_events
    WHERE proposal_id IS NOT NULL AND event = ANY(%(decisions)s) AND seq <= %(up_to)s
    GROUP BY tenant, user_id, proposal_id HAVING count(*) > 1 ORDER BY 1
"""
_BATCHES: Final = """
    SELECT count(*), count(*) FILTER (WHERE is_open), now() - min(at) FILTER (WHERE is_open)
    FROM (
        SELECT min(intended.at) AS at, NOT EXISTS (
            SELECT FROM memory_events AS ended
            WHERE ended.item = intended.item AND ended.tenant = intended.tenant
              AND ended.user_id = intended.user_id AND ended.event IN ('batch.completed', 'batch.failed')
        ) AS is_open
        FROM memory_events AS intended WHERE event = 'batch.intended' AND seq <= %(up_to)s
        GROUP BY tenant, user_id, item
    ) AS batches
"""
_ENDS: Final = """
    SELECT event, count(*) FROM memory_events
    WHERE event IN ('batch.completed', 'batch.failed') AND seq <= %(up_to)s GROUP BY event
"""
_ANSWERED: Final = """
    SELECT body ->> 'outcome', count(*) FROM memory_events
    WHERE event = 'window.answered' AND seq <= %(up_to)s GROUP BY 1
"""


async def find_undecided_proposals(
    database: Database, proposals: Sequence[ProposalRecord]
) -> list[ProposalRecord]:
    """Return the proposals for which the projections have no decision."""
    left = list(proposals)
    async with open_long_read(database) as connection:
        for lookup in (_BY_ID, _BY_PROPOSAL):
            wanted = [
                {"of_tenant": each.owner[0], "of_user": each.owner[1]}
                | {"proposal": each.event_id, "decision": each.decision_id}
                for each in left
            ]
            answers = await lookup.fetch_each(connection, wanted) if left else []
            left = [each for each, rows in zip(left, answers, strict=True) if not rows]
    return left


async def count_decisions(database: Database, up_to: int) -> tuple[Mapping[str, int], list[int]]:
    """Count decisions by outcome, and list the positions of surplus decisions.

    Only events up to the log position `up_to` count.

    Returns:
        The number of decisions by event name, and the position of the last decision on each proposal that has
        several.
    """
    parameters = {"decisions": list(DECISIONS), "up_to": up_to}
    async with open_long_read(database) as connection:
        outcomes = await _fetch_all(connection, _OUTCOMES, parameters)
        twice = await _fetch_all(connection, _TWICE, parameters)
    return dict(outcomes), [seq for seq, _ in twice]


async def count_batches(database: Database, up_to: int) -> BatchCounts:
    """Count batches and `window.answered` events up to a log position."""
    parameters = {"up_to": up_to}
    async with open_long_read(database) as connection:
        [[intended, is_open, oldest]] = await _fetch_all(connection, _BATCHES, parameters)
        ends = await _fetch_all(connection, _ENDS, parameters)
        answered = await _fetch_all(connection, _ANSWERED, parameters)
    return BatchCounts(intended, is_open, oldest, dict(ends), dict(answered))


async def _fetch_all(
    connection: Connection, sql: LiteralString, parameters: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    return await (await connection.execute(sql, parameters)).fetchall()
