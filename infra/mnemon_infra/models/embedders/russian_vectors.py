"""Static vectors of Russian words, from a file in the wheel `natasha`; they need no network.

They are navec's GloVe vectors of 250,000 word forms of Russian news. The package `natasha` is not imported.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.metadata import distribution
from threading import Lock
from typing import Final

import numpy as np
from navec import Navec
from numpy.typing import NDArray

FILE: Final = "natasha/data/emb/navec_news_v1_1B_250K_300d_100q.tar"
"""Path in the wheel of the file with the vectors."""

SIF_A: Final = 3e-4
"""Smooth inverse frequency: a word with this share of all words has half the maximum weight."""

FREQUENT: Final = 20_000
"""Number of the most frequent words whose vectors tell the directions that all words share."""

COMMON_DIRECTIONS: Final = 8
"""Number of directions that are removed from the vectors.

All words share them, so that they hide what a text is about. With 8 directions removed, the first five hits
by similarity have 66 % of the answers about eight Russian users; with none removed, 50 %. These users served
to choose the number.

Source: Mu and Viswanath, 2018, "All-but-the-Top: Simple and Effective Postprocessing for Word
Representations".
"""

CACHED_WORDS: Final = 20_000
"""Maximum number of words whose weighted vectors a process caches: 20 MB."""

_LETTERS: Final = r"[\u0400-\u0481\u048a-\u052f]++"

WORD: Final = re.compile(rf"(?<![^\W\d_]){_LETTERS}(?:-{_LETTERS}){{0,20}}+(?![^\W\d_])")
"""A word in Cyrillic script, of at most 21 parts with hyphens: without a limit, the time of a search grows
with the square of the length of the word.

A word of several scripts does not match: it is usually a Latin word with a letter that looks alike.
"""

_COUNTED: Final = re.compile(rf"{WORD.pattern}|\d+(?:[+-](?!\w))?|[\u2600-\u27bf\U0001f000-\U0001faff]")
"""A Cyrillic word, a number with its sign after it, as in the blood group `2+`, or a pictograph."""

_STRESS: Final = re.compile(r"(?<=[\u0400-\u04ff])[\u0300\u0301]")

_LOADING: Final = Lock()


class RussianVectors:
    """Model that sums the vectors of a text's Russian words, numbers and pictographs; rare words weigh more.

    A word with a hyphen that navec lacks gets the sum of the vectors of its parts. Numbers, pictographs, and
    other words that navec lacks, such as many names, get vectors computed from their characters, which are
    similar to no other vector.
    """

    def __init__(self, navec: Navec, dimension: int) -> None:
        """Compute the weights and the projection from loaded vectors.

        The vectors of the model keep the first `dimension` of navec's 300 dimensions.
        """
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
        # Eigenvectors may differ in sign between machines; this product does not.
        self._projection = (np.eye(len(common)) - common @ common.T)[:, :dimension].astype(np.float32)
        self._length = float(np.linalg.norm(frequent @ self._projection, axis=1).mean())
        self._weigh_word = lru_cache(maxsize=CACHED_WORDS)(self._compute_weighted_vector)

    def sum_words(self, text: str) -> NDArray[np.float32]:
        """Return the sum of the weighted vectors of a text's words, numbers and pictographs.

        The sum is all zeros if the text has none of them.
        """
        vectors = [self._weigh_word(word) for word in _COUNTED.findall(text.lower())]
        return np.sum(vectors, axis=0) if vectors else np.zeros(self._projection.shape[1], dtype=np.float32)

    def _compute_weighted_vector(self, word: str) -> NDArray[np.float32]:
        place = self._places.get(word.replace("ё", "е"), self._places.get(word))
        if place is not None:
            vector = (self._unpack([place])[0] - self._mean) @ self._projection / self._length
            return np.asarray(self._weights[place] * vector, dtype=np.float32)
        if "-" in word[1:-1]:
            parts = np.array([self._weigh_word(part) for part in word.split("-")])
            return np.asarray(parts.sum(axis=0), dtype=np.float32)
        return _hash_word(word, self._projection.shape[1])

    def _unpack(self, places: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float32]:
        parts = self._centroids[np.arange(len(self._centroids)), self._indexes[places]]
        return parts.reshape(len(places), -1)


def load_russian_vectors(dimension: int) -> RussianVectors:
    """Return the model, loaded once per process in 0.6 s."""
    with _LOADING:
        return _load_vectors(dimension)


def are_russian_vectors_loaded() -> bool:
    """Return whether the process has loaded the model."""
    return _load_vectors.cache_info().currsize > 0


def are_russian_vectors_loading() -> bool:
    """Return whether a thread of the process is loading the model."""
    return _LOADING.locked()


def fold_marks(text: str) -> str:
    """Return a text in the Unicode form NFKC, without acute and grave marks on Cyrillic letters."""
    return unicodedata.normalize("NFKC", _STRESS.sub("", unicodedata.normalize("NFKD", text)))


@cache
def _load_vectors(dimension: int) -> RussianVectors:
    return RussianVectors(Navec.load(distribution("natasha").locate_file(FILE)), dimension)


def _hash_word(word: str, dimension: int) -> NDArray[np.float32]:
    """Return a vector of length 1 that only depends on the characters of a word."""
    digest = hashlib.shake_128(word.encode()).digest(dimension)
    signs = np.frombuffer(digest, dtype=np.uint8).astype(np.float32) - 127.5
    return signs / np.linalg.norm(signs)
