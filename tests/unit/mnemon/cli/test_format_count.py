"""Counts with nouns and verbs, as commands show them."""

import pytest

from mnemon.display_text import format_count


@pytest.mark.parametrize(
    ("count", "noun", "verb", "shown"),
    [
        (1, "segment", "", "1 segment"),
        (0, "erasure", "", "0 erasures"),
        (2, "older entry", "", "2 older entries"),
        (2, "key", "is", "2 keys are"),
        (1, "event", "is", "1 event is"),
        (2000, "event", "was", "2,000 events were"),
    ],
)
def test_noun_and_verb_agree_with_the_count(count: int, noun: str, verb: str, shown: str) -> None:
    assert format_count(count, noun, verb) == shown
