"""Embedder with preset similarities, for tests that need no embedding model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from mnemon_infra.models.embedding import TRANSFORMER, CorpusStatistics, Thresholds

DIMENSION = 64

_ABOUT = re.compile(r"thing-\d+")


@dataclass
class PresetEmbedder:
    """Embedder in which texts with the same word `thing-<number>` have a similarity of about 0.98.

    Any other two texts have a similarity near 0.

    Attributes:
        similar: pairs of texts with a cosine similarity; the first text has its usual vector.
    """

    similar: Sequence[tuple[str, str, float]] = ()
    model: str = "given/64"
    dimension: int = DIMENSION
    thresholds: Thresholds = field(default=TRANSFORMER)
    is_loading: bool = False

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(-1, DIMENSION)

    async def compute_statistics(self, texts: Sequence[str]) -> CorpusStatistics | None:
        return None

    async def embed_query(self, text: str, statistics: CorpusStatistics | None = None) -> NDArray[np.float32]:
        return self._vector(text)

    def _vector(self, text: str) -> NDArray[np.float32]:
        for first, second, similarity in self.similar:
            if text == second:
                return _leaning(self._vector(first), text, similarity)
        about = _ABOUT.search(text)
        return _leaning(_random(about[0]), text, 0.99) if about else _random(text)


def _leaning(towards: NDArray[np.float32], text: str, similarity: float) -> NDArray[np.float32]:
    """Return a vector of length 1 that has the cosine similarity `similarity` with the vector `towards`.

    The rest of its direction is random, with `text` as the seed.
    """
    aside = _random(text)
    aside -= (aside @ towards) * towards
    aside /= np.linalg.norm(aside)
    vector: NDArray[np.float32] = similarity * towards + np.sqrt(1 - similarity**2) * aside
    return vector.astype(np.float32)


def _random(seed: str) -> NDArray[np.float32]:
    generator = np.random.default_rng(int.from_bytes(sha256(seed.encode()).digest()[:8]))
    vector = generator.standard_normal(DIMENSION, dtype=np.float32)
    vector /= np.linalg.norm(vector)
    return vector
