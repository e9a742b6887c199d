"""What a fact becomes when a proposal meets it."""

from datetime import datetime, timedelta
from typing import NamedTuple

from contracts.memory import Fact, FactProposedV1, Tier
from contracts.settings import FactLimits


class _Keeping(NamedTuple):
    tier: Tier
    expires_at: datetime | None


def restated(former: Fact, proposed: FactProposedV1, at: datetime, limits: FactLimits) -> Fact:
    """The fact in its own words, with what the proposal says of it beyond them."""
    tier, expires_at = _kept(former, proposed, at, limits)
    importance = max(former.importance, proposed.importance or former.importance)
    return former.model_copy(update={"tier": tier, "importance": importance, "expires_at": expires_at})


def rewritten(former: Fact, fact: Fact, proposed: FactProposedV1, at: datetime, limits: FactLimits) -> Fact:
    """The fact in the newer words. The larger importance counts; kind, tier and date stay unless named."""
    tier, expires_at = _kept(former, proposed, at, limits)
    return Fact(
        text=fact.text,
        kind=proposed.kind or former.kind,
        tier=tier,
        importance=max(former.importance, fact.importance),
        expires_at=expires_at,
    )


def _kept(former: Fact, proposed: FactProposedV1, at: datetime, limits: FactLimits) -> _Keeping:
    tier = proposed.tier or former.tier
    if proposed.expires_at is not None:
        return _Keeping(tier, proposed.expires_at)
    if tier == former.tier:
        return _Keeping(tier, former.expires_at)
    if tier == "working":
        return _Keeping(tier, former.expires_at or at + timedelta(days=limits.working_days))
    # What is moved to be kept must not go with the date that it had while it was for now.
    return _Keeping(tier, None)
