"""Expiry dates of facts that are proposed without one, change their tier or are rewritten."""

from datetime import datetime, timedelta

from mnemon_consumers.domain.policy.expiry.text import names_end
from mnemon_contracts.events.memory import Fact, Tier
from mnemon_contracts.settings.groups import FactLimits


def compute_default_expiry(at: datetime, limits: FactLimits) -> datetime | None:
    """Return the expiry date of a working fact without a date of its own.

    Returns:
        The date that is `limits.working_days` days after `at`; None if `limits` sets no number of days.
    """
    return None if limits.working_days is None else at + timedelta(days=limits.working_days)


def compute_tier_expiry(former: Fact, tier: Tier, at: datetime, limits: FactLimits) -> datetime | None:
    """Return the expiry date of a fact in its new tier.

    Returns:
        The former date if the tier stays. After a change to the tier `working`, the former date, else the
        default expiry. After a change to another tier, None.
    """
    if tier == former.tier:
        return former.expires_at
    if tier == "working":
        return former.expires_at or compute_default_expiry(at, limits)
    # A fact that moves to a lasting tier must not end on the date that it had in the tier `working`.
    return None


def compute_rewritten_expiry(
    former: Fact, text: str, end: datetime | None, tier: Tier, at: datetime, limits: FactLimits
) -> datetime | None:
    """Return the expiry date of a rewritten fact.

    In the tier `working`, this is `end`. Without `end`, or in another tier, it is the date from
    `compute_tier_expiry`.

    Args:
        former: the fact in its old words. If these words named an end and have changed, the former end is
            dropped.
        text: the new words.
        end: the end that the new words name, see `find_expiry`; None if they name no end.
        tier: the new tier of the fact.
        at: the time of the change.
        limits: the tenant's limits.
    """
    if end is not None and tier == "working":
        return end
    if text != former.text and names_end(former.text):
        former = former.model_copy(update={"expires_at": None})
    return compute_tier_expiry(former, tier, at, limits)
