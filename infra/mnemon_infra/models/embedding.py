"""What mnemon asks of an embedding model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Dense = NDArray[np.float32]
"""A vector of length 1, of the embedding model's dimension."""


class Sparse(NamedTuple):
    """A sparse vector: weights of terms. The engine multiplies by their inverse document frequency."""

    indices: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosine similarities that mean something for one model.

    Attributes:
        update: above it a fact is rewritten by a newer one.
        duplicate: above it two facts say the same.
        relevant: below it a hit has nothing to do with the query.
        update_other: `update` for texts that are not English, where the model reads those otherwise.
    """

    update: float
    duplicate: float
    relevant: float
    update_other: float | None = None

    def update_for(self, *, is_english: bool) -> float:
        """Return the similarity above which a fact in this language is rewritten."""
        return self.update if is_english or self.update_other is None else self.update_other


TRANSFORMER = Thresholds(update=0.85, duplicate=0.95, relevant=0.6)
"""For every model that reads a sentence as a whole."""


@dataclass(frozen=True, slots=True, eq=False)
class CorpusStatistics:
    """What is rare among some texts: a weight for each token of the model that made it, 125 KB in all."""

    weights: NDArray[np.float32]


class EmbeddingUnavailable(Exception):
    """Not now: the provider does not answer. The same may work later."""


class EmbeddingRefused(EmbeddingUnavailable):
    """The provider refuses the key, the model or the request, and will until that is mended."""


class EmbeddingNotConfigured(Exception):
    """A package or a key is missing; the message says which."""


class Embedder(Protocol):
    """An embedding model.

    Attributes:
        model: provider and model, such as `wordllama/l2_supercat_256`; recorded beside the vectors.
        dimension: of its vectors.
        thresholds: what its similarities mean.
    """

    @property
    def model(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def thresholds(self) -> Thresholds: ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors to be stored, a row each, of length 1.

        A text of nothing but white space is all zeros: near to nothing.

        Raises:
            EmbeddingUnavailable: the provider does not answer.
            EmbeddingRefused: it answers that it will not.
        """

    async def statistics(self, texts: Sequence[str]) -> CorpusStatistics | None:
        """What is rare among a tenant's texts, for its queries; None where the model does not ask for it.

        Costs as much as `embed`: keep it, and make it anew now and then. Some thousand texts suffice.
        """

    async def embed_query(self, text: str, statistics: CorpusStatistics | None = None) -> NDArray[np.float32]:
        """The vector to search with, of length 1 or all zeros.

        Raises:
            EmbeddingUnavailable: the provider does not answer.
            EmbeddingRefused: it answers that it will not.
        """


def of_length_1(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same directions, for one vector or for rows of them; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    normal: NDArray[np.float32] = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return normal
