"""View of facts in replies: pages, and importance in words. No I/O, no clock."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.memory import Tier
from mnemon_contracts.verbs.tools import Importance, StoredFact
from mnemon_infra.database.facts.fact_repository import FactRecord

IMPORTANCE: Final[Mapping[Importance, int]] = {"high": 9, "normal": 5, "low": 2}
_TIERS: Final[Mapping[Tier, int]] = {"profile": 0, "working": 1, "archive": 2}


class FactPage(NamedTuple):
    """A page of a user's facts.

    Attributes:
        total: number of facts of all pages.
        next: value of `after` for the following page; None on the last page.
    """

    facts: Sequence[FactRecord]
    total: int
    next: str | None


def convert_importance(importance: int | Importance | None) -> int | None:
    """Return the importance that a word means; a number or None is returned unchanged."""
    return IMPORTANCE[importance] if isinstance(importance, str) else importance


def build_page(facts: Iterable[FactRecord], limit: int, after: str | None) -> FactPage:
    """Return a page of facts, ordered by tier, then by descending importance, then newest first.

    A page begins after a place in this order, not after a fact, so that the last fact of the previous page
    may change meanwhile.

    `after` is the `next` of the previous page; None for the first page.

    Raises:
        InvalidBody: `after` is not the `next` of a page.
    """
    ordered = sorted(facts, key=_rank_fact)
    begin = 0 if after is None else bisect_right(ordered, _parse_place(after), key=_rank_fact)
    shown = ordered[begin : begin + limit]
    has_more = begin + limit < len(ordered)
    return FactPage(shown, len(ordered), ".".join(map(str, _rank_fact(shown[-1]))) if has_more else None)


def _rank_fact(fact: FactRecord) -> tuple[int, int, int]:
    return _TIERS[fact.tier], -fact.importance, -fact.seq


def _parse_place(after: str) -> tuple[int, int, int]:
    named = re.fullmatch(r"([0-2])\.(-[0-9]{1,2})\.(-[0-9]{1,19})", after, re.ASCII)
    if named is None:
        raise InvalidBody(
            "after",
            "the value is not the `next` of a reply to `read`; give the `next` of a reply, or omit `after`",
        )
    tier, importance, seq = named.groups()
    return int(tier), int(importance), int(seq)


def build_fact_reply(fact: FactRecord) -> StoredFact:
    """Return a fact in the form of a reply."""
    return StoredFact.model_construct(
        id=fact.id,
        text=fact.text,
        kind=fact.kind,
        tier=fact.tier,
        importance=fact.importance,
        expires_at=fact.expires_at,
        saved_at=fact.saved_at,
        unsupported=fact.unsupported or None,
    )
