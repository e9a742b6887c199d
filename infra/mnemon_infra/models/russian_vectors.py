"""Static vectors of Russian words, from a file in the wheel `natasha`; they need no network.

They are navec's GloVe vectors of 250,000 word forms of Russian news. The package `natasha` is not imported.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.metadata import distribution
from typing import Final

import numpy as np
from navec import Navec
from numpy.typing import NDArray

FILE: Final = "natasha/data/emb/navec_news_v1_1B_250K_300d_100q.tar"
"""The vectors' file in the wheel."""

SIF_A: Final = 3e-4
"""Smooth inverse frequency: a word with this share of all words has half the maximum weight."""

FREQUENT: Final = 20_000
"""Number of the most frequent words whose vectors tell the directions that all words share."""

COMMON_DIRECTIONS: Final = 8
"""Number of directions that are removed from the vectors.

All words share them, so that they hide what a text is about. Without them, similarity alone finds 0.66 of the
facts of eight Russian users among the first five, and 0.50 with them; the number was chosen by these users.

Source: Mu and Viswanath, 2018, "All-but-the-Top: Simple and Effective Postprocessing for Word
Representations".
"""

CACHED_WORDS: Final = 20_000
"""Maximum number of words whose weighted vectors a process caches: 20 MB."""

WORD: Final = re.compile(r"[\u0400-\u04ff]+(?:-[\u0400-\u04ff]+)*")
"""A word in Cyrillic script."""

_WORD_OR_NUMBER: Final = re.compile(rf"{WORD.pattern}|\d+")


class RussianVectors:
    """Sums the vectors of a text's Russian words and numbers; rare words weigh more.

    A word without a vector, such as many names, gets a vector from its letters, which is similar to no other:
    so do numbers. Of the vectors, the first dimensions are used.
    """

    def __init__(self, navec: Navec, dimension: int) -> None:
        """Create the model from its file; `dimension` is at most 300."""
        counts = np.asarray(navec.vocab.counts, dtype=np.float64)
        self._places: dict[str, int] = navec.vocab.word_ids
        self._weights = SIF_A / (SIF_A + counts / counts.sum())
        self._indexes: NDArray[np.uint8] = navec.pq.indexes
        self._centroids: NDArray[np.float32] = navec.pq.codes
        frequent = self._unpack(np.argsort(-counts, kind="stable")[:FREQUENT])
        self._mean = frequent.mean(axis=0)
        frequent -= self._mean
        _, directions = np.linalg.eigh(frequent.T @ frequent)
        common = directions[:, -COMMON_DIRECTIONS:]
        # The product has no sign, so that each machine computes the same vectors.
        self._projection = (np.eye(len(common)) - common @ common.T)[:, :dimension].astype(np.float32)
        self._length = float(np.linalg.norm(frequent @ self._projection, axis=1).mean())
        self._weigh_word = lru_cache(maxsize=CACHED_WORDS)(self._compute_weighted_vector)

    def sum_words(self, text: str) -> NDArray[np.float32]:
        """Return the sum of the weighted vectors of a text's Russian words and numbers; zeros without any."""
        vectors = [self._weigh_word(word) for word in _WORD_OR_NUMBER.findall(text.lower())]
        return np.sum(vectors, axis=0) if vectors else np.zeros(self._projection.shape[1], dtype=np.float32)

    def _compute_weighted_vector(self, word: str) -> NDArray[np.float32]:
        places = self._find_places(word)
        if not places:
            return _hash_word(word, self._projection.shape[1])
        vectors = (self._unpack(places) - self._mean) @ self._projection / self._length
        weighted: NDArray[np.float32] = (self._weights[places] @ vectors).astype(np.float32)
        return weighted

    def _find_places(self, word: str) -> Sequence[int]:
        """Return the places of the vectors of a word, or of the parts of a word with hyphens."""
        for form in (word, word.replace("ё", "е")):
            if (place := self._places.get(form)) is not None:
                return [place]
        parts = word.split("-") if "-" in word else []
        return [place for part in parts if (place := self._places.get(part)) is not None]

    def _unpack(self, places: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float32]:
        parts = self._centroids[np.arange(len(self._centroids)), self._indexes[places]]
        return parts.reshape(len(places), -1)


@cache
def load_russian_vectors(dimension: int) -> RussianVectors:
    """Return the model, loaded once per process in 0.6 s."""
    return RussianVectors(Navec.load(distribution("natasha").locate_file(FILE)), dimension)


def are_russian_vectors_loaded() -> bool:
    """Return whether the process has loaded the model."""
    return load_russian_vectors.cache_info().currsize > 0


def _hash_word(word: str, dimension: int) -> NDArray[np.float32]:
    """Return a vector of about length 1 that only depends on the letters of a word."""
    digest = hashlib.shake_128(word.encode()).digest(dimension)
    signs = np.frombuffer(digest, dtype=np.uint8).astype(np.float32) - 127.5
    return signs / np.linalg.norm(signs)
