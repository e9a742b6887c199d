"""Intent of a query: the speakers and dates in the query, and the wish for a time. No I/O, no clock."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final, NamedTuple

from mnemon_consumers.retrieve.search.names import find_named
from mnemon_infra.models import bm25

LOOKED_AT: Final = 10_000
"""Maximum number of characters of a text to read, from its beginning, so that a huge text delays no other
request.
"""

_WORD: Final = re.compile(r"[^\W_]+")

_I: Final = """
i me my mine myself we our ours ourselves
я меня мне мной мною мой моя моё мое мои моего моей моему моим моими моих мою
мы нас нам нами наш наша наше наши нашего нашей нашему нашим нашими наших нашу
"""
_YOU: Final = """
you your yours yourself yourselves
ты тебя тебе тобой тобою твой твоя твоё твое твои твоего твоей твоему твоим твоими твоих твою
вы вас вам вами ваш ваша ваше ваши вашего вашей вашему вашим вашими ваших вашу
"""

_TIMES: Final = """
yesterday today tonight tomorrow ago since recently last next
week weeks weekend weekends month months year years
monday tuesday wednesday thursday friday saturday sunday
january february april june july august september october november december
вчера позавчера сегодня завтра послезавтра недавно назад
прошлый прошлая прошлое прошлые прошлого прошлой прошлом прошлую
следующий следующая следующее следующие следующего следующей следующем следующую
неделя недели неделю неделе месяц месяца месяце месяцев год года году лет выходные выходных
понедельник вторник среду четверг пятницу субботу воскресенье
понедельника вторника среды четверга пятницы субботы воскресенья
январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь
января февраля марта апреля мая июня июля августа сентября октября ноября декабря
январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре
"""
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")

FIRST_PERSON: Final = frozenset(_I.split())
SECOND_PERSON: Final = frozenset(_YOU.split())
TIMES: Final = frozenset(_TIMES.split())

_MONTHS: Final = (
    r"january|январ\w+",
    r"february|феврал\w+",
    r"march|март[аеу]?",
    r"april|апрел\w+",
    r"may|ма[йяею]",
    r"june|июн\w+",
    r"july|июл\w+",
    r"august|август\w*",
    r"september|сентябр\w+",
    r"october|октябр\w+",
    r"november|ноябр\w+",
    r"december|декабр\w+",
)
_NAMED: Final = "|".join(f"(?P<m{number}>{names})" for number, names in enumerate(_MONTHS, 1))
_MONTH: Final = re.compile(
    rf"(?:\b(?P<before>[0-3]?\d)(?:st|nd|rd|th|-?го)?\s+(?:of\s+)?)?\b(?:{_NAMED})\b"
    r"(?:\s+(?P<after>[0-3]?\d)(?:st|nd|rd|th)?\b(?!:))?(?:,?\s+(?:of\s+)?(?P<year>\d{4})\b)?",
    re.IGNORECASE,
)
_AMBIGUOUS: Final = frozenset({"may", "march"})
_PREPOSITION: Final = re.compile(
    r"\b(?:in|of|since|until|till|during|last|this|next|by|from)\s+\Z", re.IGNORECASE
)
_NUMERIC: Final = re.compile(
    r"\b(?:(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})|(?P<d2>\d{1,2})\.(?P<m2>\d{1,2})\.(?P<y2>\d{4}))\b"
)
_WHEN: Final = re.compile(
    r"\b(?:when|how long|how often|what (?:time|date|day|week|month|year)|which (?:date|day|week|month|year)"
    r"|когда|как давно|как долго|как часто"
    r"|(?:какого|какой|каком|какую|какое) (?:числ[оа]|день|дня|дату|год\w*|месяц\w*|недел\w+|время))\b",
    re.IGNORECASE,
)


class Day(NamedTuple):
    """A date of which the day and the year may be missing."""

    day: int | None
    month: int
    year: int | None

    def includes(self, moment: datetime) -> bool:
        """Return whether the moment lies in the date."""
        return (
            moment.month == self.month and self.day in (None, moment.day) and self.year in (None, moment.year)
        )


@dataclass(frozen=True)
class QueryIntent:
    """A query and the people and times that it names."""

    text: str

    @cached_property
    def days(self) -> tuple[Day, ...]:
        """Return the dates in the query: `8 May 2023`, `May 8`, `May 2023`, `8 мая`, `2023-05-08`,
        `08.05.2023`.
        """
        return tuple(_find_days(self.text))

    @cached_property
    def for_time(self) -> bool:
        """Return whether the query asks for a time."""
        return _WHEN.search(self.text) is not None

    @cached_property
    def of_self(self) -> bool:
        """Return whether the user asks about themselves: `what did I say`."""
        return not FIRST_PERSON.isdisjoint(self._word_set)

    @cached_property
    def of_other(self) -> bool:
        """Return whether the query is about the assistant: `what did you say`."""
        return not SECOND_PERSON.isdisjoint(self._word_set)

    def find_names(self, names: Iterable[str]) -> frozenset[str]:
        """Return the names that the query has, also a word of a name, a short form or another case."""
        return find_named(self.text, names)

    @cached_property
    def _word_set(self) -> frozenset[str]:
        return split_words(self.text)

    @cached_property
    def terms(self) -> frozenset[int]:
        """The ids of the stemmed words of the query, without stop words."""
        return frozenset(bm25.weigh_query(self.text).indices)


def split_words(text: str) -> frozenset[str]:
    """Return the distinct words of a text in lower case."""
    return frozenset(_WORD.findall(text[:LOOKED_AT].lower()))


def tells_time(text: str) -> bool:
    """Return whether a text names a time."""
    return not TIMES.isdisjoint(split_words(text)) or _YEAR.search(text) is not None


def speaks_of_others(text: str) -> bool:
    """Return whether a text is about the person addressed, and not about the speaker."""
    said = split_words(text)
    return not SECOND_PERSON.isdisjoint(said) and FIRST_PERSON.isdisjoint(said)


def _find_days(text: str) -> Iterator[Day]:
    for found in _NUMERIC.finditer(text):
        year, month, day = (found[name] or found[f"{name}2"] for name in ("y", "m", "d"))
        yield Day(int(day), int(month), int(year))
    for found in _MONTH.finditer(text):
        month = next(number for number in range(1, 13) if found[f"m{number}"])
        day, year = found["before"] or found["after"], found["year"]
        word = found[f"m{month}"]
        if word.lower() in _AMBIGUOUS and not (
            day or year or (word[0].isupper() and found.start()) or _PREPOSITION.search(text[: found.start()])
        ):
            continue  # a verb
        yield Day(int(day) if day else None, month, int(year) if year else None)
