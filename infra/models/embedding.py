"""What mnemon asks of an embedding model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosine similarities that mean something for one model.

    Attributes:
        update: above it a fact is rewritten by a newer one.
        duplicate: above it two facts say the same.
        relevant: below it a hit has nothing to do with the query.
    """

    update: float
    duplicate: float
    relevant: float


class EmbeddingUnavailable(Exception):
    """Not now: the provider does not answer. The same may work later."""


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

        Raises:
            EmbeddingUnavailable: the provider does not answer.
        """

    async def embed_query(self, text: str, sample: Sequence[str] = ()) -> NDArray[np.float32]:
        """The vector to search with; `sample` are texts of the tenant, for models that weight by rarity.

        Raises:
            EmbeddingUnavailable: the provider does not answer.
        """
