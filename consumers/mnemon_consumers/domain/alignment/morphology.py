"""Dictionary forms and stems of words, by script: Latin words as English, Cyrillic words as Russian."""

import re
import unicodedata
from functools import cache, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Final

import snowballstemmer

if TYPE_CHECKING:
    from pymorphy3 import MorphAnalyzer

FORMS: Final = 3
"""Readings of a Russian word that count: others are rarer than one in ten."""

WORDS: Final = 20_000
"""Words that a process remembers the forms of: 10 MB."""

NAME_TAGS: Final = ("Name", "Surn", "Patr", "Geox", "Orgn", "Trad")
"""OpenCorpora's grammemes of proper names."""

_STEMMING: Final = Lock()
"""A stemmer keeps the word in hand in itself: threads take turns."""

_CYRILLIC: Final = re.compile("[а-я]")

_KNOWN_LETTERS: Final = re.compile("[a-zа-я]")


def normalize(text: str) -> str:
    """Fold compatibility characters, typographic apostrophes and `ё`; the case stays."""
    # NFKC turns № into the English "No", which denies.
    plain = "№".join(unicodedata.normalize("NFKC", part) for part in text.split("№"))
    return plain.replace("’", "'").replace("ʼ", "'").replace("ё", "е").replace("Ё", "Е")


@lru_cache(maxsize=WORDS)
def is_of_other_alphabet(word: str) -> bool:
    """Whether a lower-case word has a letter that neither English, with its accents, nor Russian has."""
    if word.isascii():
        return False
    plain = unicodedata.normalize("NFD", word.replace("й", "и"))
    return any(each.isalpha() and _KNOWN_LETTERS.match(each) is None for each in plain)


def is_cyrillic(word: str) -> bool:
    """Whether a lower-case word has a Cyrillic letter."""
    return not word.isascii() and _CYRILLIC.search(word) is not None


@lru_cache(maxsize=WORDS)
def forms(word: str) -> frozenset[str]:
    """The forms by which a lower-case word is matched: stems, and for Russian dictionary forms too."""
    if not is_cyrillic(word):
        return frozenset((stem(word),))
    found = lemmas(word) | {stem(word)}
    if _may_be_possessive(word):
        # Of "Настина" and "Никитин" the stems of "Настя" and "Никита".
        found |= {lemma[:-2] for lemma in found if lemma.endswith(("ин", "ов", "ев"))}
    return found


def _may_be_possessive(word: str) -> bool:
    tags = grammemes(word)
    return not tags.isdisjoint(("Poss", "Surn")) or ("Name" in tags and not _morphology().word_is_known(word))


@lru_cache(maxsize=WORDS)
def lemmas(word: str) -> frozenset[str]:
    """Dictionary forms of a lower-case Russian word; an English word is its own."""
    if not is_cyrillic(word):
        return frozenset((word,))
    return frozenset(each.normal_form.replace("ё", "е") for each in _morphology().parse(word)[:FORMS])


@lru_cache(maxsize=WORDS)
def grammemes(word: str) -> frozenset[str]:
    """OpenCorpora's grammemes of the likeliest reading of a Russian word; none for another language."""
    if not is_cyrillic(word):
        return frozenset()
    return frozenset(map(str, _morphology().parse(word)[0].tag.grammemes))


@lru_cache(maxsize=WORDS)
def is_proper_name(word: str) -> bool:
    """Whether a Russian dictionary knows a lower-case word as a proper name before all else."""
    return not grammemes(word).isdisjoint(NAME_TAGS)


@lru_cache(maxsize=WORDS)
def name_lemmas(word: str) -> frozenset[str]:
    """Dictionary forms of a lower-case Russian word as a proper name; none where it is no name.

    "Валентина" may be a woman, or a man in the genitive: a form that may be the nominative counts as that.
    """
    if not is_cyrillic(word):
        return frozenset()
    readings = [each for each in _morphology().parse(word) if any(tag in each.tag for tag in NAME_TAGS)]
    nominative = [each for each in readings if {"nomn", "sing"} in each.tag]
    return frozenset(each.normal_form.replace("ё", "е") for each in nominative or readings)


def is_verb(word: str) -> bool:
    """Whether a Russian word is a verb; of an English word alone that cannot be told."""
    return not grammemes(word).isdisjoint(("VERB", "INFN", "GRND", "PRTS"))


@lru_cache(maxsize=WORDS)
def is_nominative(word: str) -> bool:
    """Whether a Russian word may be the subject of a sentence."""
    return any("nomn" in each.tag for each in _morphology().parse(word)[:FORMS])


def is_past_verb(word: str) -> bool:
    """Whether a Russian dictionary knows a word as a verb in the past tense."""
    return {"VERB", "past"} <= grammemes(word) and _morphology().word_is_known(word)


def is_ordinal(word: str) -> bool:
    """Whether a number tells a place in an order: 3rd, third, 3-й, третий."""
    if word[0].isdigit():
        return "-" in word or word.endswith(("st", "nd", "rd", "th"))
    if "Anum" in grammemes(word):
        return "один" not in lemmas(word)
    return word in ("first", "second", "third") or word.endswith("th")


@lru_cache(maxsize=WORDS)
def stem(word: str) -> str:
    """The Snowball stem of a lower-case word, by its script."""
    with _STEMMING:
        return str(_stemmer("russian" if is_cyrillic(word) else "english").stemWord(word))


@cache
def _stemmer(language: str) -> "snowballstemmer.stemmer":
    return snowballstemmer.stemmer(language)


@cache
def _morphology() -> "MorphAnalyzer":
    # Loading the dictionary takes 0.1 s: only processes that compare facts wait for it.
    from pymorphy3 import MorphAnalyzer

    return MorphAnalyzer()
