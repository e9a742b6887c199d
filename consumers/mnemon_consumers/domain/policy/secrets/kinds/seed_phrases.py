"""Detection of wallets' seed phrases: consecutive words of a BIP-39 list, or words after "seed phrase"."""

import re
import unicodedata
from functools import cache
from typing import Final

from mnemon_consumers.domain.policy.secrets import english, russian
from mnemon_consumers.domain.policy.secrets.values import has_word, list_beginnings
from mnemon_consumers.domain.policy.wording import compile_pattern

SHORTEST: Final = 12
"""Number of words of the shortest phrase in BIP-39."""

_WORD: Final = re.compile(r"[^\W\d_]+")
_NAMED: Final = compile_pattern(
    r"""(?:\b(?:seed(?:\s(?:phrases?|words?))?|(?:recovery|backup|mnemonic|secret|wallet)\s(?:phrases?|
    words|seed|mnemonic)|mnemonic)|
    (?<!\w)(?:сид|seed)(?:[ -]?фраз\w*)?|(?<!\w)(?:мнемоник\w*|мнемоническ\w+\sфраз\w*|
    секретн\w+\sфраз\w*|фраз\w+\sвосстановления|фраз\w+\sдля\sвосстановления))
    (?![^\W_])(?P<rest>.*)"""
)
_MENTIONED: Final = list_beginnings(
    "seed recovery backup mnemonic secret wallet сид мнемоника секретная фраза"
)
"""Beginnings of words that name a seed phrase."""

_FEW: Final = 4
"""Minimum number of words of one BIP-39 list that make a seed phrase after its name."""

_PLAIN: Final = 6
"""Minimum number of words that make a seed phrase after its name, even if no BIP-39 list has them."""


def contains_seed_phrase(text: str) -> bool:
    """Return whether a text has a seed phrase.

    A seed phrase is a row of at least `SHORTEST` words of one BIP-39 list. After a name such as "seed
    phrase", `_FEW` of these words are enough, or `_PLAIN` other words.
    """
    if _measure_longest_row(text, SHORTEST) >= SHORTEST:
        return True
    named = _NAMED.search(text) if has_word(text, _MENTIONED) else None
    if named is None:
        return False
    rest = named["rest"]
    said = rest.rpartition(":")[2]
    is_plain = len(_WORD.findall(said)) >= _PLAIN and (
        english.is_plain_value(said) or (":" in rest and russian.is_row_of_nouns(said))
    )
    return is_plain or _measure_longest_row(rest, _FEW) >= _FEW


def _measure_longest_row(text: str, least: int) -> int:
    words = _WORD.findall(text)
    if len(words) < least:
        return 0
    lists = _load_lists()
    # A row of `least` words contains at least one of the words at this distance from each other.
    if not any(_normalise_spelling(word) in lists for word in words[least - 1 :: least]):
        return 0
    longest = 0
    rows: dict[int, int] = {}
    for word in words:
        places = lists.get(_normalise_spelling(word), frozenset())
        rows = {place: rows.get(place, 0) + 1 for place in places}
        longest = max(longest, *rows.values(), 0) if rows else longest
    return longest


def _normalise_spelling(word: str) -> str:
    lower = word.lower()
    return lower if lower.isascii() else unicodedata.normalize("NFKD", lower)


@cache
def _load_lists() -> dict[str, frozenset[int]]:
    """Return, for each word, the numbers of the lists that hold it."""
    from mnemonic import Mnemonic

    found: dict[str, set[int]] = {}
    for place, language in enumerate(Mnemonic.list_languages()):
        for word in Mnemonic(language).wordlist:
            found.setdefault(_normalise_spelling(word), set()).add(place)
    return {word: frozenset(places) for word, places in found.items()}
