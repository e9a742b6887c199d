"""Rarity of words in a tenant's texts. No I/O."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mnemon_infra.models import bm25

COUNTED: Final = 2_000
"""Maximum number of characters of a text to count, from its beginning."""


class TermStatistics(NamedTuple):
    """Numbers of texts that have a term, in a sample of texts.

    Attributes:
        texts: number of texts.
        terms: ids of the stemmed words, ascending; each pair of id and count takes 8 bytes.
        counts: for each term, the number of texts with it.
    """

    texts: int
    terms: NDArray[np.uint32]
    counts: NDArray[np.uint32]

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> Self:
        """Count the stemmed words of some texts."""
        return cls.from_terms([bm25.weigh_document(text[:COUNTED]).indices for text in texts])

    @classmethod
    def from_terms(cls, terms_of: Sequence[Iterable[int]]) -> Self:
        """Count the terms of some texts, given by the ids of each text's terms."""
        found = Counter(term for terms in terms_of for term in set(terms))
        terms = np.array(sorted(found), dtype=np.uint32)
        return cls(len(terms_of), terms, np.array([found[int(term)] for term in terms], dtype=np.uint32))

    def weigh_terms(self, terms: Collection[int]) -> dict[int, float]:
        """Return the inverse document frequency of each term, as BM25 defines it."""
        # Ids of the same type as `terms`: with any other type, NumPy would convert all terms first.
        sought = np.fromiter(terms, np.uint32, len(terms))
        places = np.searchsorted(self.terms, sought)
        return {
            term: self._weigh_count(int(self.counts[place]) if self._has_term(place, term) else 0)
            for term, place in zip(sought.tolist(), places.tolist(), strict=True)
        }

    def _has_term(self, place: int, term: int) -> bool:
        return place < len(self.terms) and int(self.terms[place]) == term

    def _weigh_count(self, count: int) -> float:
        return math.log1p((self.texts - count + 0.5) / (count + 0.5))


NO_STATISTICS: Final = TermStatistics(0, np.empty(0, np.uint32), np.empty(0, np.uint32))
"""Statistics before the first count: every term has the same weight."""
