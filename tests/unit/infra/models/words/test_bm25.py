"""Search terms of texts."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_infra.models.embedding import Sparse
from mnemon_infra.models.words.bm25 import weigh_document, weigh_query


def met(asked: str, text: str) -> int:
    """Return how many terms of the query `asked` the text has."""
    return len(set(weigh_query(asked).indices) & set(weigh_document(text).indices))


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("running", "she runs"),
        ("hobbies", "a hobby"),
        ("кошки", "завёл кошку"),
        ("москва", "живёт в Москве"),
        ("работает", "работал"),
        ("ёлка", "купили елку"),
        ("ЕЛКА", "Ёлки"),
        ("PYTHON", "likes python"),
        ("Łodz", "moved to Łódź"),
        ("cafe", "a Café"),
        ("Йога", "и\u0306ога"),  # "й" as two code points, as in file names of macOS
        ("κόσμος", "του κόσμου"),
        ("العالم", "مرحبا بالعالم"),
        ("שלום", "שלום עולם"),
        ("दुनिया", "नमस्ते दुनिया"),
        ("東京", "東京に行きました"),
        ("猫", "猫が好き"),
        ("苹果", "我喜欢吃苹果"),
        ("사과", "사과를 먹다"),
        ("โลก", "สวัสดีชาวโลก"),
        ("2024", "on 2024-05-12"),
        ("12.05.2024", "встреча 12.05.2024"),
        ("42", "квартира 42"),
        ("２０２４", "2024"),
        ("iPhone", "Маша купила iPhone 15 👍"),
        ("купить", "Маша купила iPhone 15 👍"),
        ("Who is Will?", "My brother Will lives in Toronto"),
        ("Who won?", "Anna won the race"),
        ("Расскажи про Тома", "Мой брат Том живёт в Торонто"),
        ("Что мне нельзя?", "Мне нельзя глютен"),
    ],
)
def test_a_word_is_found_in_its_other_shapes(asked: str, text: str) -> None:
    assert met(asked, text) >= 1


def test_scripts_in_one_text_are_all_found() -> None:
    text = "Anna: завтра летим в 東京, gate 12"
    assert [met(asked, text) for asked in ("anna", "летит", "東京", "gates 12")] == [1, 1, 3, 2]


def test_a_word_is_not_found_in_another() -> None:
    assert met("кошка", "собака") == met("cat", "dog") == met("東京", "大阪") == 0


@pytest.mark.parametrize(
    "text", ["", " \n", "👍🎉", "?!…", "what is it", "и это очень", "её ещё всё", "который из твоих"]
)
def test_text_without_words_has_no_terms(text: str) -> None:
    assert weigh_document(text) == weigh_query(text) == Sparse([], [])


def test_a_word_that_is_repeated_counts_more_and_less_each_time() -> None:
    once, twice, thrice = (weigh_document(" ".join(["tea"] * times)).values[0] for times in (1, 2, 3))
    assert once < twice < thrice
    assert thrice - twice < twice - once


def test_word_weighs_less_in_a_long_text() -> None:
    short, long = weigh_document("tea"), weigh_document("tea " + "x1 " * 50)
    weights = dict(zip(long.indices, long.values, strict=True))
    assert 0.6 * short.values[0] < weights[short.indices[0]] < short.values[0]


def test_a_query_asks_for_each_word_once() -> None:
    assert weigh_query("tea tea чай чай").values == [1.0, 1.0]


@given(st.text(max_size=200))
def test_any_text_has_terms_once_each_and_is_found_by_itself(text: str) -> None:
    terms = weigh_document(text)
    assert len(terms.indices) == len(set(terms.indices)) == len(terms.values)
    assert all(value > 0 for value in terms.values)
    assert set(weigh_query(text).indices) == set(terms.indices)


@pytest.mark.parametrize("letter", ["أ", "ـ"])
def test_the_time_for_a_very_long_arabic_word_grows_with_its_length_only(letter: str) -> None:
    begun = time.thread_time()
    weigh_document(letter * 200_000)
    assert time.thread_time() - begun < 1


def test_every_process_and_thread_makes_the_same_terms() -> None:
    text = "Anna: завтра летим в 東京"
    here = weigh_document(text)
    with ThreadPoolExecutor(4) as threads:
        assert all(terms == here for terms in threads.map(weigh_document, [text] * 200))
    program = f"from mnemon_infra.models.words.bm25 import weigh_document; print(weigh_document({text!r}))"
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == str(here)
