"""Ranking of facts for a query: similarity, importance and freshness."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemon_consumers.retrieve.search.facts.persons import Person
from mnemon_consumers.retrieve.search.facts.ranking import compute_freshness, merge_rankings, rank_facts
from mnemon_consumers.retrieve.search.fusion import FusedCandidate, QueryWords
from mnemon_contracts.settings.groups import Retrieval
from mnemon_infra.database.facts.fact_repository import FactRecord

NOW = datetime(2025, 1, 31, tzinfo=UTC)

NO_WORDS = QueryWords("")


def fact(number: int = 1, *, days: float = 0.0, **changes: Any) -> FactRecord:
    moment = NOW - timedelta(days=days)
    stored = FactRecord(
        f"ar_{number:03}", "text", "user_fact", "archive", 5, None, moment, moment, number, "e"
    )
    return stored._replace(**changes)


def found(similarity: float, overlap: float = 0.0) -> FusedCandidate:
    return FusedCandidate({}, 0.0, 0.0, 0.0, overlap, similarity)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"days": 60}, math.exp(-1)),
        ({"days": 0}, 1.0),
        ({"days": -1}, 1.0),
        ({"days": 30, "importance": 7}, math.exp(-0.5)),
        ({"days": 60, "importance": 8}, 1.0),
        ({"days": 60, "tier": "profile"}, 1.0),
        ({"days": 60, "tier": "working"}, 1.0),
    ],
)
def test_only_minor_archive_facts_fade(changes: dict[str, Any], expected: float) -> None:
    assert compute_freshness(fact(**changes), Retrieval(), NOW) == pytest.approx(expected)


def test_settings_switch_the_decay_and_set_its_days() -> None:
    assert compute_freshness(fact(days=10), Retrieval(decay_days=10), NOW) == pytest.approx(math.exp(-1))
    assert compute_freshness(fact(days=10), Retrieval(decay=False), NOW) == 1.0


def test_expired_fact_is_not_ranked() -> None:
    facts = [fact(1, expires_at=NOW), fact(2, expires_at=NOW + timedelta(seconds=1)), fact(3)]

    shown = rank_facts(facts, {each.id: found(0.5) for each in facts}, NO_WORDS, Retrieval(), NOW)

    assert [each.fact.id for each in shown] == ["ar_003", "ar_002"]


def test_similarity_of_linked_fact_is_trusted_as_that_of_found_facts() -> None:
    direct, linked = fact(1), fact(2)
    candidates = {direct.id: found(0.8)._replace(trust=0.1)}

    shown = rank_facts([direct, linked], candidates, NO_WORDS, Retrieval(), NOW, {linked.id: 0.02})

    assert [each.fact.id for each in shown] == [linked.id, direct.id]
    assert shown[0].parts["relevance"] == pytest.approx(1 - (1 - 0.1 * 0.8) * (1 - 0.02))


def test_facts_found_by_links_are_merged_as_if_all_had_been_ranked_at_once() -> None:
    facts = [fact(number) for number in range(1, 5)]
    candidates = {each.id: found(0.2 * each.seq) for each in facts[:3]}
    links = {"ar_001": 0.5, "ar_004": 0.3}

    linked = rank_facts([facts[0], facts[3]], candidates, NO_WORDS, Retrieval(), NOW, links)
    merged = merge_rankings(rank_facts(facts[:3], candidates, NO_WORDS, Retrieval(), NOW), linked)

    assert merged == rank_facts(facts, candidates, NO_WORDS, Retrieval(), NOW, links)


def test_an_old_fact_gives_way_to_a_fresh_one_that_is_nearly_as_near() -> None:
    old, fresh, kept = fact(1, days=60), fact(2), fact(3, days=600, tier="profile")
    candidates = {old.id: found(0.9), fresh.id: found(0.6), kept.id: found(0.5)}

    shown = rank_facts([old, fresh, kept], candidates, NO_WORDS, Retrieval(), NOW)

    assert [each.fact.id for each in shown] == [fresh.id, kept.id, old.id]
    assert shown[2].score == pytest.approx(0.9 * math.exp(-1))


def test_fact_about_others_gives_way_to_fact_about_the_user() -> None:
    facts = [fact(1, text="My brother lives in Leeds"), fact(2, text="We moved to Salford")]
    candidates = {"ar_001": found(0.5), "ar_002": found(0.4)}

    def list_ids(person: Person | None) -> list[str]:
        ranked = rank_facts(facts, candidates, NO_WORDS, Retrieval(), NOW, person=person)
        return [each.fact.id for each in ranked]

    assert list_ids("user") == ["ar_002", "ar_001"]
    assert list_ids("others") == list_ids(None) == ["ar_001", "ar_002"]


def test_importance_ranks_equal_facts_with_scores_of_at_most_1() -> None:
    facts = [fact(1, importance=2), fact(2, importance=9), fact(3)]

    shown = rank_facts(facts, {each.id: found(1.0, 1.0) for each in facts}, NO_WORDS, Retrieval(), NOW)

    assert [(each.fact.id, each.score) for each in shown] == [
        ("ar_003", 1.0),
        ("ar_002", 1.0),
        ("ar_001", pytest.approx(0.94)),
    ]
