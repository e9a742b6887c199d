"""Two rankings become one."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.retrieve.search.fusion import fused, relevance, share_of_words
from infra.vectors.port import Hit


def hits(**scores: float) -> list[Hit]:
    """Best first; a name is always the same point."""
    found = [Hit(UUID(int=ord(name)), score, {"event_id": name}) for name, score in scores.items()]
    return sorted(found, key=lambda hit: -hit.score)


def test_each_ranking_is_stretched_and_they_count_the_same() -> None:
    found = fused(hits(a=8.0, b=6.0, c=4.0), hits(b=0.9, d=0.5, a=0.1))

    assert [(each.payload["event_id"], each.score) for each in found] == [
        ("b", 0.75),
        ("a", 0.5),
        ("d", 0.25),
        ("c", 0.0),
    ]
    assert [each.overlap for each in found] == [0.75, 1.0, 0.0, 0.5]
    assert [each.similarity for each in found] == [0.9, 0.1, 0.5, 0.0]


def test_a_word_that_only_one_has_outweighs_the_noise_of_similarities() -> None:
    first, second, *_ = fused(hits(a=4.0), hits(b=0.31, c=0.30, a=0.25, d=0.24))

    assert first.payload["event_id"] == "a"
    assert first.score > second.score + 0.3


def test_a_ranking_that_is_missing_leaves_the_other() -> None:
    found = fused(hits(a=8.0, b=6.0, c=4.0), None)

    assert [(each.payload["event_id"], each.score) for each in found] == [("a", 1.0), ("b", 0.5), ("c", 0.0)]
    assert [each.similarity for each in found] == [None, None, None]


def test_an_empty_ranking_and_one_of_equals() -> None:
    assert fused([], []) == []
    assert [each.score for each in fused([], hits(a=0.3))] == [0.5]
    assert [each.score for each in fused(hits(a=2.0, b=2.0), hits(a=0.5))] == [1.0, 0.5]


scores = st.lists(st.floats(0.001, 100), max_size=20).map(lambda them: sorted(them, reverse=True))


@given(words=scores, meaning=st.none() | scores)
def test_scores_lie_between_0_and_1_and_are_in_order(words: list[float], meaning: list[float] | None) -> None:
    by_words = [Hit(uuid4(), score, {}) for score in words]
    by_meaning = None if meaning is None else [Hit(uuid4(), score / 100, {}) for score in meaning]

    found = fused(by_words, by_meaning)

    assert len(found) == len(words) + len(meaning or [])
    assert all(0 <= each.score <= 1 for each in found)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


@pytest.mark.parametrize(
    ("similarity", "overlap", "expected"),
    [(0.6, 0.0, 0.6), (0.6, 1.0, 0.8), (0.0, 1.0, 0.5), (-0.3, 0.0, 0.0), (1.0, 1.0, 1.0), (None, 0.5, 0.5)],
)
def test_relevance(similarity: float | None, overlap: float, expected: float) -> None:
    assert relevance(similarity, overlap) == pytest.approx(expected)


def test_the_share_of_words_heeds_stems_and_no_stop_words() -> None:
    assert share_of_words("Where are the dogs?", "A dog barks") == 1.0
    assert share_of_words("dogs and cats", "A dog barks") == 0.5
    assert share_of_words("Где собака?", "Собаки лают") == 1.0
    assert share_of_words("🙂", "🙂") == 0.0
