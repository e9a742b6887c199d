"""Tokenizer of facts: words, numbers and signs."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from mnemon_consumers.domain.alignment.lexicon import is_in_table, list_lookup_forms, list_words, load_lexicon
from mnemon_consumers.domain.alignment.morphology import (
    COMBINING_MARKS,
    WORDS,
    fold_characters,
    is_cyrillic,
    list_forms,
    restore_contractions,
)

_LETTERS: Final = rf"[^\W\d_]+(?:[{COMBINING_MARKS}]+[^\W\d_]*)*"

_TOKEN: Final = re.compile(
    rf"""
    [\w.+-]+@[\w-]+(?:\.[\w-]+)+
    | [^\W\d_][\w-]*\.(?:ру|рф|ru|com|net|org|io)(?!\w)
    | \d{{4}}-\d\d-\d\d | (?:19|20)\d\d-(?:0[1-9]|1[0-2])(?![\d-])
    | \d{{1,2}}:\d\d | [^\W\d_]{{1,12}}\d+(?!\w) | [^\W\d_]+-\d+(?!\w)
    | \d+(?:[ \u00a0]\d{{3}})+(?!\d)
    | \d+(?:[.,]\d+)* (?: [kкKК](?!\w) | (?:st|nd|rd|th)(?!\w) | -(?:й|я|е|го|му|м|ая|ое|ой|х|ми)(?!\w) )?
    | [ap]\.m\. | {_LETTERS}(?:['-]{_LETTERS})*[+#]* | [%€$£₽№] | [—–](?=\s)
    """,
    re.VERBOSE,
)
_OWN_WORDS: Final = ("it's", "he's", "she's", "that's", "user's")
"""Words in which `'s` is not removed."""

_CLAUSE_END: Final = re.compile(
    r"""
    ["»”]* (?: [,;!?)\]…\n•] | \.\.\. | \s* [([•…] | \s [+&/] \s | / (?=[^\W\d_]{2}) )
    """,
    re.VERBOSE,
)
"""Marks after the last word of a clause; full stops, conjunctions and dashes have rules of their own."""

_QUOTED: Final = re.compile(r"«[^»]*»|“[^”]*”|(?<!\w)\"[^\"]*\"(?!\w)")

_JOINED: Final = re.compile(r"\b(?:as well as|along with|together with)\b", re.IGNORECASE)

_LEADING_ABBREVIATIONS: Final = frozenset(("mr", "mrs", "ms", "dr", "st", "prof", "vs", "no")) | frozenset(
    ("ул", "кв", "пр", "просп", "пер", "наб", "им", "стр")
)
"""Abbreviations before a name or a number: their full stop ends no clause, nor does that of an initial."""

_TRAILING_ABBREVIATIONS: Final = frozenset(("jr", "sr", "inc", "ltd", "etc")) | frozenset(
    ("гг", "обл", "руб", "тыс", "млн")
)
"""Other abbreviations: their full stop ends a clause only if a capital letter follows."""


class Token(NamedTuple):
    """A word, number or sign.

    Attributes:
        surface: the spelling after `fold_characters`, without a possessive ending.
        word: `surface` in lower case.
        forms: the forms by which the token is matched.
        lookup: the forms by which the token is looked up in the lexicon.
        is_first: whether it begins the text, or follows a full stop (also of an abbreviation), "!" or "?".
        is_clause_start: whether a mark such as a comma or full stop, or a word such as "and", precedes it.
        is_denied: whether it ends in "n't" or is "cannot".
    """

    surface: str
    word: str
    forms: frozenset[str]
    lookup: frozenset[str]
    is_first: bool
    is_denied: bool
    is_clause_start: bool


def tokenize(text: str) -> Iterator[Token]:
    """Split a fact into its tokens."""
    plain = _JOINED.sub("and", restore_contractions(fold_characters(text))).replace(" - ", " — ")
    if is_cyrillic(plain.casefold()):
        plain = plain.replace(": ", " — ")
    quoted = [found.span() for found in _QUOTED.finditer(plain)]
    is_first, is_clause_start = True, False
    for found in _TOKEN.finditer(plain):
        surface, word = found[0], found[0].casefold()
        is_denied = word.endswith("n't") or word == "cannot"
        if word.endswith("'s") and word not in _OWN_WORDS:
            surface, word = surface[:-2], word[:-2]
        yield Token(surface, word, *_list_token_forms(word), is_first, is_denied, is_clause_start)
        end = found.end()
        is_first = plain[end : end + 2] in (". ", "! ", "? ")
        is_quoted = any(start < end < stop - 1 for start, stop in quoted)
        is_clause_start = not is_quoted and _ends_clause(plain, end, surface)


def _ends_clause(text: str, end: int, word: str) -> bool:
    """Return whether a clause of a text ends after `word`, which ends at index `end`.

    A conjunction ends a clause, too.
    """
    word = word.casefold()
    if text[end : end + 1] == "." and not text.startswith("...", end):
        is_initial = len(word) == 1 and word.isalpha()
        if is_initial or word in _LEADING_ABBREVIATIONS or not text[end + 1 : end + 2].isspace():
            return False
        return word not in _TRAILING_ABBREVIATIONS or text[end + 1 :].lstrip()[:1].isupper()
    return word in list_words("conjunctions") or _CLAUSE_END.match(text, end) is not None


@lru_cache(maxsize=WORDS)
def _list_token_forms(word: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the forms by which a word is matched, and by which it is looked up."""
    matched = list_forms(word) | _list_profession_forms(word)
    return matched, matched | list_lookup_forms(word)


def _list_profession_forms(word: str) -> frozenset[str]:
    """Return the forms of the professions within a compound such as "Python-разработчик" (developer)."""
    if "-" not in word:
        return frozenset()
    parts = (part for part in word.split("-") if part and is_in_table(part, "professions"))
    return frozenset().union(*map(list_forms, parts))


@lru_cache(maxsize=WORDS)
def list_number_keys(word: str) -> tuple[str, ...] | None:
    """Return the keys of a numeral or of a word that begins with a digit, such as a date or a version.

    A date has a key for each part. The result is None for any other word.
    """
    word = word.replace("\u00a0", "").replace(" ", "")
    if not word[0].isdigit():
        number = load_lexicon().find_number(list_lookup_forms(word))
        return None if number is None else (f"{number:g}",)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", word):
        year, month, day = (int(part) for part in word.split("-"))
        return f"{year}", f"dates month {month}", f"{day}"
    if re.fullmatch(r"\d{4}-\d\d", word):
        year, month = (int(part) for part in word.split("-"))
        return f"{year}", f"dates month {month}"
    if ":" in word:
        hour, minute = word.split(":")
        return (f"{int(hour)}" if minute == "00" else f"{int(hour)}:{minute}",)
    digits = re.sub(r"[^\d.,]", "", word)
    digits = (
        digits.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+", digits) else digits.replace(",", ".")
    )
    value = parse_number_key(digits)
    return (digits if value is None else f"{value * (1000 if word[-1] in 'kк' else 1):.10g}",)


def parse_number_key(key: str) -> float | None:
    """Return the value of a number's key; None for any other key, such as a time or a version."""
    try:
        return float(key)
    except ValueError:
        return None
