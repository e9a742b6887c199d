"""Small numbers in words."""

from collections.abc import Mapping
from typing import Final

NUMBERS: Final[Mapping[str, int]] = {
    word: number
    for words in (
        "- one two three four five six seven eight nine ten eleven twelve",
        "- a",
        "- an",
        "- один два три четыре пять шесть семь восемь девять десять",
        "- одну две",
    )
    for number, word in enumerate(words.split())
    if number
}


def number_of(text: str) -> int | None:
    """Return the number that digits or a word mean; an empty text means one, as in «через неделю»."""
    text = text.strip().lower()
    if not text:
        return 1
    return int(text) if text.isdecimal() else NUMBERS.get(text)
