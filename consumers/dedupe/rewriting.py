"""What a fact becomes when a proposal meets it."""

from datetime import datetime

from consumers.policy.keeping import kept_until
from contracts.memory import Fact, FactProposedV1
from contracts.settings import FactLimits


def restated(former: Fact, proposed: FactProposedV1, at: datetime, limits: FactLimits) -> Fact:
    """The fact in its own words, with what the proposal says of it beyond them."""
    tier = proposed.tier or former.tier
    expires_at = proposed.expires_at or kept_until(former, tier, at, limits)
    importance = max(former.importance, proposed.importance or former.importance)
    return former.model_copy(update={"tier": tier, "importance": importance, "expires_at": expires_at})


def rewritten(former: Fact, fact: Fact, proposed: FactProposedV1, at: datetime, limits: FactLimits) -> Fact:
    """The fact in the newer words. The larger importance counts; kind, tier and date stay unless named."""
    tier = proposed.tier or former.tier
    expires_at = proposed.expires_at or kept_until(former, tier, at, limits)
    return Fact(
        text=fact.text,
        kind=proposed.kind or former.kind,
        tier=tier,
        importance=max(former.importance, fact.importance),
        expires_at=expires_at,
    )
