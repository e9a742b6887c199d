"""Dictionary forms and stems of words, by script: Latin words as English, Cyrillic words as Russian."""

import re
import unicodedata
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

import snowballstemmer

if TYPE_CHECKING:
    from pymorphy3 import MorphAnalyzer

FORMS: Final = 3
"""Readings of a Russian word that count: others are rarer than one in ten."""

NAME_TAGS: Final = ("Name", "Surn", "Patr", "Geox", "Orgn", "Trad")
"""OpenCorpora's grammemes of proper names."""

_CYRILLIC: Final = re.compile("[а-я]")


def normalize(text: str) -> str:
    """Fold compatibility characters, typographic apostrophes and `ё`; the case stays."""
    plain = unicodedata.normalize("NFKC", text)
    return plain.replace("’", "'").replace("ʼ", "'").replace("ё", "е").replace("Ё", "Е")


def is_cyrillic(word: str) -> bool:
    """Whether a lower-case word has a Cyrillic letter."""
    return _CYRILLIC.search(word) is not None


@lru_cache(maxsize=100_000)
def forms(word: str) -> frozenset[str]:
    """The forms by which a lower-case word is matched: stems, and for Russian dictionary forms too."""
    if not is_cyrillic(word):
        return frozenset((_stem("english", word),))
    readings = _morphology().parse(word)[:FORMS]
    lemmas = {reading.normal_form.replace("ё", "е") for reading in readings}
    return frozenset(lemmas | {_stem("russian", word)})


@lru_cache(maxsize=100_000)
def grammemes(word: str) -> frozenset[str]:
    """OpenCorpora's grammemes of the likeliest reading of a Russian word; none for another language."""
    if not is_cyrillic(word):
        return frozenset()
    return frozenset(map(str, _morphology().parse(word)[0].tag.grammemes))


@lru_cache(maxsize=100_000)
def is_proper_name(word: str) -> bool:
    """Whether a Russian dictionary knows a lower-case word as a proper name before all else."""
    return not grammemes(word).isdisjoint(NAME_TAGS)


@lru_cache(maxsize=100_000)
def _stem(language: str, word: str) -> str:
    return str(_stemmer(language).stemWord(word))


@cache
def _stemmer(language: str) -> "snowballstemmer.stemmer":
    return snowballstemmer.stemmer(language)


@cache
def _morphology() -> "MorphAnalyzer":
    # Loading the dictionary takes 0.1 s: only processes that compare facts wait for it.
    from pymorphy3 import MorphAnalyzer

    return MorphAnalyzer()
