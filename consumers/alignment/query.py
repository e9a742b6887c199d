"""Query fit: whether the words of a query name a fact, and which of several facts they name.

A query must not remove another fact than it means, so words count as found only where they are the same word,
in another form or in other letters. Vectors and synonyms take no part: vectors call "rent" and "house" alike.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, NamedTuple

from anyascii import anyascii

from consumers.alignment.lexicon import lexicon, lookup
from consumers.alignment.morphology import forms, is_cyrillic, normalize

LONGEST: Final = 500
"""Characters of a query that count, from its beginning."""

NEEDED: Final = 0.999
"""The fit that a fact must have to be named by a query: it has all of the query's words."""

MARGIN: Final = 0.15
"""By how much the fact that is named must fit better than the next one."""

SHARE_BY_ONE: Final = 0.4
"""The share of a fact's words that a query of one word must account for.

One word of a long fact seldom names what the fact is about.
"""

SHARE_BY_SEVERAL: Final = 0.3
"""The same, for a query of two words or more."""

COMMON_WEIGHT: Final = 0.5
"""The weight of a word that many facts have, and that alone names none of them; any other word has 1."""

DISAGREEMENT: Final = 0.5
"""The factor of a fact that agrees in words, and not in person, negation or direction."""

_TOKEN: Final = re.compile(r"[^\W_]+(?:['-][^\W_]+)*[+#]*")
_SHORTEST_PREFIX: Final = 5
_LONGEST_ENDING: Final = 2

_FRAME: Final = """
user forget delete remove erase drop please thing fact memory remember information everything something
know call named пользователь забыть забудь удалить стереть убрать пожалуйста факт память информация всё звать
назвать называться
"""
"""Words of an order to forget, and those that every fact has: they name none."""

_COMMON: Final = """
live work like love prefer want go get make use take play eat drink read watch study speak buy plan name
day year morning evening week home new old favorite favourite
жить работать работа любить предпочитать хотеть ходить идти ехать ездить делать пользоваться играть есть пить
читать смотреть учить изучать учиться говорить купить покупать планировать имя день год утро вечер неделя дом
новый старый любимый
"""

_BASES: Final[Mapping[str, str]] = {
    form: line.split()[0]
    for line in (
        "eat ate eaten",
        "buy bought",
        "drive drove driven",
        "fly flew flown flight flights",
        "break broke broken",
        "grow grew grown",
        "write wrote written",
        "speak spoke spoken",
        "take took taken",
        "go went gone",
        "run ran",
        "drink drank drunk",
        "teach taught",
        "sell sold",
    )
    for form in line.split()[1:]
}
"""English verbs whose forms have no common stem, each form with its base."""

_NEGATIONS: Final = """
not no never nor neither without cannot longer anymore stopped quit dislike dislikes hate hates
не нет ни никогда без больше бросил бросила перестал перестала ненавидит
"""
_NEGATION: Final = frozenset(_NEGATIONS.split())
_FROM: Final = frozenset(("from", "из", "от", "с", "со"))
_PLACES: Final = frozenset(
    ("in", "at", "near", "of", "for", "under", "over", "behind", "у", "под", "за", "о")
)
_NAMING: Final = "name имя"
_TO: Final = frozenset(("to", "into", "в", "во", "на", "к", "ко", "до"))


class FactFit(NamedTuple):
    """A fact among those that a query may mean; `fit` is 0 to 1."""

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
    ranked: tuple[FactFit, ...]


class _Word(NamedTuple):
    """A content word: the forms by which it is matched, and `from` or `to` where that stands before it."""

    text: str
    forms: frozenset[str]
    weight: float
    direction: str


@dataclass(frozen=True, slots=True)
class _Words:
    """A text as it is compared.

    Attributes:
        content: its content words, each once.
        people: the people that it is about besides the user, such as `mother`.
        names: of the content words, the names of these people, such as Tom in "brother Tom".
        denies: it denies something, or says that it is over.
        plain: all words in lower case.
    """

    content: tuple[_Word, ...]
    people: frozenset[str]
    names: tuple[_Word, ...]
    denies: bool
    plain: tuple[str, ...]

    @property
    def weight(self) -> float:
        return sum(word.weight for word in self.content)

    def find(self, word: _Word) -> _Word | None:
        """The word of this text that is the same."""
        return next((each for each in self.content if _is_same(each, word)), None)

    def weight_in(self, other: "_Words") -> float:
        """The weight of the words that another text has, too."""
        return sum(word.weight for word in self.content if other.find(word))


def measure_fit(query: str, text: str) -> float:
    """Measure how well a query names a fact, 0 to 1.

    It is 1 where the fact has every content word of the query, and agrees with it. A person, a negation or a
    direction that only one of both has halves the fit. Numbers and names must be the same.
    """
    return _fit(_words(query[:LONGEST]), _words(text))


