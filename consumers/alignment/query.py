"""Query fit: whether the words of a query name a fact, and which of several facts they name.

A query that removes a fact must not remove another one, so words count as found only where they are the same
word: by stem, or by transliteration. Vectors take no part; they call "rent" and "house" alike.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from snowballstemmer import stemmer

from consumers.alignment.query_words import COMMON, FORMS, FROM, NEGATION, PEOPLE, STOP, TO

NEEDED: Final = 0.999
"""The share of a query's words that a fact must have to be named by it: all of them."""

MARGIN: Final = 0.15
"""By how much the fact that is named must fit better than the next one."""

SHARE_BY_ONE: Final = 0.5
"""The share of a fact's words that a query of one word must account for.

One word of a long fact seldom names what the fact is about.
"""

SHARE_BY_SEVERAL: Final = 0.3
"""The same, for a query of two words or more."""

COMMON_WEIGHT: Final = 0.5
"""The weight of a word that many facts have, and that alone names none of them; any other word has 1."""

DISAGREEMENT: Final = 0.5
"""The factor of a fact that agrees in words, and not in person, negation or direction."""

_TOKEN: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?(?:[+#]+)?")
_CYRILLIC: Final = re.compile(r"[\u0400-\u052f]")
_ENGLISH: Final = stemmer("english")
_RUSSIAN: Final = stemmer("russian")

_LATIN: Final = str.maketrans(
    dict(zip("абвгдезийклмнопрстуфъыьэ", "abvgdeziiklmnoprstuf\0y\0e", strict=True))
    | {"ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ю": "yu", "я": "ya"}
)
_SPELLINGS: Final = (
    ("ks", "x"),
    ("kh", "h"),
    ("ts", "c"),
    ("ya", "ia"),
    ("yu", "iu"),
    ("w", "v"),
    ("ck", "k"),
)
_SHORTEST_PREFIX: Final = 5
_LONGEST_ENDING: Final = 2


class Ranked(NamedTuple):
    """A fact's place among the facts that a query may mean; `fit` is 0 to 1."""

    id: str
    fit: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The facts that a query may mean.

    Attributes:
        named: the id of the fact that the query clearly means; None where it means none, or more than one.
        ranked: the facts that have at least one of the query's words, best first.
    """

    named: str | None
    ranked: tuple[Ranked, ...]


@dataclass(frozen=True, slots=True)
class _Terms:
    """A text as it is compared: `stems` are its content words with their weights, `names` some of them."""

    stems: Mapping[str, float]
    directions: Mapping[str, str]
    people: frozenset[str]
    denies: bool
    names: frozenset[str]
    plain: tuple[str, ...]

    @property
    def weight(self) -> float:
        return sum(self.stems.values())


def fit(query: str, text: str) -> float:
    """How well a query names a fact, 0 to 1.

    It is 1 where the fact has every content word of the query, and agrees with it. A person, a negation or a
    direction that only one of both has halves the fit. Numbers and names are words as others are, and must be
    the same.
    """
    return _fit(_terms(query), _terms(text))


def choose(query: str, facts: Iterable[tuple[str, str]]) -> Choice:
    """Choose the fact that a query names.

    Args:
        query: words that are to name one fact.
        facts: id and text of each.
    """
    asked = _terms(query)
    candidates = [(fact_id, _terms(text)) for fact_id, text in facts]
    ranked = sorted(
        (Ranked(fact_id, _fit(asked, terms)) for fact_id, terms in candidates), key=lambda each: -each.fit
    )
    by_id = dict(candidates)
    same = [fact_id for fact_id, terms in candidates if asked.plain and terms.plain == asked.plain]
    if len(same) == 1:
        named: str | None = same[0]
        ranked.sort(key=lambda each: each.id != named)
    else:
        named = ranked[0].id if ranked and _is_clear(asked, ranked, by_id) else None
    return Choice(named, tuple(each for each in ranked if each.fit > 0))


def _is_clear(asked: _Terms, ranked: list[Ranked], by_id: Mapping[str, _Terms]) -> bool:
    best = ranked[0]
    others = ranked[1].fit if len(ranked) > 1 else 0.0
    if best.fit < NEEDED or best.fit - others < MARGIN:
        return False
    fact = by_id[best.id]
    if max(asked.stems.values(), default=0.0) <= COMMON_WEIGHT:
        return False
    needed = SHARE_BY_ONE if len(asked.stems) == 1 else SHARE_BY_SEVERAL
    return _weight_of_common(fact, asked) >= needed * fact.weight


def _fit(asked: _Terms, fact: _Terms) -> float:
    if not asked.stems:
        return 0.0
    share = _weight_of_common(asked, fact) / asked.weight
    disagrees = (
        asked.denies != fact.denies
        or not _is_about_same(asked, fact)
        or any(
            direction != other
            for stem, direction in asked.directions.items()
            if (other := _direction_of(fact, stem)) is not None
        )
    )
    return share * DISAGREEMENT if disagrees else share


def _is_about_same(asked: _Terms, fact: _Terms) -> bool:
    """Whether both are about the same person; a name, such as Tom of "brother Tom", says so too."""
    if asked.people == fact.people:
        return True
    return not asked.people and any(_found(name, asked.stems) for name in fact.names)


def _weight_of_common(one: _Terms, other: _Terms) -> float:
    """The weight of the words of one text that another one has."""
    return sum(weight for stem, weight in one.stems.items() if _found(stem, other.stems))


def _found(stem: str, stems: Iterable[str]) -> bool:
    return any(_is_same(stem, each) for each in stems)


def _direction_of(fact: _Terms, stem: str) -> str | None:
    return next((direction for each, direction in fact.directions.items() if _is_same(stem, each)), None)


@lru_cache(maxsize=100_000)
def _is_same(one: str, other: str) -> bool:
    """Whether two stems are of one word: equal, one with a longer ending, or one in other letters."""
    if one == other:
        return True
    if one.isdigit() or other.isdigit():
        return False
    if (_CYRILLIC.search(one) is None) != (_CYRILLIC.search(other) is None):
        one, other = _in_latin(one), _in_latin(other)
        if min(len(one), len(other)) >= 3 and one == other:
            return True
    short, long = sorted((one, other), key=len)
    return (
        len(short) >= _SHORTEST_PREFIX
        and long.startswith(short)
        and len(long) - len(short) <= _LONGEST_ENDING
    )


def _in_latin(stem: str) -> str:
    latin = stem.translate(_LATIN).replace("\0", "")
    for spelling, usual in _SPELLINGS:
        latin = latin.replace(spelling, usual)
    return latin.rstrip("aeiouy")


@lru_cache(maxsize=20_000)
def _terms(text: str) -> _Terms:
    plain = unicodedata.normalize("NFKC", text).replace("ё", "е").replace("Ё", "Е").replace("’", "'")
    tokens = _TOKEN.findall(plain)
    stems: dict[str, float] = {}
    directions: dict[str, str] = {}
    people: set[str] = set()
    names: set[str] = set()
    denies = False
    heading: str | None = None
    for place, token in enumerate(tokens):
        word = token.casefold().removesuffix("'s")
        if word in FROM or word in TO:
            heading = "from" if word in FROM else "to"
            continue
        if word in NEGATION or word.endswith("n't"):
            denies = True
            continue
        if word in STOP or (len(word) == 1 and not word.isdigit()):
            continue
        stem = PEOPLE.get(word) or _stem(word)
        if word in PEOPLE:
            people.add(stem)
        elif place and token[0].isupper():
            names.add(stem)
        stems[stem] = COMMON_WEIGHT if stem in _COMMON else 1.0
        if heading:
            directions[stem] = heading
            heading = None
    lowered = tuple(token.casefold() for token in tokens)
    return _Terms(stems, directions, frozenset(people), denies, frozenset(names), lowered)


def _stem(word: str) -> str:
    base = FORMS.get(word, word)
    stemmed: str = (_RUSSIAN if _CYRILLIC.search(base) else _ENGLISH).stemWord(base)
    return stemmed


_COMMON: Final = frozenset(_stem(word) for word in COMMON)
