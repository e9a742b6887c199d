"""Wording: brings texts into forms for comparison, and compiles regular expressions of several lines."""

import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:[+#]+)?")
"""A word, with the signs that tell C++ and C# from C."""


def compile_pattern(lines: str) -> re.Pattern[str]:
    """Compile a regular expression written over several lines, without the white space around each line.

    Letter case does not count.
    """
    return re.compile("".join(line.strip() for line in lines.splitlines()), re.IGNORECASE)


def split_word_list(lines: str) -> frozenset[str]:
    """Return the set of the words in a text of several lines."""
    return frozenset(lines.split())


def join_lines(text: str) -> str:
    """Return the text with each run of white space as one space, and none at its ends."""
    return " ".join(text.split())


@lru_cache(maxsize=50_000)
def join_words(text: str) -> str:
    """Return the text's words in lower case, `ё` as `е`, with single spaces between and around them."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("ё", "е")
    return f" {' '.join(_WORD.findall(plain))} "
