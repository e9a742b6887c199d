"""Concepts of words, in English and Russian.

Texts about the same thing share a concept even if they share no word: a question may say `job` or `работа`,
and the message `office` or `контора`. Static vectors relate such words in English only. The concepts are
terms of sparse vectors, beside the words, so that searches weigh them by rarity too.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from mnemon_infra.models import bm25
from mnemon_infra.models.embedding import Sparse

CONCEPTS_FILE: Final = "concepts.txt"
"""File with one concept in each line: English words, a bar, and Russian words.

A word may have several concepts.
"""

FIRST_ID: Final = 2**31
"""Id of the first concept. Ids of words are lower."""

QUERY_WEIGHT: Final = 0.3
"""Weight of a concept in a query, as a share of the weight of its heaviest word.

Searches find as much with any weight from 0.1 to 0.8.
"""


def weigh_document(text: str) -> Sparse:
    """Return the weights of a text's words and concepts."""
    words = bm25.weigh_document(text)
    return _add_concepts(dict(zip(words.indices, words.values, strict=True)), 1.0)


def weigh_query(text: str) -> Sparse:
    """Return the weights of a query's words and concepts."""
    words = bm25.weigh_query(text)
    return add_query_concepts(dict(zip(words.indices, words.values, strict=True)))


def add_query_concepts(words: Mapping[int, float]) -> Sparse:
    """Add concepts to the weights of a query's words; `words` maps ids of stems to weights."""
    return _add_concepts(words, QUERY_WEIGHT)


def find_concepts(terms: Iterable[int]) -> frozenset[int]:
    """Return the ids of the concepts of words, given the ids of the words' stems in a sparse vector."""
    concepts_of = load_concepts()
    return frozenset(concept for term in terms for concept in concepts_of.get(term, ()))


@cache
def load_concepts() -> Mapping[int, frozenset[int]]:
    """Map the id of each stemmed word to the ids of its concepts. The first call takes 0.1 s."""
    lines = (files(__package__) / CONCEPTS_FILE).read_text(encoding="utf-8").splitlines()
    concepts_of: dict[int, set[int]] = {}
    for concept, line in enumerate(lines, FIRST_ID):
        for term in bm25.weigh_document(line).indices:
            concepts_of.setdefault(term, set()).add(concept)
    return {term: frozenset(concepts) for term, concepts in concepts_of.items()}


def _add_concepts(words: Mapping[int, float], share: float) -> Sparse:
    """Return the weights of words and of their concepts.

    A concept weighs `share` times as much as its heaviest word.
    """
    concepts_of = load_concepts()
    weights = dict(words)
    for term, weight in words.items():
        for concept in concepts_of.get(term, ()):
            weights[concept] = max(weights.get(concept, 0.0), share * weight)
    return Sparse(list(weights), list(weights.values()))
