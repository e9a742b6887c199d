"""Static vectors of Russian words: near for words of one topic, constant, and loaded on first use."""

import subprocess
import sys

import numpy as np
import pytest

from mnemon_infra.models.embedders.russian_vectors import RussianVectors, load_russian_vectors

DIMENSION = 256

LOADING = """
import asyncio
from unittest.mock import patch

from mnemon_infra.models.embedders import russian_vectors
from mnemon_infra.models.embedders.russian_vectors import are_russian_vectors_loaded
from mnemon_infra.models.embedders.wordllama import load_wordllama


async def main() -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.001)
            beats += 1

    model = load_wordllama()
    await model.embed(["I live in Leeds", "Zoë", "his \u0441rush"])
    assert not are_russian_vectors_loaded()
    heart = asyncio.create_task(beat())
    with patch.object(russian_vectors.Navec, "load", side_effect=russian_vectors.Navec.load) as load:
        await asyncio.gather(*(model.embed_query(f"мир {number}") for number in range(8)))
    assert load.call_count == 1
    heart.cancel()
    assert are_russian_vectors_loaded()
    assert beats > 10


asyncio.run(main())
"""


@pytest.fixture(scope="module")
def vectors() -> RussianVectors:
    return load_russian_vectors(DIMENSION)


def similarity(vectors: RussianVectors, one: str, other: str) -> float:
    a, b = vectors.sum_words(one), vectors.sum_words(other)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize(
    ("word", "near", "far"),
    [
        ("начальник", "руководитель", "капуста"),
        ("тягач", "грузовик", "алименты"),
        ("зарплата", "оклад", "овчарка"),
    ],
)
def test_words_of_one_topic_are_near(vectors: RussianVectors, word: str, near: str, far: str) -> None:
    assert similarity(vectors, word, near) > 0.35
    assert similarity(vectors, word, far) < 0.15


def test_frequent_words_hardly_count(vectors: RussianVectors) -> None:
    assert similarity(vectors, "а я уже и не был в Казани", "Казани") > 0.9


def test_a_word_without_a_vector_is_near_to_itself_only(vectors: RussianVectors) -> None:
    assert similarity(vectors, "Зюзюка", "зюзюка") == pytest.approx(1)
    assert abs(similarity(vectors, "Зюзюка", "Пусюка")) < 0.25
    assert abs(similarity(vectors, "17", "18")) < 0.25


def test_spellings_and_parts_of_a_word_count(vectors: RussianVectors) -> None:
    assert similarity(vectors, "тёща", "теща") == pytest.approx(1)
    assert similarity(vectors, "программист-стажёр", "программист") > 0.5


def test_a_text_without_russian_words_has_no_vector(vectors: RussianVectors) -> None:
    assert not vectors.sum_words("tea, please!").any()
    assert vectors.sum_words("").shape == (DIMENSION,)


def test_vectors_are_those_of_stored_points(vectors: RussianVectors) -> None:
    """Points in the vector store have these values. Other values require a new `bm25.VERSION`."""
    assert vectors.sum_words("Казань")[:4] == pytest.approx([-0.0640, -0.0582, 0.0400, -0.0272], abs=1e-4)


@pytest.mark.long
def test_model_is_loaded_in_another_thread_for_the_first_russian_text() -> None:
    subprocess.run([sys.executable, "-c", LOADING], check=True)
