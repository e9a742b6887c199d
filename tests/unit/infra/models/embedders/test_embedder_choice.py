"""Choice of the embedder by the settings, with a replacement of the package that `test_fastembed` runs."""

import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mnemon_contracts.settings.groups import Embedding
from mnemon_infra.config import Deployment
from mnemon_infra.models.embedders.embedder_choice import open_embedder
from mnemon_infra.models.embedders.fastembed_embeddings import USUAL_MODEL, load_fastembed
from mnemon_infra.models.embedding import TRANSFORMER, EmbeddingNotConfigured, EmbeddingUnavailable


class ModelOfFastembed:
    """Replacement of `TextEmbedding` with the documented signatures and return values of fastembed 0.7."""

    def __init__(self, model_name: str) -> None:
        if model_name == "broken":
            raise OSError("no network")

    @classmethod
    def list_supported_models(cls) -> list[dict[str, Any]]:
        return [{"model": USUAL_MODEL, "dim": 3}, {"model": "broken", "dim": 3}]

    def passage_embed(self, texts: Iterable[str]) -> Iterator[NDArray[np.float32]]:
        for text in texts:
            yield np.array([len(text), 0, 4], dtype=np.float32)

    def query_embed(self, query: str) -> Iterator[NDArray[np.float32]]:
        yield np.array([0, len(query), 4], dtype=np.float32)


@pytest.fixture
def _fastembed_stands_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = ModuleType("fastembed")
    vars(module)["TextEmbedding"] = ModelOfFastembed
    monkeypatch.setitem(sys.modules, "fastembed", module)
    load_fastembed.cache_clear()
    yield
    load_fastembed.cache_clear()


async def test_setting_none_opens_no_embedder() -> None:
    async with open_embedder(Embedding(provider="none"), Deployment()) as model:
        assert model is None


async def test_default_embedder_has_static_vectors() -> None:
    async with open_embedder(Embedding(), Deployment()) as model:
        assert model is not None
        assert (model.model, model.dimension) == ("wordllama/l2_supercat_256", 256)
    async with open_embedder(Embedding(model="l2_supercat_256"), Deployment()) as again:
        assert again is model


async def test_an_unknown_static_model_is_refused() -> None:
    with pytest.raises(EmbeddingNotConfigured, match=r"no model word2vec\. Name no model, or l2_super"):
        async with open_embedder(Embedding(model="word2vec"), Deployment()):
            pass


async def test_missing_fastembed_is_reported_with_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    load_fastembed.cache_clear()
    with pytest.raises(EmbeddingNotConfigured, match=r'pip install "mnemon\[fastembed\]"'):
        async with open_embedder(Embedding(provider="fastembed"), Deployment()):
            pass


@pytest.mark.usefixtures("_fastembed_stands_in")
async def test_fastembed_embeds_texts_and_queries_separately() -> None:
    async with open_embedder(Embedding(provider="fastembed"), Deployment()) as model:
        assert model is not None
        assert (model.model, model.dimension) == (f"fastembed/{USUAL_MODEL}", 3)
        assert model.thresholds == TRANSFORMER
        assert await model.embed(["tea", " "]) == pytest.approx(np.array([[0.6, 0, 0.8], [0, 0, 0]]))
        assert await model.embed_query("чай") == pytest.approx(np.array([0, 0.6, 0.8]))
        assert not (await model.embed_query("")).any()
        assert await model.compute_statistics(["tea"]) is None


@pytest.mark.usefixtures("_fastembed_stands_in")
@pytest.mark.parametrize(
    ("name", "error"), [("unheard-of", EmbeddingNotConfigured), ("broken", EmbeddingUnavailable)]
)
async def test_model_that_fastembed_cannot_load_is_named(name: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=name):
        async with open_embedder(Embedding(provider="fastembed", model=name), Deployment()):
            pass
