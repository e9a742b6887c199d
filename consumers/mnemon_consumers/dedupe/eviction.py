"""Selection of the facts to evict when a fact needs room, or a user has more facts than the limits allow."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from heapq import nsmallest
from typing import Any, Final, NamedTuple

from mnemon_consumers.dedupe.user_facts import KeptFact
from mnemon_contracts.events.memory import Fact, Tier
from mnemon_contracts.settings.groups import FactLimits

HIGH: Final = 8
"""Minimum value of high importance. A fact of high importance makes room only for another such fact."""

LOW: Final = 3
"""Maximum value of low importance."""

_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_TIERS: Final[tuple[Tier, ...]] = ("archive", "working", "profile")


class Eviction(NamedTuple):
    """A fact to evict, and the limit that was reached: the limit of its tier or of the user."""

    known: KeptFact
    limit: int


def choose_evictions(
    fact: Fact, others: Collection[KeptFact], limits: FactLimits, *, joins: bool
) -> list[Eviction] | None:
    """Return the facts to evict so that a fact fits within the limits of its tier and of the user.

    The result is None if a fact of high importance would have to be evicted for a fact of lower than high
    importance.

    Args:
        fact: the fact that needs room.
        others: the user's other live facts.
        limits: the limits of the tiers and of the user.
        joins: whether the fact adds to the number of facts; a rewritten fact only moves between tiers.
    """
    within = {tier: limit for tier, limit in _list_tier_limits(limits).items() if tier == fact.tier}
    leaving = _select_evictions(others, within, limits.per_user if joins else None, reserved=1)
    if fact.importance < HIGH and any(one.known.fact.importance >= HIGH for one in leaving):
        return None
    return leaving


def find_excess_facts(facts: Collection[KeptFact], limits: FactLimits) -> list[Eviction]:
    """Return the facts to evict from a user who has more facts than the limits allow."""
    return _select_evictions(facts, _list_tier_limits(limits), limits.per_user, reserved=0)


def _list_tier_limits(limits: FactLimits) -> dict[Tier, int]:
    return {"profile": limits.profile, "working": limits.working}


def _select_evictions(
    facts: Collection[KeptFact], by_tier: Mapping[Tier, int], per_user: int | None, *, reserved: int
) -> list[Eviction]:
    """Return the facts to evict so that each limit leaves `reserved` places free.

    From a full tier, facts of low importance are evicted first, then those of normal and of high
    importance. Within a level of importance, the fact that expires first is evicted first in the tier
    `working`; in other tiers, the fact that was neither written nor confirmed for the longest time. For the
    user's limit, facts of the tier `archive` are evicted first, then `working`, then `profile`, within each
    tier in the same order. Facts of high importance are evicted only after all other facts.
    """
    leaving: list[Eviction] = []
    for tier, limit in by_tier.items():
        within = [known for known in facts if known.fact.tier == tier]
        excess = nsmallest(len(within) + reserved - limit, within, key=_rank_in_tier)
        leaving += (Eviction(known, limit) for known in excess)
    if per_user is not None:
        gone = {one.known.id for one in leaving}
        remaining = [known for known in facts if known.id not in gone]
        excess = nsmallest(len(remaining) + reserved - per_user, remaining, key=_rank_for_user)
        leaving += (Eviction(known, per_user) for known in excess)
    return leaving


def _rank_in_tier(known: KeptFact) -> tuple[Any, ...]:
    level = (known.fact.importance > LOW) + (known.fact.importance >= HIGH)
    expires_at = known.fact.expires_at if known.fact.tier == "working" else None
    return level, expires_at or _NEVER, known.order


def _rank_for_user(known: KeptFact) -> tuple[Any, ...]:
    return known.fact.importance >= HIGH, _TIERS.index(known.fact.tier), *_rank_in_tier(known)
