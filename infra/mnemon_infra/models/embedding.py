"""Port for embedding models."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

LETTER = re.compile(r"[^\W\d_]")
"""A letter of any script."""

_LATIN = re.compile(r"(?=[\u0000-\u024f\u1e00-\u1eff])[^\W\d_]")
_RUSSIAN = re.compile("[а-яё]", re.IGNORECASE)
_OTHER_CYRILLIC = re.compile("[ђѓєѕіїјљњћќўџґ]", re.IGNORECASE)

Dense = NDArray[np.float32]
"""A vector of the embedding model's dimension, of length 1 or all zeros."""


class Sparse(NamedTuple):
    """A sparse vector: weights of terms.

    Attributes:
        indices: ids of the terms.
        values: weight of each term.
        has_rarity: for the query of a search. True keeps the proportions of the weights, because they include
            the rarity of their terms or need none. False lets the engine multiply each weight by the rarity
            of its term within the owner's tenant, for which it visits all points of the tenant that have the
            term.
    """

    indices: Sequence[int]
    values: Sequence[float]
    has_rarity: bool = False


def is_mostly_latin(text: str) -> bool:
    """Return whether at least half of the letters of a text are Latin; True for a text without letters."""
    return 2 * len(_LATIN.findall(text)) >= len(LETTER.findall(text))


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Values at which decisions change, for one embedding model; cosine similarities unless stated otherwise.

    `update`, `update_other` and `duplicate` are for two facts whose relation alignment leaves open.

    Attributes:
        update: similarity above which a newer fact rewrites an older one.
        duplicate: similarity above which two facts say the same.
        relevant: similarity below which a hit without a word or concept of the query is not relevant.
        relevant_fact: `relevant` for facts, of which a user has fewer than messages; None if facts need no
            other value.
        update_other: `update` for texts that are not English; None if the model needs no other value.
        trust_other: share of a similarity that counts in a search with a query that has mostly other letters
            than Latin and Russian ones, or a letter of another Slavic language, such as `ї`.
        answerable: probability of an answer below which a search leaves out messages; None if the weights of
            answerability were fitted with another model.
    """

    update: float
    duplicate: float
    relevant: float
    relevant_fact: float | None = None
    update_other: float | None = None
    trust_other: float = 1.0
    answerable: float | None = None

    def for_facts(self) -> Self:
        """Return the thresholds of a search of facts, with `relevant_fact` in place of `relevant`."""
        return self if self.relevant_fact is None else replace(self, relevant=self.relevant_fact)

    def choose_update_threshold(self, *, is_english: bool) -> float:
        """Return the similarity above which a newer fact rewrites an older one, in English or otherwise."""
        return self.update if is_english or self.update_other is None else self.update_other

    def choose_trust(self, query: str) -> float:
        """Return the share of a similarity that counts in a search with this query.

        The share is 1 if at least half of the letters are Latin or Russian, and none is a Cyrillic letter of
        another Slavic language, such as `ї`; otherwise it is `trust_other`.
        """
        known = len(_LATIN.findall(query)) + len(_RUSSIAN.findall(query))
        is_known = 2 * known >= len(LETTER.findall(query)) and not _OTHER_CYRILLIC.search(query)
        return 1.0 if is_known else self.trust_other


TRANSFORMER = Thresholds(update=0.85, duplicate=0.95, relevant=0.6)
"""Thresholds for every model that reads a sentence as a whole."""


@dataclass(frozen=True, slots=True, eq=False)
class CorpusStatistics:
    """Rarity of tokens in a set of texts: a weight for each token of one model, 125 KiB for 32,000 tokens."""

    weights: NDArray[np.float32]


class EmbeddingUnavailable(Exception):
    """The provider gives no usable answer now, or its model cannot be loaded; a later attempt may succeed."""


class EmbeddingRefused(EmbeddingUnavailable):
    """The provider refuses key, model or request, or gives vectors of another dimension.

    Every attempt fails until the cause is corrected.
    """


class EmbeddingNotConfigured(Exception):
    """A package or a key is missing, the key cannot be sent, or `wordllama` or `fastembed` has no such model.

    The message names the next step.
    """


class Embedder(Protocol):
    """Model that makes vectors from texts: the port that each embedding provider implements.

    Attributes:
        model: provider and model, such as `wordllama/l2_supercat_256`; recorded beside the vectors.
        dimension: dimension of the model's vectors.
        thresholds: values at which decisions change.
        is_loading: whether the process is loading a part of the model now, which it does only once; calls
            that need the part take longer meanwhile.
    """

    @property
    def model(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def thresholds(self) -> Thresholds: ...

    @property
    def is_loading(self) -> bool: ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors to store, one row for each text, of length 1.

        A text of only white space gives zeros, which are similar to no other vector. So does a text that the
        provider refuses, if the provider accepts other texts.

        Raises:
            EmbeddingUnavailable: the provider gives no usable answer.
            EmbeddingRefused: the provider refuses the request.
        """

    async def compute_statistics(self, texts: Sequence[str]) -> CorpusStatistics | None:
        """Return the rarity of tokens in a tenant's texts, for the tenant's queries.

        Return None if the model does not use statistics. The call costs as much as `embed`: keep the result,
        and renew it at intervals. A few thousand texts suffice.
        """

    async def embed_query(self, text: str, statistics: CorpusStatistics | None = None) -> NDArray[np.float32]:
        """Return the vector of a query, of length 1 or all zeros.

        Raises:
            EmbeddingUnavailable: the provider gives no usable answer.
            EmbeddingRefused: the provider refuses the request.
        """


def normalise_length(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale vectors to length 1, for one vector or for rows of them; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    normal: NDArray[np.float32] = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return normal