def choose_fact(query: str, facts: Iterable[tuple[str, str]]) -> Choice:
    """Choose the fact that a query names.

    Args:
        query: words that are to name one fact.
        facts: id and text of each.
    """
    asked = _words(query[:LONGEST])
    known = {fact_id: _words(text) for fact_id, text in facts}
    fits = {fact_id: _fit(asked, words) for fact_id, words in known.items()}
    same = [fact_id for fact_id, words in known.items() if words.plain == asked.plain != ()]
    named = same[0] if len(same) == 1 else _named(asked, known, fits)
    ranked = sorted(fits, key=lambda each: (each != named, -fits[each]))
    return Choice(named, tuple(FactFit(each, fits[each]) for each in ranked if fits[each] > 0))


def _named(asked: _Words, known: Mapping[str, _Words], fits: Mapping[str, float]) -> str | None:
    """The fact that fits wholly, clearly before the next one, and not by a word that says little."""
    if not fits:
        return None
    best, *others = sorted(fits, key=lambda each: -fits[each])
    if fits[best] < NEEDED or (others and fits[best] - fits[others[0]] < MARGIN):
        return None
    if all(word.weight <= COMMON_WEIGHT for word in asked.content):
        return None
    needed = SHARE_BY_ONE if len(asked.content) == 1 else SHARE_BY_SEVERAL
    return best if known[best].weight_in(asked) >= needed * known[best].weight else None


def _fit(asked: _Words, fact: _Words) -> float:
    found = asked.weight_in(fact)
    if not found:
        return 0.0
    return found / asked.weight * (1.0 if _agree(asked, fact) else DISAGREEMENT)


def _agree(asked: _Words, fact: _Words) -> bool:
    if asked.denies != fact.denies:
        return False
    # A query with a person's name need not say how that person is related to the user.
    is_named = not asked.people and any(asked.find(name) for name in fact.names)
    if asked.people != fact.people and not is_named:
        return False
    for word in asked.content:
        other = fact.find(word)
        if other and word.direction and other.direction and word.direction != other.direction:
            return False
    return True


def _is_same(one: _Word, other: _Word) -> bool:
    """Whether two words are one: a form in common, one with a longer ending, or one in other letters."""
    if not one.forms.isdisjoint(other.forms):
        return True
    if one.text[0].isdigit() or other.text[0].isdigit():
        return False
    if is_cyrillic(one.text) != is_cyrillic(other.text):
        return not _romanized(one).isdisjoint(_romanized(other))
    return any(_is_longer(a, b) or _is_longer(b, a) for a in one.forms for b in other.forms)


def _is_longer(long: str, short: str) -> bool:
    return (
        len(short) >= _SHORTEST_PREFIX
        and long.startswith(short)
        and len(long) - len(short) <= _LONGEST_ENDING
    )


@lru_cache(maxsize=50_000)
def _romanized(word: _Word) -> frozenset[str]:
    latin = (anyascii(form).casefold().replace("'", "") for form in word.forms)
    return frozenset(
        each.replace("ks", "x").replace("w", "v").rstrip("aeiouy") for each in latin if len(each) > 2
    )


@lru_cache(maxsize=20_000)
def _words(text: str) -> _Words:
    content: dict[frozenset[str], _Word] = {}
    people: set[str] = set()
    names: list[_Word] = []
    denies = False
    direction = ""
    is_introduced = False
    tokens = _TOKEN.findall(normalize(text))
    for token in tokens:
        word = token.casefold().removesuffix("'s")
        if word in _FROM or word in _TO:
            direction = "from" if word in _FROM else "to"
            is_introduced = False
            continue
        if word in _NEGATION or word.endswith("n't"):
            denies = True
            continue
        entries = [
            each
            for each in lexicon().phrases([lookup(_BASES.get(word, word))])
            if each.table in ("stop", "people")
        ]
        persons = {each.concept for each in entries if each.table == "people"}
        if (
            (entries and not persons)
            or not _forms(word).isdisjoint(_forms_of(_FRAME))
            or word in ("i", "s", "t")
        ):
            continue
        people |= persons
        number = lexicon().number(_forms(word))
        keys = frozenset(persons) or (_forms(word) if number is None else frozenset((f"{number:g}",)))
        weight = COMMON_WEIGHT if not keys.isdisjoint(_forms_of(_COMMON)) else 1.0
        content[keys] = known = _Word(word, keys, weight, direction)
        direction = ""
        if is_introduced and token[0].isupper():
            names.append(known)
        is_introduced = bool(persons) or (is_introduced and not keys.isdisjoint(_forms_of(_NAMING)))
    plain = tuple(token.casefold() for token in tokens)
    return _Words(tuple(content.values()), frozenset(people), tuple(names), denies, plain)


def _forms(word: str) -> frozenset[str]:
    return forms(_BASES.get(word, word))


@cache
def _forms_of(words: str) -> frozenset[str]:
    return frozenset(form for word in words.split() for form in _forms(normalize(word)))
