"""The words of a sentence, and patterns over several lines."""

import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:[+#]+)?")
"""A word, with the signs by which C++ and C# differ from C."""


def pattern(lines: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """A regular expression that is written over several lines: white space around them does not count."""
    return re.compile("".join(line.strip() for line in lines.splitlines()), flags)


def word_set(lines: str) -> frozenset[str]:
    """Split words that are written over several lines into a set."""
    return frozenset(lines.split())


def one_line(text: str) -> str:
    """The text with single spaces, and none at its ends."""
    return " ".join(text.split())


@lru_cache(maxsize=50_000)
def words(text: str) -> str:
    """The text's words, in lower case, with single spaces between and around them."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("ё", "е")
    return f" {' '.join(_WORD.findall(plain))} "
