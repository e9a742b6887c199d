"""Fusion of the rankings by words and by similarity into one ranking."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_consumers.retrieve.search.fusion import QueryWords, compute_relevance, fuse_rankings
from mnemon_infra.vectors.port import PointHit


def hits(**scores: float) -> list[PointHit]:
    """Return hits in descending order of score; the same name gives the same point."""
    found = [PointHit(UUID(int=ord(name)), score, {"event_id": name}) for name, score in scores.items()]
    return sorted(found, key=lambda hit: -hit.score)


def test_each_ranking_is_stretched_and_they_count_the_same() -> None:
    found = fuse_rankings(hits(a=8.0, b=6.0, c=4.0), hits(b=0.9, d=0.5, a=0.1), 3)

    assert [each.payload["event_id"] for each in found] == ["b", "a", "d", "c"]
    assert [each.score for each in found] == pytest.approx([0.755, 0.51, 0.255, 0.01], abs=0.002)
    assert [each.overlap for each in found] == [0.75, 1.0, 0.0, 0.5]
    assert [each.similarity for each in found] == [0.9, 0.1, 0.5, 0.0]


def test_a_word_that_only_one_has_outweighs_the_noise_of_similarities() -> None:
    first, second, *_ = fuse_rankings(hits(a=4.0), hits(b=0.31, c=0.30, a=0.25, d=0.24), 32)

    assert first.payload["event_id"] == "a"
    assert first.score > second.score + 0.3


def test_a_ranking_that_is_missing_leaves_the_other() -> None:
    found = fuse_rankings(hits(a=8.0, b=6.0, c=4.0), None, 3)

    assert [each.payload["event_id"] for each in found] == ["a", "b", "c"]
    assert [each.score for each in found] == pytest.approx([1.0, 0.51, 0.02], abs=0.002)
    assert [each.similarity for each in found] == [None, None, None]


def test_empty_rankings_and_equal_scores_are_fused() -> None:
    assert fuse_rankings([], [], 32) == []
    assert [each.score for each in fuse_rankings([], hits(a=0.3), 32)] == [0.5]
    assert [each.score for each in fuse_rankings(hits(a=2.0, b=2.0), hits(a=0.5), 32)] == [1.0, 0.5]
    assert [each.score for each in fuse_rankings(hits(a=2.0, b=2.0), None, 2)] == [1.0, 1.0]


def test_the_weaker_of_two_that_have_the_word_keeps_most_of_its_score() -> None:
    strong, weak = fuse_rankings(hits(a=1.2, b=1.0), hits(a=0.8, c=0.4), 32)[:2]

    assert (strong.payload["event_id"], weak.payload["event_id"]) == ("a", "b")
    assert strong.words == 1.0
    assert 0.6 < weak.words < 0.8


scores = st.lists(st.floats(0.001, 100), max_size=20).map(lambda them: sorted(them, reverse=True))


@given(words=scores, meaning=st.none() | scores, limit=st.integers(20, 40))
def test_scores_lie_above_0_up_to_1_and_are_in_order(
    words: list[float], meaning: list[float] | None, limit: int
) -> None:
    by_words = [PointHit(uuid4(), score, {}) for score in words]
    by_meaning = None if meaning is None else [PointHit(uuid4(), score / 100, {}) for score in meaning]

    found = fuse_rankings(by_words, by_meaning, limit)

    assert len(found) == len(words) + len(meaning or [])
    assert all(0 < each.score <= 1 for each in found)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


@pytest.mark.parametrize(
    ("similarity", "overlap", "expected"),
    [(0.6, 0.0, 0.6), (0.6, 1.0, 0.8), (0.0, 1.0, 0.5), (-0.3, 0.0, 0.0), (1.0, 1.0, 1.0), (None, 0.5, 0.5)],
)
def test_relevance_needs_words_or_similarity(
    similarity: float | None, overlap: float, expected: float
) -> None:
    assert compute_relevance(similarity, overlap) == pytest.approx(expected)


@pytest.mark.parametrize(("overlap", "expected"), [(0.0, 0.06), (0.5, 0.51), (1.0, 0.95)])
def test_relevance_with_a_cosine_that_hardly_counts_is_the_share_of_words(
    overlap: float, expected: float
) -> None:
    assert compute_relevance(0.6, overlap, trust=0.1) == pytest.approx(expected, abs=0.01)


def test_word_of_which_a_text_has_the_concept_counts_half() -> None:
    assert QueryWords("Где врач?").measure_share("Доктор принимает") == 0.5
    assert QueryWords("Where is the physician?").measure_share("Доктор принимает") == 0.5
    assert QueryWords("Где врач?").measure_share("Идёт дождь") == 0.0


def test_implied_concept_is_the_share_of_a_query_without_words() -> None:
    assert QueryWords("where?").measure_share("Moved to Leeds") == 0.5
    assert QueryWords("where?", {}).measure_share("Likes tea") == 0.0
    assert QueryWords("where?", {1: 0.0}).measure_share("Moved to Leeds") == 0.5


def test_the_share_of_words_heeds_stems_and_no_stop_words() -> None:
    assert QueryWords("Where are the dogs?").measure_share("A dog barks") == 1.0
    assert QueryWords("dogs and rain").measure_share("A dog barks") == 0.5
    assert QueryWords("Где собака?").measure_share("Собаки лают") == 1.0
    assert QueryWords("🙂").measure_share("🙂") == 0.0
