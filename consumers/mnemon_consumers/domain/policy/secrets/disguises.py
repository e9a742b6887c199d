"""Readings of a text with its disguises undone: lookalike letters, invisible characters, spaced-out words."""

import re
import unicodedata
from functools import cache
from typing import Final

from mnemon_infra.models.scripts import UNSPACED_CHARACTER

_WORD: Final = re.compile(r"\w+")
_LATIN: Final = re.compile(r"[A-Za-z]")
_CYRILLIC: Final = re.compile(r"[А-Яа-яЁё]")
_LOOKALIKE: Final = re.compile(r"[^\W\d_A-Za-z]")
_TWO_SCRIPTS: Final = re.compile(
    r"[A-Za-z]\w*?[^\W\d_A-Za-z]|[^\W\d_A-Za-z]\w*?[A-Za-z]|[^\W\d_A-Za-zА-Яа-яЁё]"
)
_PLAIN: Final = re.compile(r"[\n -~«»А-Яа-яЁё—–…]*")
"""Pattern of texts without combining marks, invisible characters and compatibility forms, except "…"."""

_UNSPACED_BORDER: Final = re.compile(
    f"(?<={UNSPACED_CHARACTER})(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?={UNSPACED_CHARACTER})"
)
"""Borders between Latin letters or digits and a script without spaces, as of Chinese, which hide a number."""

_SPACED_OUT: Final = re.compile(r"(?<!\w)[^\W\d_](?:([ .*·•|_-])\w)(?:\1\w){2,}(?!\w)")
_JOINED_NOUN: Final = re.compile(
    r"(passwords?|passcode|passphrase|pincode|pin|code|cvv|пароль|парол[яеию]|пинкод|пин|код)"
    r"(is|are|это)?(?=\W|\w)",
    re.IGNORECASE,
)
_SPELLINGS: Final = (
    (
        re.compile(
            r"\b(?:pass?w[au]?rd|pasword|paswd|passowrd|passwrod|passord|psswo?rd|psswd|passwordd)\b",
            re.IGNORECASE,
        ),
        "password",
    ),
    (re.compile(r"\bwi-?fi\s+pass\b(?!\sto\b)", re.IGNORECASE), "wifi password"),
    (re.compile(r"\bpass[ ._-]words?\b", re.IGNORECASE), "password"),
    (re.compile(r"(?<![A-Za-z0-9])p[a@4][s5$]{2}w[o0]rd(?!\w)", re.IGNORECASE), "password"),
    (re.compile(r"(?<!\w)п[аa@4]р[оo0]ль(?!\w)", re.IGNORECASE), "пароль"),
    (
        re.compile(
            r"(?<!\w)(?:пасс?[ -]?в[оаё]рд|паролька?|парол|пороль|параль|поролль|пароол?ь)(?!\w)",
            re.IGNORECASE,
        ),
        "пароль",
    ),
    (re.compile(r"(?<!\w)(?:пасс?[ -]?в[оа]рд|парол)(?=(?:ом|ем)(?!\w))", re.IGNORECASE), "парол"),
    (
        re.compile(r"(?<!\w)парол'|\bparol(?:['’`]|\b)(?=\s*(?:ot|dlya|k|na|eto|[:=—–-]))", re.IGNORECASE),
        "пароль",
    ),
)

_SPELLED: Final = re.compile(r"p[a@4]?[s5$]|parol|п[аaоo@4][рp]|пас", re.IGNORECASE)
"""Cheap check before the search for spellings of "password": each spelling contains one of these strings."""

_ALSO_ALIKE: Final = {"к": "k", "м": "m", "т": "t", "п": "n", "и": "u"}
"""Pairs of letters that disguises use and that Unicode's table of confusable characters leaves out."""


def list_readings(text: str) -> tuple[str, ...]:
    """Return the readings of a text: as a person sees it, then with the disguises of letters undone.

    The first reading has no compatibility forms, invisible characters or combining marks. It has European
    digits, and spaces between Latin letters or digits and a script without spaces. The other readings exist
    only if a word mixes scripts, if single letters stand in a row, or if "password" has another spelling,
    such as "p@ssword".
    """
    plain = text if text.isascii() else _normalise_characters(text)
    found = dict.fromkeys([plain])
    for variant in (plain, *_unify_script(plain)):
        found[variant] = None
        found[_join_letters(variant)] = None
    for variant in list(found):
        if not _SPELLED.search(variant):
            continue
        for spelling, word in _SPELLINGS:
            variant = spelling.sub(word, variant)
        found[variant] = None
    return tuple(found)


def _normalise_characters(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    composed = unicodedata.normalize("NFKC", text.replace("№", "#"))
    composed = _UNSPACED_BORDER.sub(" ", composed)
    return "".join(
        _simplify_character(character, category)
        for character in composed
        if (category := unicodedata.category(character)) not in ("Cf", "Mn", "Me")
    )


def _simplify_character(character: str, category: str) -> str:
    if category == "Nd":
        return str(unicodedata.digit(character))
    return "-" if category == "Pd" and character not in "—–-" else character


def _unify_script(text: str) -> list[str]:
    """Return the text with its words of mixed scripts in Latin letters, and in Cyrillic letters.

    Readings that equal the text are left out.
    """
    if text.isascii() or not _TWO_SCRIPTS.search(text):
        return []
    to_latin, to_cyrillic = _load_tables()

    def write_in_latin(word: re.Match[str]) -> str:
        has_both = _LATIN.search(word[0]) and _LOOKALIKE.search(word[0])
        return word[0].translate(to_latin) if has_both else word[0]

    def write_in_cyrillic(word: re.Match[str]) -> str:
        has_both = _CYRILLIC.search(word[0]) and not _CYRILLIC.fullmatch(word[0])
        return word[0].translate(to_cyrillic) if has_both else word[0]

    return [
        each for each in (_WORD.sub(write_in_latin, text), _WORD.sub(write_in_cyrillic, text)) if each != text
    ]


@cache
def _load_tables() -> tuple[dict[int, str], dict[int, str]]:
    """Return translations of lookalike letters: from other scripts to Latin, and from Latin to Cyrillic."""
    from confusable_homoglyphs.confusables import confusables_data

    to_latin: dict[int, str] = {}
    to_cyrillic: dict[int, str] = {}
    for letter, lookalikes in confusables_data.items():
        if len(letter) != 1 or not letter.isalpha():
            continue
        for other in (each["c"] for each in lookalikes):
            if _LATIN.fullmatch(other) and not letter.isascii():
                to_latin.setdefault(ord(letter), other)
            if _LATIN.fullmatch(letter) and _CYRILLIC.fullmatch(other):
                to_cyrillic.setdefault(ord(letter), other)
    for letter, other in _ALSO_ALIKE.items():
        to_latin.setdefault(ord(letter), other)
        to_cyrillic.setdefault(ord(other), letter)
    return to_latin, to_cyrillic


def _join_letters(text: str) -> str:
    """Return the text with "p a s s w o r d" as one word, separated from other spelled-out words."""

    def join_word(letters: re.Match[str]) -> str:
        separator = letters[1]
        return _JOINED_NOUN.sub(r" \1 \2 ", letters[0].replace(separator, ""))

    return _SPACED_OUT.sub(join_word, text)
