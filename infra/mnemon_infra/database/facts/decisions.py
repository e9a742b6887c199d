"""What became of proposals and of batches, over all users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from sqlalchemy import Text, bindparam, select

from mnemon_contracts.events.memory import Lineage
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.audit.orphans import patient
from mnemon_infra.database.engine import Database, Lookup
from mnemon_infra.database.projections.event_order import owned
from mnemon_infra.database.projections.item_states import named
from mnemon_infra.database.tables import memory_events

DECISIONS: Final = ("fact.saved", "fact.updated", "fact.confirmed", "fact.rejected")


class Proposed(NamedTuple):
    """A proposal: its log position and id, the id that its decision must have, and where it was learned."""

    seq: int
    owner: Owner
    event_id: str
    decision_id: str
    lineage: Lineage


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """Batches of requests, counted once for each user who is in one.

    Attributes:
        intended: how many there are.
        open: those without an end.
        oldest: for how long the oldest of them has been open.
        ended: those with one, by its name.
        answered: stretches of conversations that were read, by outcome.
    """

    intended: int
    open: int
    oldest: timedelta | None
    ended: Mapping[str, int]
    answered: Mapping[str, int]


_THIS: Final = memory_events.c.proposal_id == bindparam("proposal", type_=Text)
_BY_ID = Lookup(
    select(memory_events.c.seq).where(
        owned(memory_events), _THIS, memory_events.c.event_id == bindparam("decision", type_=Text)
    )
)
_BY_PROPOSAL = Lookup(
    select(memory_events.c.seq).where(owned(memory_events), named(DECISIONS), _THIS).limit(1)
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
        SELECT intended.at, NOT EXISTS (
            SELECT FROM memory_events AS ended
            WHERE ended.item = intended.item AND ended.tenant = intended.tenant
              AND ended.user_id = intended.user_id AND ended.event IN ('batch.completed', 'batch.failed')
        ) AS is_open
        FROM memory_events AS intended WHERE event = 'batch.intended' AND seq <= %(up_to)s
    ) AS intended
"""
_ENDS: Final = """
    SELECT event, count(*) FROM memory_events
    WHERE event IN ('batch.completed', 'batch.failed') AND seq <= %(up_to)s GROUP BY event
"""
_ANSWERED: Final = """
    SELECT body ->> 'outcome', count(*) FROM memory_events
    WHERE event = 'window.answered' AND seq <= %(up_to)s GROUP BY 1
"""


async def undecided(database: Database, proposals: Sequence[Proposed]) -> list[Proposed]:
    """Those of which no decision is projected.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    left = list(proposals)
    async with patient(database) as connection:
        for lookup in (_BY_ID, _BY_PROPOSAL):
            wanted = [
                {"of_tenant": each.owner[0], "of_user": each.owner[1]}
                | {"proposal": each.event_id, "decision": each.decision_id}
                for each in left
            ]
            answers = await lookup.rows(connection, wanted) if left else []
            left = [each for each, rows in zip(left, answers, strict=True) if not rows]
    return left


async def decisions(database: Database, up_to: int) -> tuple[Mapping[str, int], list[int]]:
    """Decisions up to a log position by outcome, and the positions of those that a proposal has too many.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    parameters = {"decisions": list(DECISIONS), "up_to": up_to}
    async with patient(database) as connection:
        outcomes = await (await connection.execute(_OUTCOMES, parameters)).fetchall()
        twice = await (await connection.execute(_TWICE, parameters)).fetchall()
    return dict(outcomes), [seq for seq, _ in twice]


async def batches(database: Database, up_to: int) -> BatchCounts:
    """What became of batches up to a log position.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    parameters = {"up_to": up_to}
    async with patient(database) as connection:
        counted = await (await connection.execute(_BATCHES, parameters)).fetchone()
        ends = await (await connection.execute(_ENDS, parameters)).fetchall()
        answered = await (await connection.execute(_ANSWERED, parameters)).fetchall()
    assert counted is not None, "a count is a row"
    intended, is_open, oldest = counted
    return BatchCounts(intended, is_open, oldest, dict(ends), dict(answered))
