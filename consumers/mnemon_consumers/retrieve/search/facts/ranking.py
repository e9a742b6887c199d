"""Scores of facts: relevance to a query, importance and freshness. No I/O, no clock."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from mnemon_consumers.retrieve.search.facts.persons import OTHER_PERSON_SHARE, Person, find_fact_person
from mnemon_consumers.retrieve.search.fusion import (
    UNRANKED,
    FusedCandidate,
    QueryWords,
    compute_relevance,
    find_lowest_similarity,
)
from mnemon_contracts.settings.groups import Retrieval
from mnemon_infra.database.facts.fact_repository import FactRecord

HIGH: Final = 8
"""Minimum value of high importance. An archived fact of high importance does not lose freshness."""

NORMAL: Final = 5

WEIGHT: Final = 0.02
"""Change of the factor `importance` per step of importance."""

_NO_LINKS: Final[Mapping[str, float]] = MappingProxyType({})


class RankedFact(NamedTuple):
    """A fact and its score; `parts` has the components of the score."""

    fact: FactRecord
    score: float
    parts: dict[str, float]


def rank_facts(
    facts: Iterable[FactRecord],
    candidates: Mapping[str, FusedCandidate],
    words: QueryWords,
    settings: Retrieval,
    now: datetime,
    links: Mapping[str, float] = _NO_LINKS,
    person: Person | None = None,
) -> list[RankedFact]:
    """Return the facts that have not expired, best first.

    Args:
        facts: the found and the linked facts that are still live.
        candidates: found candidates, by fact id.
        words: the words of the query, weighted by rarity.
        settings: the decay of freshness.
        now: the current time; facts that expire at or before it count as expired.
        links: by fact id, the relevance that a name gives a fact, because a found fact has the same name.
        person: whom the query is about; None if it does not tell.
    """
    unranked = UNRANKED._replace(
        similarity=find_lowest_similarity(candidates.values()),
        trust=min((each.trust for each in candidates.values()), default=1.0),
    )
    return _sort_facts(
        _score_fact(
            fact,
            candidates.get(fact.id, unranked),
            links.get(fact.id, 0.0),
            words,
            settings,
            now,
            person,
        )
        for fact in facts
        if fact.expires_at is None or fact.expires_at > now
    )


def merge_rankings(ranked: Iterable[RankedFact], linked: Sequence[RankedFact]) -> list[RankedFact]:
    """Return both rankings as one, best first; the score in `linked` counts for a fact in both."""
    linked_ids = {each.fact.id for each in linked}
    return _sort_facts(chain(linked, (each for each in ranked if each.fact.id not in linked_ids)))


def _sort_facts(ranked: Iterable[RankedFact]) -> list[RankedFact]:
    """Return the facts, best first; of facts with equal scores, the newer comes first."""
    return sorted(ranked, key=lambda each: (-each.score, -each.fact.seq))


def _score_fact(
    fact: FactRecord,
    candidate: FusedCandidate,
    link: float,
    words: QueryWords,
    settings: Retrieval,
    now: datetime,
    person: Person | None,
) -> RankedFact:
    share = words.measure_share(fact.text)
    relevance = compute_relevance(candidate.similarity, share, candidate.trust)
    fact_person = find_fact_person(fact.text) if person else None
    parts = {
        "similarity": candidate.similarity or 0.0,
        "words": share,
        **({"link": link} if link else {}),
        **({"person": OTHER_PERSON_SHARE} if fact_person not in (None, person) else {}),
        "relevance": 1 - (1 - relevance) * (1 - link),
        "importance": 1 + WEIGHT * (fact.importance - NORMAL),
        "freshness": compute_freshness(fact, settings, now),
    }
    weighed = parts["relevance"] * parts.get("person", 1.0) * parts["importance"]
    score = min(1.0, weighed) * parts["freshness"]
    return RankedFact(fact, score, parts)


def compute_freshness(fact: FactRecord, settings: Retrieval, now: datetime) -> float:
    """Return a factor of 0 to 1: `exp(-days / decay_days)` for archived facts below `HIGH`, else 1.

    `days` is the time since the last change of the fact. If the setting `decay` is off, the factor is 1 for
    every fact.
    """
    if not settings.decay or fact.tier != "archive" or fact.importance >= HIGH:
        return 1.0
    age = max(0.0, (now - fact.changed_at).total_seconds())
    return math.exp(-age / 86_400 / settings.decay_days)
