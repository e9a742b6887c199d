"""Candidates that a search keeps."""

import pytest

from mnemon_consumers.retrieve.search.candidates import select_relevant
from mnemon_consumers.retrieve.search.fusion import FusedCandidate
from mnemon_infra.models.embedders.wordllama import THRESHOLDS
from mnemon_infra.models.embedding import TRANSFORMER

BY_WORDS = FusedCandidate({}, 0.9, 0.9, 0.0, 0.5, 0.1)
BY_MEANING = FusedCandidate({}, 0.4, 0.0, 0.9, 0.0, 0.7)
FAR = FusedCandidate({}, 0.1, 0.0, 0.1, 0.0, 0.1)


@pytest.mark.parametrize(
    "query", ["When did Anna move?", "Où habite Zoë?", "Who has a сrush?", "42", "Где живёт Анна?"]
)
def test_similar_texts_are_relevant_in_latin_script_and_in_russian(query: str) -> None:
    assert select_relevant([BY_WORDS, BY_MEANING, FAR], query, THRESHOLDS) == [BY_WORDS, BY_MEANING]


@pytest.mark.parametrize("query", ["アンナはどこ", "Πού μένει;", "Πού είναι η Pixel;", "Хто їде до Києва?"])
def test_similarity_of_the_default_model_makes_no_text_relevant_in_other_languages(query: str) -> None:
    (kept,) = select_relevant([BY_WORDS, BY_MEANING, FAR], query, THRESHOLDS)
    assert kept == BY_WORDS._replace(trust=THRESHOLDS.trust_other)


def test_other_models_know_all_languages() -> None:
    assert select_relevant([BY_WORDS, BY_MEANING], "Где живёт Анна?", TRANSFORMER) == [BY_WORDS, BY_MEANING]


def test_all_candidates_are_relevant_without_a_model() -> None:
    assert select_relevant([BY_WORDS, FAR], "?", None) == [BY_WORDS, FAR]


def test_facts_are_relevant_with_less_similarity_than_messages() -> None:
    near = FusedCandidate({}, 0.4, 0.0, 0.9, 0.0, 0.22)
    assert select_relevant([near], "Where is Anna?", THRESHOLDS) == []
    assert select_relevant([near], "Where is Anna?", THRESHOLDS.for_facts()) == [near]


def test_facts_and_messages_of_other_models_share_a_limit() -> None:
    assert TRANSFORMER.for_facts() is TRANSFORMER
