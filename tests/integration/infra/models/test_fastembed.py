"""The package `fastembed` with a model that the tests write to a folder, so that nothing is downloaded."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from fastembed.text.custom_text_embedding import CustomTextEmbedding
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from mnemon_consumers.app import run_consumers
from mnemon_contracts.settings.groups import Embedding, SettingsV1
from mnemon_infra.config import Deployment
from mnemon_infra.models.embedders.embedder_choice import open_embedder
from mnemon_infra.models.embedders.fastembed_embeddings import load_fastembed
from mnemon_infra.models.embedding import EmbeddingUnavailable
from mnemon_infra.settings.store import write_settings
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed

pytestmark = pytest.mark.long

NAME = "mnemon/words"
VOCABULARY = {
    "[PAD]": (9.0, 9.0, 9.0),
    "[UNK]": (0.0, 0.0, 1.0),
    "tea": (1.0, 0.0, 0.0),
    "zavarka": (1.0, 0.0, 0.0),
    "violin": (0.0, 1.0, 0.0),
}
"""Words with their vectors. The padding's vector is large, so that a mean that includes it is visible."""


def write_model(folder: Path) -> None:
    """Write an ONNX model whose only layer looks up the vector of each word, and its tokenizer."""
    folder.mkdir(parents=True)
    table = numpy_helper.from_array(np.array(list(VOCABULARY.values()), dtype=np.float32), "table")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "words",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "words"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "words", 3])],
        [table],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, folder / "model.onnx")
    vocabulary = {word: number for number, word in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"model_max_length": 16, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


@pytest.fixture
def model_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder from which fastembed loads the model; the tests create it with `write_model`."""
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(CustomTextEmbedding, "SUPPORTED_MODELS", [])
    monkeypatch.setattr(CustomTextEmbedding, "POSTPROCESSING_MAPPING", {})
    TextEmbedding.add_custom_model(
        model=NAME,
        pooling=PoolingType.MEAN,
        normalization=False,
        sources=ModelSource(url="http://localhost:1/words.tar.gz"),
        dim=3,
        model_file="model.onnx",
    )
    load_fastembed.cache_clear()
    yield tmp_path / NAME.partition("/")[2]
    load_fastembed.cache_clear()


async def test_texts_and_queries_get_vectors_of_length_1(model_folder: Path) -> None:
    write_model(model_folder)
    async with open_embedder(Embedding(provider="fastembed", model=NAME), Deployment()) as model:
        assert model is not None
        assert (model.model, model.dimension) == (f"fastembed/{NAME}", 3)

        stored = await model.embed(["tea", " ", "tea violin violin", "zavarka"])
        query = await model.embed_query("violin")

        assert stored.dtype == query.dtype == np.float32
        length = 5**0.5
        assert stored == pytest.approx(
            np.array([[1, 0, 0], [0, 0, 0], [1 / length, 2 / length, 0], [1, 0, 0]])
        )
        assert list(stored @ query) == pytest.approx([0, 0, 2 / length, 0])
        assert not (await model.embed_query(" ")).any()
        assert await model.embed([]) == pytest.approx(np.empty((0, 3)))


async def test_vector_of_a_text_does_not_depend_on_the_others(model_folder: Path) -> None:
    write_model(model_folder)
    texts: Sequence[str] = ["tea", *["violin " * 12] * 300, "zavarka tea"]
    async with open_embedder(Embedding(provider="fastembed", model=NAME), Deployment()) as model:
        assert model is not None

        together = await model.embed(texts)

        for row in (0, 1, -1):
            (alone,) = await model.embed([texts[row]])
            assert together[row] == pytest.approx(alone)


async def test_search_finds_a_fact_of_the_same_meaning(
    model_folder: Path, stock: Stock, deployment: Deployment, tmp_path: Path
) -> None:
    write_model(model_folder)
    await write_settings(stock.connection, SettingsV1(embedding=Embedding(provider="fastembed", model=NAME)))
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(("persist", "index", "retrieve"), with_vectors):
        for fact_id, text in (("ar_001", "tea tea"), ("ar_002", "violin")):
            body = {"fact_id": fact_id, "fact": {"text": text}, "decision": {"proposal_id": fact_id}}
            seq = await stock.publish("memory.acme.u1.fact.saved.v1", body)
        await indexed(stock, seq)

        reply = await stock.ask("search", query="zavarka", explain=True)

    assert [(hit["id"], hit["parts"]["words"]) for hit in reply["hits"]] == [("ar_001", 0.0)]
    assert reply["hits"][0]["parts"]["similarity"] == pytest.approx(1.0, abs=0.001)


async def test_model_without_files_cannot_be_loaded_now(model_folder: Path) -> None:
    with pytest.raises(EmbeddingUnavailable, match=f"fastembed cannot load {NAME}"):
        async with open_embedder(Embedding(provider="fastembed", model=NAME), Deployment()):
            pass
