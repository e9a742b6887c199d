"""After a failure of the embedding model, searches use words only for a while."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search.query import query_embedder
from mnemon_consumers.retrieve.search.query.query_embedder import EMBEDDING_PAUSE
from mnemon_consumers.retrieve.search.service import Search
from mnemon_contracts.settings.groups import Retrieval
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.models.embedders import russian_vectors
from mnemon_infra.models.embedders.russian_vectors import RussianVectors, load_russian_vectors
from mnemon_infra.models.embedders.wordllama import load_wordllama
from mnemon_infra.models.embedding import CorpusStatistics, EmbeddingUnavailable, Thresholds
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.vector_index import VectorIndex

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class _FailingEmbedder:
    """A model that fails until `is_back` is set, and counts the queries that it receives."""

    model = "failing/model"
    dimension = 4
    is_loading = False
    thresholds = Thresholds(relevant=0.3, update=0.85, duplicate=0.95)
    asked = 0
    is_back = False

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.zeros((len(texts), self.dimension), np.float32)

    async def compute_statistics(self, texts: Sequence[str]) -> CorpusStatistics | None:
        return None

    async def embed_query(self, text: str, statistics: CorpusStatistics | None = None) -> NDArray[np.float32]:
        self.asked += 1
        if not self.is_back:
            raise EmbeddingUnavailable("no answer")
        return np.zeros(self.dimension, np.float32)


async def test_failed_embedding_model_is_paused(
    database: Database,
    deployment: Deployment,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(query_embedder, "time", SimpleNamespace(monotonic=lambda: clock.now))
    embedder = _FailingEmbedder()
    located = deployment.model_copy(update={"vectors_folder": tmp_path_factory.mktemp("pause")})
    async with open_vectors(located, model=embedder.model, dimension=embedder.dimension) as vectors:
        search = Search(database, Memory(database, LiveSettings(), 10), VectorIndex(vectors, embedder))

        async def is_degraded() -> bool:
            query = await search.embed_query(("acme", "u1"), "tea", NOW)
            found = await search.find_hits(query, (), 5, None, Retrieval())
            return "embedding" in found.degraded

        for _ in range(3):
            assert await is_degraded()
            clock.now += EMBEDDING_PAUSE / 4
        assert embedder.asked == 1, "not asked again so soon"

        clock.now += EMBEDDING_PAUSE
        assert await is_degraded()
        assert embedder.asked == 2

        embedder.is_back = True
        assert await is_degraded(), "the pause lasts, though it would answer"
        clock.now += EMBEDDING_PAUSE
        assert not await is_degraded()
        assert not await is_degraded()
        assert embedder.asked == 4


async def test_an_embedding_model_is_not_paused_while_it_loads(
    database: Database,
    deployment: Deployment,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors_of_words, may_load = load_russian_vectors(256), threading.Event()

    @cache
    def load_slowly(dimension: int) -> RussianVectors:
        may_load.wait(timeout=60)
        return vectors_of_words

    monkeypatch.setattr(russian_vectors, "_load_vectors", load_slowly)
    embedder = load_wordllama()
    located = deployment.model_copy(update={"vectors_folder": tmp_path_factory.mktemp("loading")})
    async with open_vectors(located, model=embedder.model, dimension=embedder.dimension) as vectors:
        search = Search(database, Memory(database, LiveSettings(), 10), VectorIndex(vectors, embedder))
        with monkeypatch.context() as impatient:
            impatient.setattr(query_embedder, "EMBEDDING_WAIT", 0.05)
            query = await search.embed_query(("acme", "u1"), "чай", NOW)
        assert (query.meaning, query.degraded) == (None, ("embedding",))

        may_load.set()
        await asyncio.to_thread(load_russian_vectors, embedder.dimension)
        query = await search.embed_query(("acme", "u1"), "чай", NOW)
        assert query.meaning is not None
        assert query.degraded == ()
