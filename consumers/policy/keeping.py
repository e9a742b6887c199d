"""How long a fact is kept when nothing is said of it."""

from datetime import datetime, timedelta

from contracts.memory import Fact, Tier
from contracts.settings import FactLimits


def kept_until(former: Fact, tier: Tier, at: datetime, limits: FactLimits) -> datetime | None:
    """The date of a fact that is kept in a tier from now on: its former one, unless it moves."""
    if tier == former.tier:
        return former.expires_at
    if tier == "working":
        return former.expires_at or at + timedelta(days=limits.working_days)
    # What is moved to be kept must not go with the date that it had while it was for now.
    return None
