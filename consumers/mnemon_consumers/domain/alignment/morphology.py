"""Dictionary forms and stems of words. Latin script counts as English, Cyrillic script as Russian."""

import re
import unicodedata
from functools import cache, lru_cache
from itertools import groupby
from threading import Lock
from typing import Final

import snowballstemmer

from mnemon_consumers.domain.russian_dictionary import load_analyzer

FORMS: Final = 3
"""Maximum number of readings of a Russian word to use; further readings are rarer than one in ten."""

WORDS: Final = 20_000
"""Maximum number of words whose forms a process caches, in 10 MB of memory."""

ARCHAIC_NOUN: Final = "мочь"
"""Noun for strength, spelled like the verb "can". Its form «мочи» is also a form of «моча» (urine)."""

NAME_TAGS: Final = ("Name", "Surn", "Patr", "Geox", "Orgn", "Trad")
"""OpenCorpora's grammemes of proper names."""

_MARKED_BLOCKS: Final = (
    range(0x0300, 0x1E00),
    range(0x20D0, 0x2100),
    range(0x2CE0, 0x2E00),
    range(0x3020, 0x30A0),
    range(0xA660, 0xAC00),
    range(0xFB1E, 0xFB1F),
    range(0xFE00, 0xFE30),
    range(0x10A00, 0x12000),
)
"""Ranges of Unicode with the combining marks of living scripts; all of Unicode would take 25 ms to search."""


def _build_mark_ranges() -> str:
    codes = [
        code for block in _MARKED_BLOCKS for code in block if unicodedata.category(chr(code)).startswith("M")
    ]
    # Codes of one run have the same distance from their place.
    runs = [[code for _, code in run] for _, run in groupby(enumerate(codes), lambda each: each[1] - each[0])]
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)


COMBINING_MARKS: Final = _build_mark_ranges()
"""Combining marks, such as the vowel signs of Hindi and Thai, as ranges in a class of a regular expression.

They are parts of words, and `\\w` does not match them.
"""

_STEMMING: Final = Lock()
"""Lock around the stemmer, which stores the current word and so serves one thread at a time."""

_CYRILLIC: Final = re.compile("[а-я]")

_KNOWN_LETTERS: Final = re.compile("[a-zа-я]")

