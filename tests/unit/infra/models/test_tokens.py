"""Counts of tokens by a tokenizer, and estimates without it that are never too low."""

from collections.abc import Iterator

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_infra.models import tokens
from mnemon_infra.models.llama_tokenizer import load_llama_tokenizer
from mnemon_infra.models.tokens import count_tokens, cut_text

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
    monkeypatch.setattr(tokens, "load_llama_tokenizer", lambda: None)
    count_tokens.cache_clear()
    yield
    count_tokens.cache_clear()


def test_count_is_that_of_the_tokenizer() -> None:
    assert count_tokens("") == 0
    assert count_tokens("hello") == 1
    assert count_tokens("Hello wonderful world") == 3
    assert count_tokens("👍") == 5  # a token for the beginning of a word, and one for each of four bytes


@given(st.one_of(st.sampled_from(TEXTS), st.text()))
def test_count_equals_the_number_of_token_offsets(text: str) -> None:
    tokenizer = load_llama_tokenizer()
    assert tokenizer is not None

    assert count_tokens(text) == len(tokenizer.encode(text, add_special_tokens=False).offsets)


def test_control_tokens_count_as_text() -> None:
    assert count_tokens("<s>") > 1


@pytest.mark.parametrize("text", TEXTS)
def test_estimate_without_the_wheel_is_never_too_low(text: str, request: pytest.FixtureRequest) -> None:
    exact = count_tokens(text)
    request.getfixturevalue("without_the_wheel")
    assert exact <= count_tokens(text) <= 6 * exact


def test_estimate_without_the_wheel_exceeds_the_count_by_two_thirds_at_most(
    request: pytest.FixtureRequest,
) -> None:
    english, russian = TEXTS[1], TEXTS[3]
    exact = [count_tokens(english), count_tokens(russian)]
    request.getfixturevalue("without_the_wheel")
    assert count_tokens(english) <= 1.7 * exact[0]
    assert count_tokens(russian) <= 1.7 * exact[1]


@given(st.one_of(st.text(max_size=60), st.sampled_from(TEXTS)), st.integers(-1, 40))
def test_a_cut_text_is_a_beginning_and_not_too_long(text: str, room: int) -> None:
    beginning = cut_text(text, room)
    assert text.startswith(beginning)
    assert count_tokens(beginning) <= max(room, 0)
    assert (beginning == text) is (count_tokens(text) <= max(room, 0)) or text.rstrip() == beginning


@pytest.mark.usefixtures("without_the_wheel")
@pytest.mark.parametrize("text", TEXTS)
def test_a_cut_text_is_a_beginning_without_the_wheel_too(text: str) -> None:
    for room in range(count_tokens(text) + 1):
        beginning = cut_text(text, room)
        assert text.startswith(beginning)
        assert count_tokens(beginning) <= room
    assert cut_text(text, count_tokens(text)) == text


def test_a_cut_ends_at_a_word() -> None:
    text = "Anna moved to Nizhnekamsk"
    assert cut_text(text, count_tokens(text) - 1) == "Anna moved to"
    assert cut_text(text, count_tokens("Anna moved")) == "Anna moved"


def test_cut_text_without_spaces_ends_at_the_limit() -> None:
    text = "東京に行きました" * 5
    assert count_tokens(cut_text(text, 20)) == 20
    assert cut_text("👍👍", 5) == "👍"
    assert cut_text("👍👍", 8) == "👍"
    assert cut_text("👍", 4) == ""


def test_a_cut_ends_within_a_word_of_a_script_without_spaces() -> None:
    text = "昨天 我们去了杭州西湖，天气非常好，我们还吃了很多好吃的东西"
    beginning = cut_text(text, count_tokens(text) - 1)
    assert beginning == text[:-1]


def test_a_cut_of_korean_ends_at_a_word() -> None:
    text = "저는 매일 아침 커피를 마시고 산책합니다"
    for room in range(count_tokens("저는 매일 아침"), count_tokens(text)):
        beginning = cut_text(text, room)
        assert text[len(beginning)] == " ", beginning


@pytest.mark.parametrize(
    "character", ["कि", "हिं", "👩‍⚕️", "👍🏽", "e\u0301", "ท้", "🇩🇪", "🏴\U000e0067\U000e0062\U000e007f"]
)
def test_a_cut_ends_at_a_character_that_a_reader_sees(character: str) -> None:
    text = character * 20
    for room in range(count_tokens(text)):
        beginning = cut_text(text, room)
        assert beginning == character * (len(beginning) // len(character))


def test_texts_that_were_counted_do_not_stay_in_memory() -> None:
    tokenizer = load_llama_tokenizer()
    assert tokenizer is not None
    process = psutil.Process()
    before = process.memory_info().rss
    for number in range(10_000):
        tokenizer.encode(f"{number}: {'tea and cake, ' * 8}")
    assert process.memory_info().rss - before < 10_000_000
