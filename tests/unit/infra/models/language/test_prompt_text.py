"""Texts of prompts: long texts are shortened."""

from hypothesis import given
from hypothesis import strategies as st

from mnemon_infra.models.language.prompt_text import shorten_text


def test_long_text_keeps_its_beginning_and_its_ending() -> None:
    assert shorten_text("abcdefgh", 3, 2) == "abc\n[...]\ngh"
    assert shorten_text("abcdefgh", 3) == "abc\n[...]"
    assert shorten_text("abcdefgh", 5, 3) == "abcdefgh"


@given(st.text(), st.integers(0, 20), st.integers(0, 20))
def test_shortened_text_is_not_shortened_again(text: str, beginning: int, ending: int) -> None:
    once = shorten_text(text, beginning, ending)
    assert shorten_text(once, beginning, ending) == once
