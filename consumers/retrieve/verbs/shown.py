"""How facts are shown, and what is asked about them in words. No I/O, no clock."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from contracts.memory import Tier
from contracts.tools import Importance
from contracts.tools import StoredFact as FactAsKept
from infra.database.facts import StoredFact

IMPORTANCE: Final[Mapping[Importance, int]] = {"high": 9, "normal": 5, "low": 2}
_TIERS: Final[Mapping[Tier, int]] = {"profile": 0, "working": 1, "archive": 2}


def importance_of(asked: int | Importance | None) -> int | None:
    """The importance that a word stands for; a number is one already."""
    return IMPORTANCE[asked] if isinstance(asked, str) else asked


def unexpired(facts: Iterable[StoredFact], at: datetime) -> list[StoredFact]:
    """The facts whose date has not come."""
    return [fact for fact in facts if fact.expires_at is None or fact.expires_at > at]


def in_order(facts: Iterable[StoredFact]) -> list[StoredFact]:
    """By tier; in each what matters most first, and of that the newest."""
    return sorted(facts, key=lambda fact: (_TIERS[fact.tier], -fact.importance, -fact.seq))


def fact_as_kept(fact: StoredFact) -> FactAsKept:
    """A fact as a reply has it."""
    return FactAsKept.model_construct(
        id=fact.id,
        text=fact.text,
        kind=fact.kind,
        tier=fact.tier,
        importance=fact.importance,
        expires_at=fact.expires_at,
        saved_at=fact.saved_at,
        unsupported=fact.unsupported or None,
    )
