"""Language of a context's fixed words, detected from the script in which the user writes."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

from mnemon_consumers.retrieve.context.wording import ContextLanguage

ENOUGH_LETTERS: Final = 40
"""Number of letters that suffices to detect the language. If the user's messages have fewer, other texts are
read, too. No single word has as many letters."""

MOST_CHARACTERS: Final = 400
"""Maximum number of characters of each text to read, so that a pasted document does not outweigh other
texts."""

CACHED_COUNTS: Final = 4096
"""Maximum number of cached letter counts, two for each text; they take up to 3 MB. The texts of one context
recur in the next."""

CYRILLIC_SHARE: Final = 0.4
"""Minimum share of Cyrillic letters of a Russian text. The share is less than half, because Russian sentences
often quote English names and code, but English sentences seldom quote Russian.
"""

_CYRILLIC: Final = re.compile("[А-Яа-яЁё]+")
_LATIN: Final = re.compile("[A-Za-z]+")


def detect_language(messages: Sequence[str], known: Iterable[str]) -> ContextLanguage:
    """Return the language in which most texts are written, by the first `MOST_CHARACTERS` of each.

    Each text has one vote; in a tie, the language with more letters wins. So one foreign message among
    several does not change the language. A change would alter the headings before the facts, in the prefix of
    a prompt that providers cache. Without a letter in either script, the language is English.

    Args:
        messages: messages of the user.
        known: other texts such as facts and summaries, read until the texts have `ENOUGH_LETTERS` letters.
    """
    votes: Counter[ContextLanguage] = Counter()
    letters: Counter[ContextLanguage] = Counter()
    for number, text in enumerate(chain(messages, known)):
        if number >= len(messages) and letters.total() >= ENOUGH_LETTERS:
            break
        beginning = text[:MOST_CHARACTERS]
        cyrillic, latin = _count_letters(_CYRILLIC, beginning), _count_letters(_LATIN, beginning)
        if cyrillic + latin:
            votes["ru" if cyrillic >= (cyrillic + latin) * CYRILLIC_SHARE else "en"] += 1
            letters["ru"] += cyrillic
            letters["en"] += latin
    return "ru" if (votes["ru"], letters["ru"]) > (votes["en"], letters["en"]) else "en"


@lru_cache(maxsize=CACHED_COUNTS)
def _count_letters(script: re.Pattern[str], text: str) -> int:
    return sum(map(len, script.findall(text)))
