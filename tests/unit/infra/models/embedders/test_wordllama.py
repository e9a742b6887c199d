"""Static vectors of WordLlama: of texts, of queries with weighted words, and of tokens to match."""

import asyncio

import numpy as np
import pytest
from numpy.typing import NDArray

from mnemon_infra.models.embedders import wordllama as module
from mnemon_infra.models.embedders.wordllama import WordLlama, load_wordllama
from mnemon_infra.models.embedding import EmbeddingNotConfigured


@pytest.fixture(scope="module")
def model() -> WordLlama:
    return load_wordllama()


def similarity(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float(one @ other)


async def test_paraphrases_are_near(model: WordLlama) -> None:
    likes, enjoys, weather = await model.embed(
        ["User likes Python", "The user enjoys Python", "It will rain in Paris tomorrow"]
    )
    assert similarity(likes, enjoys) == pytest.approx(0.78, abs=0.02)
    assert similarity(likes, weather) < model.thresholds.relevant


async def test_vectors_have_length_1_and_the_name_of_the_model(model: WordLlama) -> None:
    vectors = await model.embed(["short", "мир", "👍", "word " * 5000])
    assert vectors.shape == (4, model.dimension) == (4, 256)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)
    assert model.model == "wordllama/l2_supercat_256"


async def test_empty_text_is_near_to_nothing(model: WordLlama) -> None:
    assert (await model.embed([])).shape == (0, 256)
    assert not (await model.embed(["", " \n\t"])).any()
    assert not (await model.embed_query("")).any()
    assert not (await model.embed_query("", await model.compute_statistics(["tea"]))).any()


async def test_vector_of_a_text_does_not_depend_on_other_texts(model: WordLlama) -> None:
    texts = [f"message {number} of somebody" * (1 + number % 7) for number in range(1000)]
    together = await model.embed(texts)
    for number in (0, 1, 500, 999):
        alone = await model.embed([texts[number]])
        assert np.array_equal(alone[0], together[number])


async def test_of_a_long_text_the_beginning_counts(model: WordLlama) -> None:
    text = "tea and cake " * 2000
    cut, whole = await model.embed([text[: module.LONGEST], text + "other words entirely"])
    assert np.array_equal(cut, whole)


async def test_vector_of_a_query_without_statistics_is_near_that_of_the_text(model: WordLlama) -> None:
    (text,) = await model.embed(["Where does Anna work?"])
    assert 0.9 < similarity(await model.embed_query("Where does Anna work?"), text) < 1


async def test_russian_paraphrases_are_near(model: WordLlama) -> None:
    boss, manager, weather = await model.embed(
        ["Мой начальник уволился", "Руководитель ушёл с работы", "Завтра обещают дождь"]
    )
    assert similarity(boss, manager) > 0.4
    assert abs(similarity(boss, weather)) < model.thresholds.relevant


async def test_words_of_both_languages_count_in_a_mixed_text(model: WordLlama) -> None:
    mixed, english, russian = await model.embed(["Купил себе MacBook Pro", "MacBook Pro", "Купил себе"])
    assert similarity(mixed, english) > 0.5
    assert similarity(mixed, russian) > 0.5
    assert abs(similarity(english, russian)) < 0.2


async def test_punctuation_in_a_russian_text_does_not_change_its_vector(model: WordLlama) -> None:
    plain, marked = await model.embed(["Живу в Казани", "Живу в Казани!!! :-)"])
    assert np.array_equal(plain, marked)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("О́зеро", "Озеро"),
        ("мои\u0306 чаи\u0306", "мой чай"),
        ("Живёт в Москве", "Живет в Москве"),
        ("я ×××", "я"),
        ("МОСТ", "мост"),
    ],
)
async def test_spellings_of_a_russian_text_have_one_vector(model: WordLlama, one: str, other: str) -> None:
    a, b = await model.embed([one, other])
    assert similarity(a, b) == pytest.approx(1)


