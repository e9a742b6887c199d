"""Which facts have had their time, and who has too many. No I/O, no clock."""

from collections.abc import Iterable
from datetime import datetime

from mnemon_contracts.events.memory import FactExpiredV1
from mnemon_contracts.identity import derived_id
from mnemon_contracts.settings.groups import FactLimits
from mnemon_contracts.subjects import Owner, memory_subject
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.database.projections.sweep_candidates import FactCounts


def expiries(owner: Owner, facts: Iterable[FactRecord], now: datetime) -> list[LogEvent]:
    """An event for each fact whose date has passed. Its id follows from the fact: twice is once."""
    return [
        LogEvent(
            memory_subject(*owner, "fact.expired"),
            FactExpiredV1(fact_id=fact.id, expires_at=fact.expires_at).body(),
            derived_id(*owner, "expired", fact.event_id),
        )
        for fact in facts
        if fact.expires_at is not None and fact.expires_at <= now
    ]


def smallest(limits: FactLimits) -> int:
    """Whoever has no more facts than that exceeds none of the limits."""
    return min(limits.per_user, limits.profile, limits.working)


def exceeds(counts: FactCounts, limits: FactLimits) -> bool:
    """Whether a user has more facts than allowed."""
    return (
        counts.facts > limits.per_user or counts.profile > limits.profile or counts.working > limits.working
    )
