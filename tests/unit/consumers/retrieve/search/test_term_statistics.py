"""Rarity of words in a tenant's texts."""

from mnemon_consumers.retrieve.search.term_statistics import TermStatistics
from mnemon_infra.models import bm25


def test_weights_of_a_query_multiply_the_rarity_of_terms() -> None:
    statistics = TermStatistics.of_texts(["dog", "cat", "dog and cat"])
    (dog,), (cat,) = bm25.weigh_query("dog").indices, bm25.weigh_query("cat").indices
    plain = statistics.weigh_terms([dog, cat])

    weighted = statistics._replace(weights={dog: 0.5}).weigh_terms([dog, cat])

    assert plain[dog] > 0
    assert weighted == {dog: plain[dog] / 2, cat: plain[cat]}
