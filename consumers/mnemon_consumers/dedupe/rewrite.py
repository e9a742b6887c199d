"""New content of a fact that a proposal repeats or updates."""

from datetime import datetime

from mnemon_consumers.dedupe.classification import find_named_end
from mnemon_consumers.domain.policy.default_expiry import compute_kept_until, compute_rewritten_until
from mnemon_contracts.events.memory import Fact, FactProposedV1
from mnemon_contracts.settings.groups import SettingsV1


def restate_fact(former: Fact, proposed: FactProposedV1, at: datetime, settings: SettingsV1) -> Fact:
    """Return the fact with its own words and the attributes that the proposal adds.

    Of two ends the later counts, as when a user says "away for two weeks" again a week later.
    """
    tier = proposed.tier or former.tier
    expires_at = proposed.expires_at or compute_kept_until(former, tier, at, settings.limits)
    if proposed.expires_at is None and expires_at is not None and tier == "working":
        expires_at = max(expires_at, find_named_end(proposed, at, settings) or expires_at)
    importance = max(former.importance, proposed.importance or former.importance)
    return former.model_copy(update={"tier": tier, "importance": importance, "expires_at": expires_at})


def rewrite_fact(
    former: Fact, fact: Fact, proposed: FactProposedV1, at: datetime, settings: SettingsV1
) -> Fact:
    """Return the fact with the newer words.

    The larger importance counts. Kind and tier change only if the proposal names them.
    """
    tier = proposed.tier or former.tier
    end = find_named_end(proposed, at, settings)
    expires_at = proposed.expires_at or compute_rewritten_until(
        former, fact.text, end, tier, at, settings.limits
    )
    return Fact(
        text=fact.text,
        kind=proposed.kind or former.kind,
        tier=tier,
        importance=max(former.importance, fact.importance),
        expires_at=expires_at,
    )
