"""Record of the model and term weights of vectors: another model is refused, other weights are reported."""

import pytest
from structlog.testing import capture_logs

from mnemon_infra.models.words import bm25
from mnemon_infra.vectors.embedding_metadata import EmbeddingMetadata
from mnemon_infra.vectors.port import VectorsOutdated

CURRENT = EmbeddingMetadata(model="wordllama/m", dimension=256, terms=bm25.VERSION)


def test_record_of_0_1_0_is_readable_and_its_term_weights_are_reported() -> None:
    recorded = EmbeddingMetadata.parse('{"model":"wordllama/m","dimension":256}')
    with capture_logs() as logs:
        CURRENT.require_same_model(recorded, "the vectors in x")

    assert [(each["event"], each["version"], each["current"]) for each in logs] == [
        ("outdated term weights found", 1, bm25.VERSION)
    ]
    assert "run `mnemon rebuild`, or stop mnemon and run `mnemon reindex`" in logs[0]["next_step"]


def test_record_of_this_version_is_accepted_in_silence() -> None:
    with capture_logs() as logs:
        CURRENT.require_same_model(EmbeddingMetadata.parse(CURRENT.model_dump_json()), "the vectors in x")
    assert logs == []


def test_vectors_of_another_model_are_refused() -> None:
    with pytest.raises(VectorsOutdated, match="mnemon reindex"):
        CURRENT.require_same_model(CURRENT.model_copy(update={"model": "openai/other"}), "the vectors in x")
