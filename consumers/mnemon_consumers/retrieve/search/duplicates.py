"""Near-duplicates among the hits of a search: texts that say the same in the same words. No I/O."""

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from mnemon_consumers.domain.alignment.morphology import list_grammemes, stem_word
from mnemon_consumers.retrieve.search.query.intent import LOOKED_AT, TIMES
from mnemon_consumers.retrieve.search.text_properties import describe_text
from mnemon_infra.database.messages.lookup import VisibleMessage
from mnemon_infra.models import bm25

Item = TypeVar("Item")

_TOKEN: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_NUMBER: Final = re.compile(r"[-−]?\d+(?:[.,:/]\d+)*")
_PUNCTUATION: Final = frozenset("'\"«»„“”‘’`.,;:!?…¿¡()[]{}<>-–—_*/\\|")
"""Characters that comparisons ignore. Other characters tell texts apart: "C" and "C++", "5 $" and "5 €"."""

_CONTRACTIONS: Final = tuple(
    (re.compile(pattern), full)
    for pattern, full in (
        (r"\bcannot\b|\bcan't\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
        (r"'m\b", " am"),
        (r"'re\b", " are"),
        (r"'ve\b", " have"),
        (r"'ll\b", " will"),
    )
)

_LIGHT_WORDS: Final = frozenset(
    str.split("a an the and so just very really too oh и а ну вот же очень просто")
)
"""Words without which a text says the same. All other words count, also "not", "was" and "after"."""

_CLAUSE_END: Final = re.compile(r"[,;.!?]|\b(?:and|и)\b")
_NEGATIONS: Final = frozenset(("not", "no", "never", "не", "нет", "никогда"))
"""Words that deny; their place in a clause counts."""


class WordingFeatures(NamedTuple):
    """Features of the wording of a text. Two texts with the same terms and features say the same.

    Attributes:
        words: the words in lower case that BM25 does not weigh, such as stop words, without `_LIGHT_WORDS`.
        past_terms: the terms of words in the past tense; stemming gives "loved" the term of "love".
        numbers: the numbers, in order.
        symbols: characters that are neither letters, digits, spaces nor punctuation.
        name_words: words of names within sentences: "Anna loves Boris" differs from "Boris loves Anna".
        is_question: whether the text has a question mark.
        clauses: the clauses between commas and "and", sorted; each has its terms and negations in order:
            "tea, not coffee" differs from "coffee, not tea", and "from Rome to Paris" from "from Paris to
            Rome". Numbers and times do not count here.
    """

    words: frozenset[str]
    past_terms: frozenset[int]
    numbers: tuple[str, ...]
    symbols: frozenset[str]
    name_words: frozenset[str]
    is_question: bool
    clauses: tuple[tuple[int | str, ...], ...]


def list_distinct_items(
    items: Iterable[Item], get_text: Callable[[Item], tuple[Hashable, str]], limit: int
) -> list[Item]:
    """Return the first items that each say something other than the items before them.

    Args:
        items: items, best first.
        get_text: returns the source of an item and its text; equal texts of two sources are kept.
        limit: maximum number of items to return.
    """
    kept: list[Item] = []
    texts: dict[tuple[Hashable, frozenset[int]], list[str]] = {}
    for item in items:
        if len(kept) >= limit:
            break
        source, text = get_text(item)
        # Few texts have the same terms, so that few have to be compared.
        alike = texts.setdefault((source, describe_text(text).terms), [])
        if not any(says_same(text, other) for other in alike):
            alike.append(text)
            kept.append(item)
    return kept


def describe_source(message: VisibleMessage) -> Hashable:
    """Return the speaker, and the day if the text names a time: "yesterday" means another date each day."""
    day = message.sent_at.date() if describe_text(message.content).tells_time else None
    return message.name or message.role, day


def says_same(text: str, other: str) -> bool:
    """Return whether two texts with the same terms say the same.

    They say the same if they have the same words in the same order, whatever the punctuation (except question
    marks). They also do if they differ only in letter case, white space, contractions, `_LIGHT_WORDS` that
    BM25 does not weigh, the order of their clauses, the place of a time, punctuation that ends no clause, and
    endings that stemming removes (except those of the past tense). A text longer than `LOOKED_AT` characters
    says the same only as an exact copy of it.
    """
    if text == other:
        return True
    if max(len(text), len(other)) > LOOKED_AT:
        return False
    return _normalise_text(text) == _normalise_text(other) or _describe_wording(text) == _describe_wording(
        other
    )


def _normalise_text(text: str) -> tuple[list[str], list[str], bool]:
    plain = _simplify_text(text)
    symbols = [each for each in plain if _is_symbol(each)]
    return _TOKEN.findall(plain) + _NUMBER.findall(plain), symbols, describe_text(text).is_question


@lru_cache(maxsize=1_000)
def _describe_wording(text: str) -> WordingFeatures:
    plain = _simplify_text(text)
    properties = describe_text(text)
    words = frozenset(_TOKEN.findall(plain)) - _LIGHT_WORDS
    return WordingFeatures(
        frozenset(each for each in words if not bm25.weigh_document(each).indices),
        frozenset(
            term for each in words if _is_past_tense(each) for term in bm25.weigh_document(each).indices
        ),
        tuple(_NUMBER.findall(plain)),
        frozenset(filter(_is_symbol, plain)),
        properties.name_words,
        properties.is_question,
        tuple(sorted(filter(None, map(_order_terms, _CLAUSE_END.split(plain))), key=str)),
    )


def _order_terms(clause: str) -> tuple[int | str, ...]:
    """Return the terms and negations of a clause in order, without numbers and times."""
    ordered: list[int | str] = []
    for word in _TOKEN.findall(clause):
        if word in _NEGATIONS:
            ordered.append(word)
        elif word not in TIMES and not word[0].isdigit():
            ordered += sorted(bm25.weigh_document(word).indices)
    return tuple(ordered)


def _is_past_tense(word: str) -> bool:
    """Return whether a lower-case word is a Russian past tense, or ends like a regular English one."""
    return "past" in list_grammemes(word) or (word.endswith("ed") and stem_word(word) != word)


def _simplify_text(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).translate(bm25.YO).casefold().replace("’", "'")
    for pattern, full in _CONTRACTIONS:
        plain = pattern.sub(full, plain)
    return plain


def _is_symbol(character: str) -> bool:
    return not (character.isalnum() or character.isspace() or character in _PUNCTUATION)
