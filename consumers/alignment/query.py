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

NEEDED: Final = 0.999
"""The share of a query's words that a fact must have to be named by it: all of them."""

MARGIN: Final = 0.15
"""By how much the fact that is named must fit better than the next one."""

SHARE_BY_FEW: Final = 0.5
"""The share of a fact's words that a query of one or two words must account for: one word of a long fact names
its subject seldom."""

SHARE_BY_MANY: Final = 0.3
"""The same, for a query of three words or more."""

COMMON_WEIGHT: Final = 0.5
"""The weight of a word in `_COMMON`; any other word has 1."""

DISAGREEMENT: Final = 0.5
"""The factor of a fact that agrees in words, and not in person, negation or direction."""

_TOKEN: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?(?:[+#]+)?")
_CYRILLIC: Final = re.compile(r"[\u0400-\u052f]")
_ENGLISH: Final = stemmer("english")
_RUSSIAN: Final = stemmer("russian")

_STOP: Final = frozenset(
    """
    a an the this that these those it its is are was were be been being am do does did has have had having will
    would can could should may might must shall of in on at by for with about as into onto over under behind
    after before during and or but if then than so to from out up down off very too also just only really
    i me my mine myself we us our ours you your yours he him his she her hers they them their theirs
    user users who whom whose which what where when why how there here some any each every all both
    forget forgets delete remove erase drop please thing things fact facts memory memories remember information
    info everything something know knows known called named
    и в во на с со к ко по о об обо от до из за у при для без под над между через про как так что чтобы это этот
    эта эти этого этой этом том тот та те то же ли бы а но или если когда где куда откуда кто кого кому чей чья
    чьё какой какая какое какие который которая которые я меня мне мной мой моя моё мои моего моей моему моих
    моим мою мы нас нам наш наша наше наши вы вас вам ваш ваша ты тебя тебе твой твоя он его ему им она её ей ею
    они их им свой своя своё свои своего своей своих своему есть был была было были быть будет пользователь
    пользователя пользователю забудь забыть забудьте удали удалить удалите сотри убери пожалуйста факт факты
    память вещь всё все весь вся очень тоже также уже ещё только там тут здесь зовут называется
    """.replace("ё", "е").split()
)

_COMMON: Final = frozenset(
    """
    live lives lived living work works worked working like likes liked love loves loved prefer prefers want wants
    go goes going went get gets got make makes made use uses used take takes play plays eat eats drink drinks
    read reads watch watches study studies speak speaks buy buys bought plan plans name names day days year years
    morning evening week home new old favorite favourite
    живет жил жила жить живу работает работал работала работать работаю любит любил любила любить люблю
    предпочитает хочет хочу ходит идет ездит делает пользуется играет ест пьет читает смотрит учит изучает учится
    говорит купил купила покупает планирует имя день года год утром вечером неделя дома новый новая старый
    любимый любимая любимое любимые
    """.split()
)
"""Words that many facts have: alone they name none of them."""

_NEGATION: Final = frozenset(
    "not no never nor neither without cannot longer stopped quit dislike dislikes hate hates "
    "не нет ни никогда без больше бросил бросила перестал перестала ненавидит".split()
)

_FROM: Final = frozenset({"from", "из", "от", "с", "со"})
_TO: Final = frozenset({"to", "into", "в", "во", "на", "к", "ко", "до"})

_PEOPLE: Final[Mapping[str, str]] = {
    word: person
    for person, words in {
        "mother": "mother mom mum mama мама мамы маме маму мамой мамин мамина мамино мать матери матерью",
        "father": "father dad papa папа папы папе папу папой папин папина отец отца отцу отцом",
        "parent": "parent parents родители родителей родителям родителями",
        "sister": "sister sisters сестра сестры сестре сестру сестрой сестер",
        "brother": "brother brothers брат брата брату братом братья братьев",
        "wife": "wife жена жены жене жену женой",
        "husband": "husband муж мужа мужу мужем",
        "partner": "partner girlfriend boyfriend fiance fiancee девушка девушки девушке парень парня невеста жених",
        "son": "son sons сын сына сыну сыном сыновья",
        "daughter": "daughter daughters дочь дочери дочка дочки дочке дочку дочерью",
        "child": "child children kid kids ребенок ребенка ребенку дети детей детям",
        "grandmother": "grandmother grandma granny бабушка бабушки бабушке бабушку бабушкой",
        "grandfather": "grandfather grandpa дедушка дедушки дедушке дедушку дед деда деду",
        "uncle": "uncle дядя дяди дяде дядю",
        "aunt": "aunt тетя тети тете тетю",
        "cousin": "cousin кузен кузина кузины",
        "nephew": "nephew племянник племянника",
        "niece": "niece племянница племянницы племяннице",
        "friend": "friend friends друг друга другу другом друзья друзей подруга подруги подруге подругу",
        "boss": "boss manager начальник начальника начальница шеф шефа",
        "colleague": "colleague colleagues coworker коллега коллеги коллеге",
        "neighbour": "neighbour neighbours neighbor neighbors сосед соседа соседка соседки соседи соседей",
    }.items()
    for word in words.split()
}
"""Whom a fact may be about besides the user, by each form of the word."""

_LATIN: Final = str.maketrans(
    {
        **dict(zip("абвгдезийклмнопрстуфъыьэ", "abvgdeziiklmnoprstuf\0y\0e", strict=True)),
        **{"ё": "e", "ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ю": "yu", "я": "ya"},
    }
)
_SPELLINGS: Final = (("ks", "x"), ("kh", "h"), ("ts", "c"), ("ya", "ia"), ("yu", "iu"), ("w", "v"), ("ck", "k"))
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
    """A text as it is compared: `stems` are its content words with their weights and directions."""

    stems: Mapping[str, float]
    directions: Mapping[str, str]
    people: frozenset[str]
    denies: bool
    plain: tuple[str, ...]

    @property
    def weight(self) -> float:
        return sum(self.stems.values())


def fit(query: str, text: str) -> float:
    """How well a query names a fact: 1 where the fact has every content word of the query, and agrees with it.

    A person, a negation or a direction that only one of both has halves the fit. Numbers and names are words as
    others are, and must be the same.
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
    needed = SHARE_BY_FEW if len(asked.stems) <= 2 else SHARE_BY_MANY
    return _weight_of_common(fact, asked) >= needed * fact.weight


def _fit(asked: _Terms, fact: _Terms) -> float:
    if not asked.stems:
        return 0.0
    share = _weight_of_common(asked, fact) / asked.weight
    disagrees = (
        asked.denies != fact.denies
        or asked.people != fact.people
        or any(
            direction != other
            for stem, direction in asked.directions.items()
            if (other := _direction_of(fact, stem)) is not None
        )
    )
    return share * DISAGREEMENT if disagrees else share


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
        len(short) >= _SHORTEST_PREFIX and long.startswith(short) and len(long) - len(short) <= _LONGEST_ENDING
    )


def _in_latin(stem: str) -> str:
    latin = stem.translate(_LATIN).replace("\0", "")
    for spelling, usual in _SPELLINGS:
        latin = latin.replace(spelling, usual)
    return latin.rstrip("aeiouy")


@lru_cache(maxsize=20_000)
def _terms(text: str) -> _Terms:
    plain = unicodedata.normalize("NFKC", text).casefold().replace("ё", "е").replace("’", "'")
    tokens = _TOKEN.findall(plain)
    stems: dict[str, float] = {}
    directions: dict[str, str] = {}
    people: set[str] = set()
    denies = False
    heading: str | None = None
    for token in tokens:
        word = token.removesuffix("'s")
        if word in _NEGATION or word.endswith("n't"):
            denies = True
        if word in _FROM or word in _TO:
            heading = "from" if word in _FROM else "to"
            continue
        if word in _PEOPLE:
            people.add(_PEOPLE[word])
            stem = _PEOPLE[word]
        elif word in _STOP or word in _NEGATION or word.endswith("n't") or (len(word) == 1 and not word.isdigit()):
            continue
        else:
            stem = _stem(word)
        stems[stem] = COMMON_WEIGHT if word in _COMMON else 1.0
        if heading:
            directions[stem] = heading
            heading = None
    return _Terms(stems, directions, frozenset(people), denies, tuple(tokens))


def _stem(word: str) -> str:
    stemmed: str = (_RUSSIAN if _CYRILLIC.search(word) else _ENGLISH).stemWord(word)
    return stemmed