_CONTRACTION: Final = re.compile(
    r"""
    (?<![\w'-]) (?:
        ((?:do|does|did|is|are|was|were|wo|would|should|could|has|have|had|ca)n) (t)
        | (?: \A | (?-i:(?=[a-z])) ) (?: (i) (m|ve) | (s?he) (s) | (they) (re|ve) )
    ) (?![\w'-])
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Common English contractions without their apostrophe, except those that are other words, such as "ill".

A capital within a text marks a name or an abbreviation, such as "Jony Ive" and "IM", except in a denial.
"""

_TENS: Final = "(?:twen|thir|for|fif|six|seven|eigh|nine)t"

_ORDINAL: Final = re.compile(
    rf"""
    (?: {_TENS}y- )? (?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)
    | (?:ten|eleven|twelf|(?:thir|four|fif|six|seven|eigh|nine)teen|{_TENS}ie|hundred|thousand|million)th
    """,
    re.VERBOSE,
)
"""English ordinals in words."""


SHARED_STEM: Final = 3
"""Maximum length, in letters, of a Russian stem that may belong to several words."""


def is_symbol(character: str) -> bool:
    """Return whether a character is an emoji, another symbol such as ° (category So) or a currency sign."""
    return unicodedata.category(character) in ("So", "Sc")


def fold_characters(text: str) -> str:
    """Replace compatibility characters (NFKC), typographic apostrophes, `ё` and `İ`; case and № stay."""
    # NFKC turns № into the English "No", which is a negation.
    plain = "№".join(unicodedata.normalize("NFKC", part) for part in text.split("№"))
    plain = plain.replace("’", "'").replace("ʼ", "'").replace("ё", "е").replace("Ё", "Е")
    # In lower case, the Turkish İ is i with a dot above, a mark that no other spelling of the word has.
    return plain.replace("İ", "I").replace("i\u0307", "i")


def restore_contractions(text: str) -> str:
    """Insert the missing apostrophe into common English contractions: "dont" becomes "don't".

    Contractions that are also other words without the apostrophe, such as "ill" and "its", do not change.
    """
    return _CONTRACTION.sub(lambda found: "'".join(filter(None, found.groups())), text)


@lru_cache(maxsize=WORDS)
def is_of_other_alphabet(word: str) -> bool:
    """Return whether a lower-case word has a letter that English (with accents) and Russian lack."""
    if word.isascii():
        return False
    plain = unicodedata.normalize("NFD", word.replace("й", "и"))
    return any(each.isalpha() and _KNOWN_LETTERS.match(each) is None for each in plain)


def is_cyrillic(word: str) -> bool:
    """Return whether a lower-case word has a Cyrillic letter from а to я."""
    return not word.isascii() and _CYRILLIC.search(word) is not None


@lru_cache(maxsize=WORDS)
def list_forms(word: str) -> frozenset[str]:
    """Return the forms that match a lower-case word: its stem, and for Russian words dictionary forms too.

    A Russian stem of at most `SHARED_STEM` letters is left out if a dictionary form is longer by two letters
    or more.
    """
    if not is_cyrillic(word):
        return frozenset((stem_word(word),))
    lemmas, stem = list_lemmas(word), stem_word(word)
    # «Ладе» and «ладит», «кур» and «курит» have a short stem in common.
    is_shared = len(stem) <= SHARED_STEM and any(len(lemma) > len(stem) + 1 for lemma in lemmas)
    found = lemmas if is_shared else lemmas | {stem}
    if _may_be_possessive(word):
        # Adds the stems of "Настя" and "Никита" to those of "Настина" and "Никитин".
        found |= {lemma[:-2] for lemma in found if lemma.endswith(("ин", "ов", "ев"))}
    return found


def _may_be_possessive(word: str) -> bool:
    tags = list_grammemes(word)
    return not tags.isdisjoint(("Poss", "Surn")) or (
        "Name" in tags and not load_analyzer().word_is_known(word)
    )


@lru_cache(maxsize=WORDS)
def list_lemmas(word: str) -> frozenset[str]:
    """Return the dictionary forms of a lower-case Russian word; an English word is its own form."""
    if not is_cyrillic(word):
        return frozenset((word,))
    return frozenset(
        each.normal_form.replace("ё", "е")
        for each in load_analyzer().parse(word)[:FORMS]
        if each.normal_form != ARCHAIC_NOUN or "NOUN" not in each.tag
    )


@lru_cache(maxsize=WORDS)
def list_grammemes(word: str) -> frozenset[str]:
    """Return OpenCorpora's grammemes of a Russian word's likeliest reading; empty for other languages."""
    if not is_cyrillic(word):
        return frozenset()
    return frozenset(map(str, load_analyzer().parse(word)[0].tag.grammemes))


@lru_cache(maxsize=WORDS)
def is_proper_name(word: str) -> bool:
    """Return whether the likeliest reading of a lower-case Russian word is a proper name."""
    return not list_grammemes(word).isdisjoint(NAME_TAGS)


@lru_cache(maxsize=WORDS)
def list_name_lemmas(word: str) -> frozenset[str]:
    """Return the dictionary forms of a lower-case Russian word as a proper name; empty for other words.

    "Валентина" may be Valentina, or the genitive of Valentin. A form that may be the nominative counts as
    nominative.
    """
    if not is_cyrillic(word):
        return frozenset()
    readings = [each for each in load_analyzer().parse(word) if any(tag in each.tag for tag in NAME_TAGS)]
    nominative = [each for each in readings if {"nomn", "sing"} in each.tag]
    return frozenset(each.normal_form.replace("ё", "е") for each in nominative or readings)


@lru_cache(maxsize=WORDS)
def is_known_word(word: str) -> bool:
    """Return whether a Russian dictionary has a lower-case word; False for every English word."""
    return is_cyrillic(word) and bool(load_analyzer().word_is_known(word))


def is_verb(word: str) -> bool:
    """Return whether a Russian word is a verb; False for every English word."""
    return not list_grammemes(word).isdisjoint(("VERB", "INFN", "GRND", "PRTS"))


@lru_cache(maxsize=WORDS)
def is_nominative(word: str) -> bool:
    """Return whether a Russian word may be in the nominative, the case of subjects."""
    return any("nomn" in each.tag for each in load_analyzer().parse(word)[:FORMS])


def is_past_verb(word: str) -> bool:
    """Return whether a Russian dictionary knows a word as a verb in the past tense."""
    return {"VERB", "past"} <= list_grammemes(word) and load_analyzer().word_is_known(word)


def is_ordinal(word: str) -> bool:
    """Return whether a number is an ordinal: 3rd, third, 3-й, третий."""
    if word[0].isdigit():
        return "-" in word or word.endswith(("st", "nd", "rd", "th"))
    if "Anum" in list_grammemes(word):
        return "один" not in list_lemmas(word)
    return _ORDINAL.fullmatch(word) is not None


@lru_cache(maxsize=WORDS)
def stem_word(word: str) -> str:
    """Return the Snowball stem of a lower-case word, by its script."""
    with _STEMMING:
        return str(_load_stemmer("russian" if is_cyrillic(word) else "english").stemWord(word))


@cache
def _load_stemmer(language: str) -> "snowballstemmer.stemmer":
    return snowballstemmer.stemmer(language)
