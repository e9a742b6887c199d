"""Rarity of words and concepts in a tenant's texts. No I/O."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mnemon_infra.models.embedding import Sparse
from mnemon_infra.models.words import concepts

COUNTED: Final = 2_000
"""Maximum number of characters of a text to count, from its beginning."""

SUFFICIENT_TEXTS: Final = 1_000
"""Minimum number of counted texts of a tenant for a search to weigh the words of a query by them.

With fewer texts, the engine computes the rarity of words, which is exact and takes time in proportion to the
number of texts.
"""


class TermStatistics(NamedTuple):
    """Number of texts with each term, in a sample of texts.

    Attributes:
        texts: number of texts.
        terms: ids of the stemmed words and of their concepts, ascending; each pair of id and count takes 8
            bytes.
        counts: for each term, the number of texts with it.
    """

    texts: int
    terms: NDArray[np.uint32]
    counts: NDArray[np.uint32]

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> Self:
        """Count the texts that have each stemmed word or concept in their first `COUNTED` characters."""
        found = Counter(term for text in texts for term in concepts.weigh_document(text[:COUNTED]).indices)
        terms = np.array(sorted(found), dtype=np.uint32)
        return cls(len(texts), terms, np.array([found[int(term)] for term in terms], dtype=np.uint32))

    def weigh_query(self, words: Sparse) -> Sparse:
        """Return the terms of a query with each weight multiplied by the rarity of the term.

        With fewer than `SUFFICIENT_TEXTS` counted texts, return the query unchanged: the engine weighs it.
        """
        if self.texts < SUFFICIENT_TEXTS:
            return words
        rarity = self.weigh_terms(words.indices)
        weights = [rarity[term] * weight for term, weight in zip(words.indices, words.values, strict=True)]
        return Sparse(words.indices, weights, has_rarity=True)

    def weigh_words(self, weights: Mapping[int, float]) -> dict[int, float]:
        """Return weights of words, each multiplied by the rarity of the word."""
        rarity = self.weigh_terms(weights)
        return {term: rarity[term] * weight for term, weight in weights.items()}

    def weigh_terms(self, terms: Collection[int]) -> dict[int, float]:
        """Return the inverse document frequency of each term, as BM25 defines it."""
        # Ids of the same type as `terms`: with any other type, NumPy would convert all terms first.
        sought = np.fromiter(terms, np.uint32, len(terms))
        places = np.searchsorted(self.terms, sought)
        weights = {}
        for term, place in zip(sought.tolist(), places.tolist(), strict=True):
            is_counted = place < len(self.terms) and int(self.terms[place]) == term
            count = int(self.counts[place]) if is_counted else 0
            weights[term] = math.log1p((self.texts - count + 0.5) / (count + 0.5))
        return weights


NO_STATISTICS: Final = TermStatistics(0, np.empty(0, np.uint32), np.empty(0, np.uint32))
"""Statistics before the first count: every term has the same weight, and searches leave rarity to the
engine."""
