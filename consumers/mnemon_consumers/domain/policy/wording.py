"""Wording: brings texts into forms for comparison, and compiles regular expressions of several lines."""

import re
from functools import lru_cache

from mnemon_consumers.domain.alignment.morphology import COMBINING_MARKS, fold_characters, is_symbol

_PART = re.compile(rf"(?:(?<!\w)[-−](?=\d))?[^\W_](?:[^\W_]|[{COMBINING_MARKS}])*[+#]*|[^\w\s]")
"""A word, with the signs that tell C++ and C# from C, and -5 from 5; or a punctuation mark or symbol."""


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
    """Return the words, emoji, similar symbols and currency signs of a text, with single spaces around them.

    All letters are in lower case, with `ё` as `е`.
    """
    parts = _PART.findall(fold_characters(text).casefold())
    said = (each for each in parts if each[0].isalnum() or len(each) > 1 or is_symbol(each))
    return f" {' '.join(said)} "
