"""Tokens are counted by a tokenizer, and never too few."""

from collections.abc import Iterator

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_infra.models import tokens
from mnemon_infra.models.llama_tokenizer import llama_tokenizer
from mnemon_infra.models.tokens import count, cut

TEXTS = [
    "Bye!",
    "I went to a support group yesterday, and it was so powerful.",
    "Yesterday at 5 pm, on 2024-05-12, we paid $1,250.00 for 3 tickets.",
    "Я вчера ходил в группу поддержки, и это было очень мощно: купил молоко и хлеб.",
    "Сделал pull request, смержил в мастер.",
    "превысокомногорассмотрительствующий",
    "東京に行きました。とても楽しかったです。",
    "我喜欢吃苹果",
    "안녕하세요 세계",
    "สวัสดีชาวโลก",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "שלום עולם",
    "Straße, Größe, über Äpfel",
    "👍🎉👨‍👩‍👧‍👦 yes",
    "def f(x):\n    return x**2 + y[3]",
    "https://example.com/a?b=c&d=8f3a9c",
    "c4b6887a-9840-91b9-0925-1020ccfd069a",
    " \n\n\t x  y",
]


@pytest.fixture
def without_the_wheel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tokens, "llama_tokenizer", lambda: None)
    count.cache_clear()
    yield
    count.cache_clear()


def test_the_tokenizer_counts() -> None:
    assert count("") == 0
    assert count("hello") == 1
    assert count("Hello wonderful world") == 3
    assert count("👍") == 5  # a sign that begins a word, and four bytes


def test_words_that_steer_a_model_are_text() -> None:
    assert count("<s>") > 1


@pytest.mark.parametrize("text", TEXTS)
def test_without_the_wheel_nothing_is_counted_short(text: str, request: pytest.FixtureRequest) -> None:
    exact = count(text)
    request.getfixturevalue("without_the_wheel")
    assert exact <= count(text) <= 6 * exact


def test_without_the_wheel_english_and_russian_cost_two_thirds_more_at_most(
    request: pytest.FixtureRequest,
) -> None:
    english, russian = TEXTS[1], TEXTS[3]
    exact = [count(english), count(russian)]
    request.getfixturevalue("without_the_wheel")
    assert count(english) <= 1.7 * exact[0]
    assert count(russian) <= 1.7 * exact[1]


@given(st.one_of(st.text(max_size=60), st.sampled_from(TEXTS)), st.integers(-1, 40))
def test_a_cut_text_is_a_beginning_and_not_too_long(text: str, room: int) -> None:
    beginning = cut(text, room)
    assert text.startswith(beginning)
    assert count(beginning) <= max(room, 0)
    assert (beginning == text) is (count(text) <= max(room, 0)) or text.rstrip() == beginning


@pytest.mark.usefixtures("without_the_wheel")
@pytest.mark.parametrize("text", TEXTS)
def test_a_cut_text_is_a_beginning_without_the_wheel_too(text: str) -> None:
    for room in range(count(text) + 1):
        beginning = cut(text, room)
        assert text.startswith(beginning)
        assert count(beginning) <= room
    assert cut(text, count(text)) == text


def test_a_cut_ends_at_a_word() -> None:
    text = "Anna moved to Nizhnekamsk"
    assert cut(text, count(text) - 1) == "Anna moved to"
    assert cut(text, count("Anna moved")) == "Anna moved"


def test_a_cut_keeps_what_has_no_words() -> None:
    text = "東京に行きました" * 5
    assert count(cut(text, 20)) == 20
    assert cut("👍👍", 5) == "👍"
    assert cut("👍👍", 8) == "👍"
    assert cut("👍", 4) == ""


def test_texts_that_were_counted_do_not_stay_in_memory() -> None:
    tokenizer = llama_tokenizer()
    assert tokenizer is not None
    process = psutil.Process()
    before = process.memory_info().rss
    for number in range(10_000):
        tokenizer.encode(f"{number}: {'tea and cake, ' * 8}")
    assert process.memory_info().rss - before < 10_000_000
