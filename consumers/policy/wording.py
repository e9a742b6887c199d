"""When two sentences say the same by their words alone."""

import re
import unicodedata
from enum import Enum
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:[+#]+)?")
"""A word, with the signs by which C++ and C# differ from C."""

_NEGATIONS = {"не", "нет", "ни", "никогда", "больше", "бросил", "бросила", "перестал", "перестала"} | {
    *("not", "no", "never", "longer", "don", "t", "doesn", "didn", "isn", "aren", "wasn", "stopped", "quit")
}
"""Of "doesn't", `_WORD` leaves "doesn" and "t"."""


class Overlap(Enum):
    """How the words of a new text stand to those of an old one."""

    SAME = "the same words"
    LESS = "the old text says it, and more"
    MORE = "the new text says what the old one did, and more"
    DENIED = "one of them denies what the other says"


def pattern(lines: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """A regular expression that is written over several lines: white space around them does not count."""
    return re.compile("".join(line.strip() for line in lines.splitlines()), flags)


def word_set(lines: str) -> frozenset[str]:
    """Words that are written over several lines."""
    return frozenset(lines.split())


def one_line(text: str) -> str:
    """The text with single spaces, and none at its ends."""
    return " ".join(text.split())


@lru_cache(maxsize=50_000)
def words(text: str) -> str:
    """The text's words, in lower case, with single spaces between and around them."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("ё", "е")
    return f" {' '.join(_WORD.findall(plain))} "


def overlap(new: str, old: str) -> Overlap | None:
    """How a new text stands to an old one, both as `words` gives them; None when neither holds the other."""
    if new not in old and old not in new:
        return None
    if new == old:
        return Overlap.SAME
    longer, shorter = (new, old) if len(new) > len(old) else (old, new)
    # "Works at Acme" stands in "No longer works at Acme", and says the opposite.
    before, _, after = longer.partition(shorter)
    if _NEGATIONS.intersection(before.split()[-2:] + after.split()[:2]):
        return Overlap.DENIED
    return Overlap.MORE if longer is new else Overlap.LESS
