"""Embedder that runs transformers in this process with the package `fastembed` (extra `fastembed`).

The package downloads a model on first use. The tests run the package with a small model that they build; none
of its published models is downloaded in a test.
"""

import asyncio
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mnemon_infra.models.embedding import (
    TRANSFORMER,
    CorpusStatistics,
    EmbeddingNotConfigured,
    EmbeddingUnavailable,
    normalise_length,
)

USUAL_MODEL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
"""Default model: 50 languages, 384 dimensions, 220 MB."""


class TextEmbedding(Protocol):
    """The part of `fastembed.TextEmbedding` that this module uses."""

    def passage_embed(self, texts: Sequence[str]) -> Iterator[NDArray[np.float32]]: ...

    def query_embed(self, query: str) -> Iterator[NDArray[np.float32]]: ...


class FastEmbed:
    """A transformer in this process. `embed` and `embed_query` run the model in another thread.

    Attributes:
        model, dimension, thresholds, is_loading: see `Embedder`.
    """

    thresholds = TRANSFORMER
    is_loading = False

    def __init__(self, name: str, transformer: TextEmbedding) -> None:
        self.model = f"fastembed/{name}"
        self.dimension = len(next(iter(transformer.query_embed("dimension"))))
        self._transformer = transformer

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors to store, one row for each text, of length 1; all zeros for white space."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        said = {row: text for row, text in enumerate(texts) if text.strip()}
        if said:
            found = await asyncio.to_thread(
                lambda: list(self._transformer.passage_embed(list(said.values())))
            )
            vectors[list(said)] = normalise_length(np.asarray(found, dtype=np.float32))
        return vectors

    async def compute_statistics(self, texts: Sequence[str]) -> None:
        """Return None: a transformer weighs words itself."""

    async def embed_query(self, text: str, statistics: CorpusStatistics | None = None) -> NDArray[np.float32]:
        """Return the vector of a query, of length 1, or all zeros for white space."""
        if not text.strip():
            return np.zeros(self.dimension, dtype=np.float32)
        (found,) = await asyncio.to_thread(lambda: list(self._transformer.query_embed(text)))
        return normalise_length(np.asarray(found, dtype=np.float32))


@cache
def load_fastembed(name: str = USUAL_MODEL) -> FastEmbed:
    """Return the model, loaded once per process and downloaded on first use on a machine.

    Raises:
        EmbeddingNotConfigured: the package is not installed, or has no such model.
        EmbeddingUnavailable: the model cannot be loaded now.
    """
    try:
        package = import_module("fastembed")
    except ModuleNotFoundError:
        raise EmbeddingNotConfigured(
            'fastembed is not installed; install it with `pip install "mnemon[fastembed]"`'
        ) from None
    known = {str(model["model"]) for model in package.TextEmbedding.list_supported_models()}
    if name not in known:
        raise EmbeddingNotConfigured(
            f"fastembed has no model {name}. Name a model of this list in embedding.model, or in the "
            f"option of the command: {', '.join(sorted(known))}"
        )
    try:
        return FastEmbed(name, package.TextEmbedding(model_name=name))
    except Exception as error:  # errors of the download: of requests, huggingface or fastembed itself
        reason = str(error).partition("\n")[0]
        raise EmbeddingUnavailable(
            f"fastembed cannot load {name}: {reason}. Check the free disk space, and the "
            "network, because the model is downloaded"
        ) from error