@pytest.mark.parametrize("text", ["҉", "1҉2҉", "1" * 8000 + "привет", " " * 9000 + "привет", "-" * 8000 + "мир"])
async def test_texts_without_a_word_in_their_beginning_have_a_vector(model: WordLlama, text: str) -> None:
    assert np.isfinite(await model.embed([text])).all()
    assert np.isfinite(await model.embed_query(text)).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Зюзя ест корм", "Пуся ест корм"),
        ("У меня 3 кота", "У меня 5 котов"),
        ("Анна-Зюзюка поёт", "Анна-Пусюка поёт"),
        ("Группа крови 2+", "Группа крови 2-"),
        ("Любит ☕", "Любит 🍵"),
        ("мир 日本語", "мир 中国"),
    ],
)
async def test_facts_that_differ_in_a_name_or_a_number_have_other_vectors(
    model: WordLlama, one: str, other: str
) -> None:
    a, b = await model.embed([one, other])
    assert similarity(a, b) < 0.95


async def test_letter_case_of_russian_words_does_not_count_in_a_match(model: WordLlama) -> None:
    lower, upper = await model.match_tokens("сантехник", ["сантехник пришёл", "Сантехник пришёл"])
    assert lower == upper == pytest.approx(1.0)


async def test_words_in_all_texts_of_a_tenant_hardly_count_in_a_query(model: WordLlama) -> None:
    texts = [f"Anna went to place number {number}" for number in range(2000)]
    statistics = await model.compute_statistics(texts)
    (anna, skiing) = await model.embed(["Anna", "skiing"])
    plain = await model.embed_query("Anna skiing")
    weighted = await model.embed_query("Anna skiing", statistics)
    assert similarity(weighted, skiing) > similarity(plain, skiing) + 0.1
    assert similarity(weighted, anna) < similarity(plain, anna) - 0.1
    assert np.linalg.norm(weighted) == pytest.approx(1)


async def test_empty_statistics_equal_the_defaults(model: WordLlama) -> None:
    assert np.array_equal(
        await model.embed_query("Anna skiing"),
        await model.embed_query("Anna skiing", await model.compute_statistics([])),
    )


async def test_tokens_match_the_texts_that_have_them(model: WordLlama) -> None:
    texts = ["Anna adopted a dog", "Anna adopted a puppy", "It rains in Paris", "", "Anna adopted a dog"]
    dog, puppy, rain, empty, again = await model.match_tokens("dog", texts)
    assert dog == again == pytest.approx(1.0)
    assert rain < puppy < dog
    assert empty == 0.0
    assert not (await model.match_tokens("", texts)).any()
    assert (await model.match_tokens("dog", [])).shape == (0,)


async def test_words_in_all_texts_of_a_tenant_hardly_count_in_a_match(model: WordLlama) -> None:
    statistics = await model.compute_statistics(["Melanie went to the market"] * 500)
    market, rare = await model.match_tokens("Melanie zebra", ["Melanie", "zebra"], statistics)
    assert market < 0.3 < 0.7 < rare


async def test_of_a_long_text_only_the_begin_is_matched(model: WordLlama) -> None:
    text = "tea " * 1000 + "zebra"
    (alone,) = await model.match_tokens("zebra", ["tea"])
    assert await model.match_tokens("zebra", [text]) == pytest.approx(alone)


async def test_many_texts_do_not_hold_up_the_event_loop(model: WordLlama) -> None:
    texts = [f"Caroline: I went to a support group on day {number}, so powerful." for number in range(10_000)]
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.001)
            beats += 1

    heart = asyncio.create_task(beat())
    await model.embed(texts)
    heart.cancel()
    assert beats > 10


def test_the_model_is_loaded_once() -> None:
    assert load_wordllama() is load_wordllama()


def test_a_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_package_folder", lambda: None)
    with pytest.raises(EmbeddingNotConfigured, match=r'pip install "mnemon\[server\]"'):
        load_wordllama.__wrapped__()
