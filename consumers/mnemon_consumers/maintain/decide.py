"""Decision on facts that have expired and on users above their limits. No I/O, no clock."""

from collections.abc import Iterable
from datetime import datetime

from mnemon_contracts.events.memory import FactExpiredV1
from mnemon_contracts.identity import derive_id
from mnemon_contracts.settings.groups import FactLimits
from mnemon_contracts.subjects import Owner, build_memory_subject
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.database.projections.sweep_candidates import FactCounts


def build_expiries(owner: Owner, facts: Iterable[FactRecord], now: datetime) -> list[LogEvent]:
    """Return an event for each fact that has expired by `now`; repeated calls return the same event ids."""
    return [
        LogEvent(
            build_memory_subject(*owner, "fact.expired"),
            FactExpiredV1(fact_id=fact.id, expires_at=fact.expires_at).encode_body(),
            derive_id(*owner, "expired", fact.event_id),
        )
        for fact in facts
        if fact.expires_at is not None and fact.expires_at <= now
    ]


def find_smallest_limit(limits: FactLimits) -> int:
    """Return the smallest limit on facts; a user with at most that many facts exceeds no limit."""
    return min(limits.per_user, limits.profile, limits.working)


def exceeds_limits(counts: FactCounts, limits: FactLimits) -> bool:
    """Return whether a user has more facts than one of the limits allows."""
    return (
        counts.facts > limits.per_user or counts.profile > limits.profile or counts.working > limits.working
    )
