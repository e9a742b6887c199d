"""Evictions after a limit was lowered. No I/O."""

from datetime import datetime

from mnemon_consumers.dedupe.decide import DecisionEvent
from mnemon_consumers.dedupe.eviction import find_excess
from mnemon_consumers.dedupe.state.decisions import UserFacts
from mnemon_contracts.events.memory import FactEvictedV1
from mnemon_contracts.settings.groups import FactLimits


def evict_excess(known: UserFacts, limits: FactLimits, at: datetime) -> list[DecisionEvent]:
    """Return the evictions after which the user's facts exceed no limit."""
    return [
        (
            "fact.evicted",
            FactEvictedV1(
                id=f"trim:{one.known.id}:{one.limit}",
                fact_id=one.known.id,
                tier=one.known.fact.tier,
                limit=one.limit,
            ),
        )
        for one in find_excess(known.live(at), limits)
    ]
