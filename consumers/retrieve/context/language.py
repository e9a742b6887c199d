"""Detects the language of a context's fixed words, by the script in which the user writes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from consumers.retrieve.context.wording import Language

ENOUGH_LETTERS: Final = 80
"""Letters of the user's messages that decide without any other text: more than one foreign word has."""

MOST_CHARACTERS: Final = 400
"""Characters of each text that are looked at: one pasted document does not outweigh what the user writes."""

CYRILLIC_SHARE: Final = 1 / 3
"""Share of Cyrillic letters from which a text is Russian: Russian sentences quote English names and code."""


def detect_language(said: Sequence[str], known: Iterable[str]) -> Language:
    """Return the language in which most texts are written.

    Each text has one vote, and letters decide a tie, so that a single foreign message changes nothing: the
    headings stand before the facts, in the prefix of a prompt that providers cache.

    Args:
        said: messages of the user.
        known: texts that are asked where the user has said little, such as facts and summaries.
    """
    votes: Counter[Language] = Counter()
    letters: Counter[Language] = Counter()
    for number, text in enumerate(chain(said, known)):
        if number >= len(said) and letters.total() >= ENOUGH_LETTERS:
            break
        cyrillic = latin = 0
        for character in text[:MOST_CHARACTERS].casefold():
            cyrillic += "а" <= character <= "я" or character == "ё"
            latin += "a" <= character <= "z"
        if cyrillic + latin:
            votes["ru" if cyrillic >= (cyrillic + latin) * CYRILLIC_SHARE else "en"] += 1
            letters["ru"] += cyrillic
            letters["en"] += latin
    return "ru" if (votes["ru"], letters["ru"]) > (votes["en"], letters["en"]) else "en"
