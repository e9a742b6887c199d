"""Rules for the phrases that name periods: the pattern of each phrase, and how it is read."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property, partial
from typing import Final, NamedTuple, TypeAlias

from mnemon_consumers.retrieve.search.query.periods.date_range import (
    DateRange,
    Unit,
    build_day,
    build_decade,
    build_month,
    build_season,
    build_week,
    build_weekend,
    build_year,
    cut_date_range,
    set_year,
)
from mnemon_consumers.retrieve.search.query.periods.date_words import DateWord, Meaning, WordKind
from mnemon_consumers.retrieve.search.query.periods.holidays import HOLIDAY_DATES, Holiday
from mnemon_consumers.retrieve.search.query.periods.role_pattern import compile_pattern
from mnemon_consumers.retrieve.search.query.plans import asks_about_future


@dataclass(frozen=True)
class DateSentence:
    """A text, its words, the kind of each as one character, and the moment of the query."""

    text: str
    words: Sequence[DateWord]
    roles: str
    now: datetime

    @property
    def today(self) -> date:
        return self.now.date()

    @cached_property
    def asks_about_future(self) -> bool:
        return asks_about_future(self.text)


class Phrase(NamedTuple):
    """A phrase: words from index `start` up to the one before `end`, and the ranges of days that it names."""

    start: int
    end: int
    ranges: tuple[DateRange, ...]


class _RuleMatch(NamedTuple):
    """A match of a rule's pattern in the roles of a sentence."""

    sentence: DateSentence
    found: re.Match[str]

    @property
    def today(self) -> date:
        return self.sentence.today

    def get_value(self, name: str) -> Meaning | None:
        """Return the value of the word that a group of the pattern matched; None if it matched none."""
        place = self.found.start(name) if name in self.found.re.groupindex else -1
        return self.sentence.words[place].value if place >= 0 else None

    def get_number(self, name: str) -> int | None:
        """Return the number that a group of the pattern matched; None if it matched none."""
        value = self.get_value(name)
        assert value is None or isinstance(value, int)
        return value

    def get_kind(self, name: str) -> WordKind | None:
        """Return the kind of the word that a group of the pattern matched; None if it matched none."""
        place = self.found.start(name) if name in self.found.re.groupindex else -1
        return self.sentence.words[place].kind if place >= 0 else None

    def is_in_future(self) -> bool:
        """Return whether the day of the phrase is in the future, as in "What am I doing on Friday?".

        A day after "since", in a range of days, or as a topic is not.
        """
        start = self.found.start()
        is_coming = _NOT_COMING.search(self.sentence.roles, max(0, start - 4), start) is None
        return is_coming and self._get_word_before() not in _ABOUT and self.sentence.asks_about_future

    def is_topic(self) -> bool:
        """Return whether the word before the phrase makes it a topic or a purpose, as in «про Новый год»."""
        word = self._get_word_before()
        return word in _ABOUT or word in _TOWARDS

    def _get_word_before(self) -> str:
        """Return the word before the phrase, in lower case; "" at the beginning of the text."""
        start = self.found.start()
        return self.sentence.words[start - 1].text.lower() if start else ""

    def get_count(self) -> int | None:
        """Return the number of units, as of "two weeks" or "a couple of weeks"; None if there is none."""
        return self.get_number("few") or self.get_number("count")

    def count_halves(self) -> int:
        """Return 1 if the phrase adds half a unit, as in "a week and a half", else 0."""
        return int(self.get_kind("half") is not None or self.get_kind("count") is WordKind.ONE_AND_A_HALF)

    def get_year(self) -> int | None:
        """Return the year that the phrase names, as `2024`, "last year" or "two years ago"; None if none."""
        shift = self.get_number("shift_of_year")
        if years := self.get_number("years_ago") or self.get_number("year_ago"):
            shift = -years
        return self.get_number("year") if shift is None else self.today.year + shift


_Reading: TypeAlias = Callable[[_RuleMatch], tuple[int, Sequence[DateRange]] | None]
"""Function that returns the index of the word after a phrase, and the ranges that the phrase names; None
if the phrase names none."""


class _PhraseRule(NamedTuple):
    pattern: re.Pattern[str]
    read: _Reading


_SATURDAY: Final = 6
"""Number of the first day of a weekend, as `date.isoweekday` counts."""

_RECENT: Final = timedelta(days=7)
"""Time before today that "the other day" means."""

_HALF_LENGTHS: Final = {
    WordKind.WEEK_UNIT: 3,
    WordKind.FORTNIGHT: 3,
    WordKind.MONTH_UNIT: 15,
    WordKind.YEAR_UNIT: 182,
}
"""Number of days in half a unit, by which the period of a phrase such as "two weeks ago" extends before and
after the day that is so far away. A fortnight ago is two weeks ago."""

_WHOLE_UNITS: Final[frozenset[Unit]] = frozenset(("week", "month", "season", "year", "decade"))
"""Units of the periods that have parts, as in "the end of May"."""

_ABOUT: Final = frozenset(["о", "об", "про"])
"""Prepositions after which a day is a topic: «про Новый год» (about New Year)."""

_TOWARDS: Final = frozenset(["к", "ко"])
"""Prepositions of a purpose, as in «подарки к Новому году» (gifts for New Year), and of a deadline, as in
«Что сделать к пятнице?» (What to do by Friday?)."""

_NOT_COMING: Final = compile_pattern(
    "(?: [SINCE FROM FROM_OR_SINCE OF TO UNTIL DASH] | BETWEEN (?: THE? ANY_WEEKDAY AND )? ) THE? $"
)
"""Roles before a day that is past, or one end of a range of days."""

_MONTHS: Final = {WordKind.MONTH_UNIT: 1, WordKind.HALF_YEAR: 6, WordKind.YEAR_UNIT: 12}
"""Number of months in a unit."""


def find_phrases(sentence: DateSentence) -> Iterator[Phrase]:
    """Find the phrases of a sentence that name periods, in their order."""
    place = 0
    while place < len(sentence.words):
        phrase = None
        if sentence.words[place].kind is not WordKind.OTHER:
            phrase = _read_phrase(sentence, place, _RULES_OF_SENTENCES)
        if phrase is not None:
            yield phrase
        place = phrase.end if phrase is not None else place + 1


def _read_phrase(sentence: DateSentence, start: int, rules: Sequence[_PhraseRule]) -> Phrase | None:
    """Read the phrase that begins at index `start`, by the first rule that fits it; None if none fits."""
    for rule in rules:
        found = rule.pattern.match(sentence.roles, start)
        if found is None:
            continue
        try:
            named = rule.read(_RuleMatch(sentence, found))
        except (OverflowError, ValueError):
            continue  # 31 February, or a hundred thousand years ago
        if named is not None:
            return Phrase(start, named[0], tuple(named[1]))
    return None


def _read_distance(match: _RuleMatch, direction: int) -> tuple[int, list[DateRange]] | None:
    """Read a distance from today such as "two weeks ago", or "in two weeks" with `direction` 1.

    Several days, weeks, months or years without a number, as in "weeks ago", give None.
    """
    number, kind = match.get_count(), match.get_kind("unit")
    if number is None:
        if match.get_number("unit") != 1 and kind is not WordKind.TIME_UNIT:
            return None
        number = 1
    if kind is WordKind.TIME_UNIT:
        minutes = number * (match.get_number("unit") or 0)
        moment = match.sentence.now + direction * timedelta(minutes=minutes)
        return match.found.end(), [build_day(moment.date())]
    around = timedelta(days=_HALF_LENGTHS.get(kind, 0) if kind else 0)
    day = _shift_day(match.today, kind, direction * number) + direction * match.count_halves() * around
    unit: Unit = "other" if around else "day"
    return match.found.end(), [DateRange(day - around, day + around + timedelta(days=1), unit)]


def _read_distance_from_day(match: _RuleMatch, direction: int) -> tuple[int, list[DateRange]] | None:
    """Read "a week ago yesterday", "a week ago on Saturday", or "two weeks from Monday" with `direction` 1.

    A weekday after "from" is the next one; a weekday after "ago" is that of the week so far away. Several
    units without a number, as in "weeks ago today", give None.
    """
    weekday, kind = match.get_number("weekday"), match.get_kind("unit")
    number = match.get_count() or match.get_number("unit")
    if not number:
        return None
    number *= direction
    if weekday is None:
        start = match.today + timedelta(days=match.get_number("day") or 0)
        return match.found.end(), [build_day(_shift_day(start, kind, number))]
    if direction > 0:
        named = _shift_day(_find_weekday(match.today, weekday, direction), kind, number)
    else:
        named = build_week(_shift_day(match.today, kind, number)).first + timedelta(days=weekday - 1)
    return match.found.end(), [build_day(named, "weekday")]


def _find_weekday(day: date, weekday: int, direction: int) -> date:
    """Return the nearest weekday, 1 for Monday, before `day`, or after it with `direction` 1."""
    days = (direction * (weekday - day.isoweekday()) - 1) % 7 + 1
    return day + direction * timedelta(days=days)


def _read_distance_to_day(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read "two weeks before 5 May", "the week after Christmas" and "the Sunday before last week".

    A distance from a longer period begins at its first day, or after its last day. If no period follows, or
    several units have no number, as in "weeks before 5 May", the result is None.
    """
    direction = match.get_number("direction")
    inner = _read_phrase(match.sentence, match.found.end(), _RULES_AFTER_DISTANCE)
    if not direction or inner is None or len(inner.ranges) != 1:
        return None
    (dates,) = inner.ranges
    day = dates.first if direction < 0 else dates.after - timedelta(days=1)
    weekday, kind, number = match.get_number("weekday"), match.get_kind("unit"), match.get_count()
    if weekday is not None:
        named = build_day(_find_weekday(day, weekday, direction), "weekday")
    elif kind is None:
        named = build_weekend(_find_weekday(day, _SATURDAY, direction))
    elif number is not None:
        around = timedelta(days=_HALF_LENGTHS.get(kind, 0))
        far = _shift_day(day, kind, direction * number)
        named = DateRange(far - around, far + around + timedelta(days=1))
    elif match.get_number("unit") == 1:
        far = _shift_day(day, kind, direction)
        first, last = (far, day - timedelta(days=1)) if direction < 0 else (day + timedelta(days=1), far)
        named = DateRange(first, last + timedelta(days=1))
    else:
        return None
    return inner.end, [named._replace(is_yearly=dates.is_yearly)]


def _read_following_day(match: _RuleMatch) -> tuple[int, DateRange] | None:
    """Read the day after "the week of"; None if no single day follows."""
    inner = _read_phrase(match.sentence, match.found.end(), _CALENDAR_RULES)
    if inner is None or [each.unit for each in inner.ranges] != ["day"]:
        return None
    return inner.end, inner.ranges[0]


def _read_recent_days(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read "the other day" and «на днях» as the seven days before today; "the other days" gives None."""
    if match.get_number("unit") == 0:
        return None
    return match.found.end(), [DateRange(match.today - _RECENT, match.today)]


def _read_day_of_month(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read "the 14th of last month"; None if the month has no such day.

    Without a month, as in «14 числа» (on the 14th), the day is the last one before today; in a question about
    the future, it is the first from today on.
    """
    day, last, shift = (match.get_number(name) for name in ("day", "last_day", "shift"))
    assert day is not None
    is_future = shift is None and match.is_in_future()
    for each in ((0, 1, 2) if is_future else (0, -1, -2)) if shift is None else (shift,):
        month = build_month(match.today.year, match.today.month + each)
        first = month.first + timedelta(days=day - 1)
        after = month.first + timedelta(days=last or day)
        if month.first <= first < after <= month.after and (
            shift is not None or (first >= match.today if is_future else first < match.today)
        ):
            return match.found.end(), [DateRange(first, after, "other" if last else "day")]
    return None


def _read_numbered_day(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read "on the 14th" as the last such day before today; "on the second" gives None."""
    written = match.sentence.words[match.found.start("day")].text
    return _read_day_of_month(match) if written[0].isdigit() else None


def _read_days_ago(match: _RuleMatch) -> tuple[int, list[DateRange]]:
    """Read "two Fridays ago" and "a couple of weekends ago", counted from the last one before today."""
    number, weekday = match.get_count() or 1, match.get_number("weekday")
    if weekday is None:
        return match.found.end(), [build_weekend(match.today - timedelta(weeks=number))]
    last = _find_weekday(match.today, weekday, -1)
    return match.found.end(), [build_day(last - timedelta(weeks=number - 1), "weekday")]


def _read_half_year(match: _RuleMatch, direction: int) -> tuple[int, list[DateRange]]:
    day = _shift_day(match.today, WordKind.HALF_YEAR, direction)
    around = timedelta(days=_HALF_LENGTHS[WordKind.MONTH_UNIT])
    return match.found.end(), [DateRange(day - around, day + around + timedelta(days=1))]


def _read_rolling_period(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read "the last two weeks", which end today, or "the next two weeks", which begin today.

    "The past day", hours and minutes give None.
    """
    kind, shift = match.get_kind("unit"), match.get_number("shift") or 0
    number = match.get_count()
    if number is None:
        # "The past week" has a length, and "the past weeks" has not.
        is_one = match.get_number("unit") == 1
        if is_one and kind is WordKind.DAY_UNIT:
            return None
        number = 1 if is_one else 3
    if kind is WordKind.TIME_UNIT or shift not in (-1, 1):
        return None
    half = match.count_halves() * timedelta(days=_HALF_LENGTHS.get(kind, 0) if kind else 0)
    other = _shift_day(match.today, kind, shift * number) + shift * half
    first, last = sorted((other, match.today))
    return match.found.end(), [DateRange(first, last + timedelta(days=1))]


def _shift_day(today: date, kind: WordKind | None, count: int) -> date:
    """Return the day that is `count` units of `kind` after `today`; before it if `count` is negative.

    A month after 31 January is the last day of February.

    Raises:
        ValueError: `kind` is no unit of whole days.
    """
    match kind:
        case WordKind.DAY_UNIT | WordKind.NIGHTS:
            return today + timedelta(days=count)
        case WordKind.WEEK_UNIT:
            return today + timedelta(weeks=count)
        case WordKind.FORTNIGHT:
            return today + timedelta(weeks=2 * count)
        case WordKind.MONTH_UNIT | WordKind.HALF_YEAR | WordKind.YEAR_UNIT:
            month = build_month(today.year, today.month + count * _MONTHS[kind])
            return min(month.first + timedelta(days=today.day - 1), month.after - timedelta(days=1))
        case _:
            raise ValueError(
                f"{kind!r} is no unit of whole days; give the kind of a day, week, month or year"
            )


def _read_numeric_date(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    dates = match.get_value("date")
    assert isinstance(dates, tuple)
    ranges = []
    for each in dates:
        assert isinstance(each, tuple)
        try:
            ranges.append(build_day(date(*each)))
        except ValueError:
            continue
    return (match.found.end(), ranges) if ranges else None


def _read_pair(match: _RuleMatch) -> tuple[int, list[DateRange]]:
    pair = match.get_value("pair")
    assert isinstance(pair, tuple)
    first, second = pair
    assert isinstance(first, int)
    assert isinstance(second, int)
    if match.get_kind("pair") is WordKind.ISO_MONTH:
        return match.found.end(), [build_month(first, second)]
    if (season := match.get_number("season")) is not None:
        return match.found.end(), [build_season(first, season)]
    return match.found.end(), [DateRange(date(first, 1, 1), date(second + 1, 1, 1))]


def _read_year_range(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    first, last = match.get_number("year"), match.get_number("last_year")
    assert first is not None
    assert last is not None
    return (
        (match.found.end(), [DateRange(date(first, 1, 1), date(last + 1, 1, 1))]) if first <= last else None
    )


def _read_days_of_month(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read a day of a month, or several days in a row, with or without a year.

    A day that does not exist, or an end before the beginning, gives None.
    """
    month, day, last = (match.get_number(name) for name in ("month", "day", "last_day"))
    assert month is not None
    assert day is not None
    year = match.get_year()
    for each in (year,) if year is not None else _list_years(match.today.year):
        try:
            first, final = date(each, month, day), date(each, month, last or day)
        except ValueError:
            continue
        if final < first:
            return None
        unit: Unit = "day" if first == final else "other"
        return match.found.end(), [DateRange(first, final + timedelta(days=1), unit, year is None)]
    return None


def _list_years(year: int) -> range:
    """List a year and the eight years before it, latest first: one of them has a 29 February."""
    return range(year, year - 9, -1)


def _read_month(match: _RuleMatch) -> tuple[int, list[DateRange]]:
    month, shift, year = match.get_number("month"), match.get_number("shift"), match.get_year()
    assert month is not None
    today = match.today
    if year is not None:
        return match.found.end(), [build_month(year, month)]
    if shift is None:
        return match.found.end(), [build_month(today.year, month)._replace(is_yearly=True)]
    nearest = today.year
    if shift < 0 and month >= today.month:
        nearest -= 1
    elif shift > 0 and month <= today.month:
        nearest += 1
    return match.found.end(), [build_month(nearest + min(shift + 1, 0), month)]


def _read_season(match: _RuleMatch) -> tuple[int, list[DateRange]]:
    season, shift, year = match.get_number("season"), match.get_number("shift"), match.get_year()
    assert season is not None
    if year is not None:
        # The winter of 2023 may begin or end in 2023.
        years = (year - 1, year) if season == 4 and match.get_kind("year") is not None else (year,)
        return match.found.end(), [build_season(each, season) for each in years]
    if shift is None:
        return match.found.end(), [build_season(match.today.year, season)._replace(is_yearly=True)]
    shift += match.get_number("before") or 0
    return match.found.end(), [_find_season(match.today, season, shift)]


def _read_seasons_ago(match: _RuleMatch) -> tuple[int, list[DateRange]]:
    """Read "two summers ago", counted from the last one that has ended."""
    season, number = match.get_number("season"), match.get_count() or 1
    assert season is not None
    return match.found.end(), [_find_season(match.today, season, -number)]


def _find_season(today: date, season: int, shift: int) -> DateRange:
    """Return the season of this year; with `shift` -1 the last that has ended, with 1 the next to begin."""
    year = today.year
    if shift < 0:
        while build_season(year, season).after > today:
            year -= 1
        year += shift + 1
    elif shift > 0:
        while build_season(year, season).first <= today:
            year += 1
        year += shift - 1
    elif season == 4 and today.month <= 6:
        year -= 1
    return build_season(year, season)


def _read_year(match: _RuleMatch) -> tuple[int, list[DateRange]]:
    year = match.get_number("year")
    assert year is not None
    return match.found.end(), [build_year(year)]


def _read_rough_year(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read "around 2020"; "around 2000" is as often a price, and gives None."""
    return None if (match.get_number("year") or 0) % 100 == 0 else _read_year(match)


def _read_decade(match: _RuleMatch) -> tuple[int, list[DateRange]]:
    decade = match.get_number("decade")
    assert decade is not None
    return match.found.end(), [build_decade(decade)]


def _read_holiday(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read "Christmas last year", "last Christmas" and "at Easter".

    Without more words, a holiday that has other dates in each year is the latest one that has begun or, in a
    question about the future, the next one. After a preposition that makes the holiday a topic or a purpose,
    the result is None.
    """
    year, shift = match.get_year(), match.get_number("shift")
    builders = HOLIDAY_DATES[Holiday(match.get_number("holiday") or 0)]
    if year is not None:
        return match.found.end(), [build(year)._replace(is_yearly=False) for build in builders]
    if shift is not None:
        nearest = [_find_holiday(match.today, build, shift) for build in builders]
        return match.found.end(), [each._replace(is_yearly=False) for each in nearest]
    if match.is_topic():
        return None
    named = [build(match.today.year) for build in builders]
    if match.is_in_future():
        named = [
            each if each.is_yearly else _find_holiday(match.today, build, 1)
            for each, build in zip(named, builders, strict=True)
        ]
    elif match.today < named[0].first and not named[0].is_yearly:
        named = [build(match.today.year - 1) for build in builders]
    return match.found.end(), named


def _find_holiday(today: date, build: Callable[[int], DateRange], shift: int) -> DateRange:
    """Return the nearest holiday; with `shift` -1 the last that has ended, with 1 the next to begin."""
    dates = [build(year) for year in range(today.year - 1, today.year + 3)]
    if shift < 0:
        return max(each for each in dates if each.after <= today)
    if shift > 0:
        return min(each for each in dates if each.first > today)
    return min(dates, key=lambda each: abs(each.first - today))


def _read_unit(match: _RuleMatch) -> tuple[int, list[DateRange]]:
    """Read "last week", "the month before last" and "this weekend"."""
    shift = (match.get_number("shift") or 0) + (match.get_number("before") or 0)
    return match.found.end(), [_build_unit(match.get_kind("unit"), match.today, shift)]


def _build_unit(kind: WordKind | None, today: date, shift: int) -> DateRange:
    match kind:
        case WordKind.WEEK_UNIT:
            return build_week(today + timedelta(weeks=shift))
        case WordKind.WEEKEND:
            return build_weekend(today + timedelta(weeks=shift))
        case WordKind.MONTH_UNIT:
            return build_month(today.year, today.month + shift)
        case _:
            return build_year(today.year + shift)


def _read_weekday(match: _RuleMatch) -> tuple[int, list[DateRange]]:
    weekday, shift, weeks = (match.get_number(name) for name in ("weekday", "shift", "shift_of_week"))
    assert weekday is not None
    if shift is not None:
        shift += match.get_number("before") or 0
    is_bare = shift is None and weeks is None
    if match.get_kind("shift") is WordKind.COMING or (is_bare and match.is_in_future()):
        day = _find_weekday(match.today, weekday, 1)
    elif is_bare or (weeks is None and shift is not None and shift < 0):
        day = _find_weekday(match.today, weekday, -1) + timedelta(weeks=1 + (shift or -1))
    else:
        weeks = shift if weeks is None else weeks
        day = build_week(match.today + timedelta(weeks=weeks or 0)).first + timedelta(days=weekday - 1)
    return match.found.end(), [build_day(day, "weekday")]


def _read_named_day(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    days = sum(match.get_number(name) or 0 for name in ("day", "before", "shift"))
    if match.get_number("shift") is not None and days not in (-1, 0):
        return None
    return match.found.end(), [build_day(match.today + timedelta(days=days))]


def _read_this_weekend(match: _RuleMatch) -> tuple[int, list[DateRange]]:
    """Read "at the weekend" as the current weekend on a Saturday or Sunday, else as the last weekend.

    In a question about the future, it is the current or the coming weekend.
    """
    shift = 0 if match.today.weekday() >= 5 or match.is_in_future() else -1
    return match.found.end(), [build_weekend(match.today + timedelta(weeks=shift))]


def _read_coming_weekend(match: _RuleMatch) -> tuple[int, list[DateRange]]:
    """Read "the coming weekend": the first one that begins today or later."""
    return match.found.end(), [build_weekend(_find_weekday(match.today - timedelta(days=1), _SATURDAY, 1))]


def _read_phrase_in_year(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read a year before its month, season or day: "last year in March", "two years ago in summer".

    If no such phrase follows the year, the result is None.
    """
    year = match.get_year()
    inner = _read_phrase(match.sentence, match.found.end(), _RULES_AFTER_YEAR)
    if year is None or inner is None or not all(dates.is_yearly for dates in inner.ranges):
        return None
    return inner.end, [set_year(dates, year) for dates in inner.ranges]


def _read_whole_period(match: _RuleMatch) -> tuple[int, tuple[DateRange, ...]] | None:
    """Read the period that a part belongs to: "the beginning OF LAST MONTH", "the end OF THE WEEK".

    If no week, month, season, year or decade follows the part, the result is None.
    """
    kind = match.get_kind("unit")
    if kind is not None:
        return match.found.end(), (_build_unit(kind, match.today, 0),)
    inner = _read_phrase(match.sentence, match.found.end(), _RULES_AFTER_PART)
    if inner is None or any(dates.unit not in _WHOLE_UNITS for dates in inner.ranges):
        return None
    return inner.end, inner.ranges


def _read_edge(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read the beginning, the middle or the end of a period; None if no period follows."""
    whole, edge = _read_whole_period(match), match.get_number("edge")
    if whole is None or edge is None:
        return None
    return whole[0], [cut_date_range(dates, edge, 3) for dates in whole[1]]


def _read_part(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read a day, a week or a half of a period, counted from its beginning or, for "last", from its end.

    If no period follows, or the period has no such part, the result is None.
    """
    whole, place, kind = _read_whole_period(match), match.get_number("place"), match.get_kind("part")
    if whole is None or place is None:
        return None
    if kind is WordKind.HALF:
        return (
            (whole[0], [cut_date_range(dates, place % 3 - 1, 2) for dates in whole[1]])
            if place <= 2
            else None
        )
    days = 7 if kind is WordKind.WEEK_UNIT else 1
    ranges = []
    for dates in whole[1]:
        ahead = days * (place - 1) if place > 0 else (dates.after - dates.first).days - days
        first = dates.first + timedelta(days=ahead)
        after = min(first + timedelta(days=days), dates.after)
        if not dates.first <= first < after:
            return None
        ranges.append(DateRange(first, after, "other", dates.is_yearly))
    return whole[0], ranges


def _read_weekday_of_period(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read a weekday or a weekend of a period: "the first Monday of May", "the last weekend of October".

    A weekend belongs to the period of its Saturday. Without a year, the period is the latest one that has
    begun. If no period follows, or it has no such day, the result is None.
    """
    whole, place, weekday = _read_whole_period(match), match.get_number("place"), match.get_number("weekday")
    if whole is None or place is None or len(whole[1]) != 1:
        return None
    (dates,) = whole[1]
    if dates.is_yearly and dates.first > match.today:
        dates = set_year(dates, dates.first.year - 1)
    days = [dates.first + timedelta(days=each) for each in range((dates.after - dates.first).days)]
    named = [each for each in days if each.isoweekday() == (weekday or _SATURDAY)]
    index = place - 1 if place > 0 else place
    if not -len(named) <= index < len(named):
        return None
    day = named[index]
    return whole[0], [build_weekend(day) if weekday is None else build_day(day, "weekday")]


def _read_week_of_day(match: _RuleMatch) -> tuple[int, list[DateRange]] | None:
    """Read "the week of 9 March", and "the weekend of 14 March": the weekend of the week with this day.

    Without a year, the day is the latest one. If no day follows, the result is None.
    """
    inner = _read_following_day(match)
    if inner is None:
        return None
    end, dates = inner
    if dates.is_yearly and dates.first > match.today:
        dates = set_year(dates, dates.first.year - 1)
    build = build_weekend if match.get_kind("unit") is WordKind.WEEKEND else build_week
    return end, [build(dates.first)]


def _build_rules(*rules: tuple[str, _Reading]) -> tuple[_PhraseRule, ...]:
    return tuple(_PhraseRule(compile_pattern(pattern), read) for pattern, read in rules)


_PART_RULES: Final = _build_rules(
    (
        "(?P<place> [ORDINAL LAST PAST]) (?P<part> [DAY_UNIT WEEK_UNIT HALF]) (?: OF THE? )? LONG_UNIT",
        _read_part,
    ),
    ("(?P<place> [ORDINAL LAST PAST]) (?P<part> [DAY_UNIT WEEK_UNIT HALF]) [OF IN ON]? THE?", _read_part),
    (
        "(?<! EVERY) (?P<place> [ORDINAL LAST PAST]) WEEKDAY_OR_WEEKEND (?: OF THE? )? LONG_UNIT",
        _read_weekday_of_period,
    ),
    (
        "(?<! EVERY) (?P<place> [ORDINAL LAST PAST]) WEEKDAY_OR_WEEKEND [OF IN ON]? THE?",
        _read_weekday_of_period,
    ),
    ("(?P<unit> [WEEK_UNIT WEEKEND]) OF THE?", _read_week_of_day),
    ("LAST? WEEKDAY_OR_WEEKEND (?P<direction> BEFORE) THE?", _read_distance_to_day),
    ("AFTER_TIME? COUNTED? UNIT (?P<direction> [BEFORE UNTIL]) THE?", _read_distance_to_day),
    ("OF_YEAR COMMA? PREPOSITION THE? (?P<holiday> HOLIDAY) POSSESSIVE?", _read_holiday),
    ("(?P<edge> EDGE) OF THE? LONG_UNIT", _read_edge),
    ("(?P<edge> RUSSIAN_EDGE) LONG_UNIT", _read_edge),
    ("(?P<edge> [EDGE RUSSIAN_EDGE]) [OF DASH]? THE?", _read_edge),
    ("(?P<shift_of_year> SHIFT) YEAR_UNIT COMMA? PREPOSITION? THE?", _read_phrase_in_year),
    ("(?P<year> ANY_YEAR) YEAR_UNIT? COMMA? PREPOSITION? THE?", _read_phrase_in_year),
    ("YEARS_AGO PREPOSITION? THE?", _read_phrase_in_year),
)
"""Rules for phrases before another period: "the end of May", "a week before 5 May", "last year in March"."""

_CALENDAR_RULES: Final = _build_rules(
    (
        (
            "(?P<day> DAY_NUMBER) [DASH TO UNTIL] THE? (?P<last_day> DAY_NUMBER) OF? (?P<month> ANY_MONTH)"
            "MAYBE_OF_YEAR"
        ),
        _read_days_of_month,
    ),
    (
        (
            "(?: (?<= BETWEEN) | (?<= BETWEEN THE) ) (?P<day> DAY_NUMBER) AND THE? (?P<last_day> DAY_NUMBER)"
            "OF? (?P<month> ANY_MONTH) MAYBE_OF_YEAR"
        ),
        _read_days_of_month,
    ),
    (
        (
            "(?P<month> ENGLISH_MONTH) (?P<day> DAY_NUMBER) [DASH TO UNTIL] (?P<last_day> DAY_NUMBER)"
            "MAYBE_OF_YEAR (?! ANY_UNIT )"
        ),
        _read_days_of_month,
    ),
    (
        (
            "(?<= BETWEEN) (?P<month> ENGLISH_MONTH) (?P<day> DAY_NUMBER) AND (?P<last_day> DAY_NUMBER)"
            "MAYBE_OF_YEAR (?! ANY_MONTH )"
        ),
        _read_days_of_month,
    ),
    ("(?: ANY_WEEKDAY COMMA? THE? )? (?P<date> DATE)", _read_numeric_date),
    (
        (
            "(?: ANY_WEEKDAY COMMA? THE? )? (?P<day> DAY_NUMBER) DAY_OF_MONTH? OF? THE? (?P<month> ANY_MONTH)"
            "MAYBE_OF_YEAR"
        ),
        _read_days_of_month,
    ),
    (
        (
            "(?: ANY_WEEKDAY COMMA? )? (?P<month> ENGLISH_MONTH) THE? (?P<day> DAY_NUMBER) "
            "(?! ANY_UNIT ) MAYBE_OF_YEAR"
        ),
        _read_days_of_month,
    ),
    ("(?P<day> ORDINAL) OF THE? (?P<shift> SHIFT) MONTH_UNIT", _read_day_of_month),
    (
        (
            "(?: ANY_WEEKDAY COMMA? )? (?P<day> DAY_NUMBER) (?: [DASH TO UNTIL] (?P<last_day> DAY_NUMBER) )?"
            "DAY_OF_MONTH"
            "(?: (?P<shift> SHIFT) MONTH_UNIT | (?! SHIFT MONTH_UNIT | EVERY ) )"
        ),
        _read_day_of_month,
    ),
    ("(?P<season> ANY_SEASON) OF? (?P<pair> SEVERAL_YEARS)", _read_pair),
    ("(?P<pair> [ISO_MONTH SEVERAL_YEARS]) YEAR_UNIT?", _read_pair),
    (
        (
            "(?<= [BETWEEN FROM FROM_OR_SINCE DURING SINCE]) (?P<year> ANY_YEAR) YEAR_UNIT? "
            "[AND TO UNTIL DASH] (?P<last_year> ANY_YEAR) YEAR_UNIT?"
        ),
        _read_year_range,
    ),
    ("(?P<month> ANY_MONTH) OF_YEAR", _read_month),
    ("(?P<shift> SHIFT) (?P<month> [MONTH RUSSIAN_MONTH])", _read_month),
    ("(?P<shift> [LAST PREVIOUS NEXT COMING]) (?P<month> AMBIGUOUS_MONTH | SHORT_MONTH)", _read_month),
    ("(?P<shift> THIS) (?P<month> AMBIGUOUS_MONTH) CLAUSE_END", _read_month),
    ("(?P<holiday> HOLIDAY) POSSESSIVE? OF_YEAR", _read_holiday),
    ("(?P<shift> SHIFT | PAST) (?P<holiday> HOLIDAY) POSSESSIVE?", _read_holiday),
    ("(?P<season> ANY_SEASON) OF_YEAR", _read_season),
    ("(?P<shift> SHIFT) (?P<season> ANY_SEASON)", _read_season),
    ("(?P<season> SEASON) (?P<before> BEFORE) (?P<shift> [LAST NEXT])", _read_season),
    ("COUNTED (?P<season> [SEASON SEASONS]) AGO", _read_seasons_ago),
    ("(?P<season> IN_SEASON)", _read_season),
    (
        "(?P<weekday> ANY_WEEKDAY) COMMA? [OF IN ON]? THE? (?P<shift_of_week> SHIFT) WEEK_UNIT",
        _read_weekday,
    ),
    (
        "(?P<shift_of_week> SHIFT) WEEK_UNIT COMMA? ON? THE? (?P<weekday> ANY_WEEKDAY)",
        _read_weekday,
    ),
    ("(?P<shift> SHIFT | PAST) (?P<weekday> ANY_WEEKDAY | SHORT_WEEKDAY)", _read_weekday),
    ("(?P<weekday> ANY_WEEKDAY) (?P<before> BEFORE) (?P<shift> [LAST NEXT])", _read_weekday),
    ("COMING WEEKEND", _read_coming_weekend),
    ("(?P<shift> SHIFT) (?P<unit> [WEEK_UNIT MONTH_UNIT YEAR_UNIT WEEKEND])", _read_unit),
    ("(?P<shift> PAST) (?P<unit> WEEKEND)", _read_unit),
    (
        "(?P<unit> [WEEK_UNIT MONTH_UNIT YEAR_UNIT WEEKEND]) (?P<before> BEFORE) (?P<shift> [LAST NEXT])",
        _read_unit,
    ),
    ("(?P<day> NAMED_DAY)", _read_named_day),
    ("DAY_UNIT (?P<before> BEFORE) (?P<day> NAMED_DAY)", _read_named_day),
    ("(?P<shift> [LAST PREVIOUS THIS]) PART_OF_DAY", _read_named_day),
    ("PART_OF_DAY (?P<before> BEFORE) (?P<day> LAST)", _read_named_day),
    ("THE RECENT (?: (?P<unit> DAY_UNIT) | PART_OF_DAY ) (?! OF )", _read_recent_days),
    ("ON RECENT_DAYS (?! BIRTH )", _read_recent_days),
    ("COUNTED? UNIT THE? AGO (?P<day> NAMED_DAY)", partial(_read_distance_from_day, direction=-1)),
    (
        "COUNTED? (?P<unit> [WEEK_UNIT FORTNIGHT]) THE? AGO [OF IN ON]? THE? (?P<weekday> ANY_WEEKDAY)",
        partial(_read_distance_from_day, direction=-1),
    ),
    (
        "(?P<weekday> ANY_WEEKDAY) COUNTED? (?P<unit> [WEEK_UNIT FORTNIGHT]) THE? AGO",
        partial(_read_distance_from_day, direction=-1),
    ),
    (
        "COUNTED UNIT FROM (?: (?P<day> NAMED_DAY) | (?P<weekday> ANY_WEEKDAY) ) (?! [DASH TO UNTIL] )",
        partial(_read_distance_from_day, direction=1),
    ),
    ("COUNTED? AND_A_HALF UNIT THE? AGO", partial(_read_distance, direction=-1)),
    ("COUNTED UNIT AND_A_HALF THE? AGO", partial(_read_distance, direction=-1)),
    ("UNIT (?P<count> [NUMBER NUMERAL ONE_AND_A_HALF]) THE? AGO", partial(_read_distance, direction=-1)),
    ("COUNTED UNIT BACK (?! [IN ON TO FROM] )", partial(_read_distance, direction=-1)),
    ("COUNTED (?P<unit> NIGHTS) AGO", partial(_read_distance, direction=-1)),
    ("COUNTED (?P<weekday> ANY_WEEKDAY | WEEKDAYS) AGO", _read_days_ago),
    ("COUNTED [WEEKEND WEEKENDS] AGO", _read_days_ago),
    ("(?: HALF_YEAR | HALF ARTICLE YEAR_UNIT ) THE? AGO", partial(_read_half_year, direction=-1)),
    ("COUNTED UNIT FROM NOW", partial(_read_distance, direction=1)),
    ("AFTER_TIME COUNTED? UNIT (?! BEFORE )", partial(_read_distance, direction=1)),
    ("(?: AFTER_TIME HALF_YEAR | (?<= IN) HALF ARTICLE YEAR_UNIT )", partial(_read_half_year, direction=1)),
    (
        (
            "(?<= IN) (?: ARTICLE? (?P<few> FEW) OF? | (?P<count> [NUMBER NUMERAL]) )"
            "(?! TIME_UNIT ) UNIT (?! AGO )"
        ),
        partial(_read_distance, direction=1),
    ),
    ("(?P<shift> [LAST PREVIOUS NEXT PAST COMING]) COUNTED UNIT", _read_rolling_period),
    ("(?P<shift> [LAST PREVIOUS NEXT PAST COMING]) (?P<unit> [HALF_YEAR FORTNIGHT])", _read_rolling_period),
    ("(?P<shift> PAST) UNIT", _read_rolling_period),
    ("(?P<month> [MONTH RUSSIAN_MONTH])", _read_month),
)
"""Rules for phrases that name a period by their own words: "last week", "5 May", "two days ago"."""

_RULES_AFTER_DISTANCE: Final = (
    *_CALENDAR_RULES,
    *_build_rules(("(?P<holiday> HOLIDAY) POSSESSIVE?", _read_holiday)),
)
"""Rules for the period after a distance, as in "a week before Christmas"."""

_BARE_RULES: Final = _build_rules(
    ("(?P<month> AMBIGUOUS_MONTH)", _read_month),
    ("(?P<season> SEASON)", _read_season),
    ("(?P<year> ANY_YEAR) YEAR_UNIT?", _read_year),
    ("(?P<decade> DECADE) YEAR_UNIT?", _read_decade),
)
"""Rules for words that name a period after "the end of", and may mean another thing elsewhere."""

_GUARDED_RULES: Final = _build_rules(
    (
        (
            "(?: ANY_WEEKDAY COMMA? THE | (?<= [ON SINCE UNTIL BEFORE AROUND] THE) ) (?P<day> ORDINAL)"
            "CLAUSE_END"
        ),
        _read_numbered_day,
    ),
    ("(?<= [IN DURING SINCE]) (?P<month> SHORT_MONTH) (?! POSSESSIVE )", _read_month),
    (
        (
            "(?: (?<= TIME_PREPOSITION) | (?<= LONG_MONTH [AND TO DASH]) | "
            "(?<= LONG_MONTH ANY_YEAR [TO DASH]) ) (?P<month> AMBIGUOUS_MONTH)"
        ),
        _read_month,
    ),
    (
        (
            "(?: (?<= ON) | (?<= ON THE) | (?<= TIME_PREPOSITION) | (?<= TIME_PREPOSITION THE)"
            "| (?<= ANY_SEASON [AND TO]) ) (?P<season> SEASON)"
        ),
        _read_season,
    ),
    ("(?P<year> ANY_YEAR) YEAR_UNIT", _read_year),
    ("YEAR_UNIT (?P<year> ANY_YEAR)", _read_year),
    ("(?<= [IN DURING SINCE]) (?P<year> YEAR)", _read_year),
    (
        (
            "(?: (?<= ON) | (?<= TIME_PREPOSITION) | (?<= ANY_YEAR AND) ) (?P<year> YEAR)"
            "(?! [OTHER ROUGHLY AROUND] )"
        ),
        _read_year,
    ),
    ("(?<= AROUND) (?P<year> YEAR) CLAUSE_END", _read_rough_year),
    (
        "(?: (?<= ON) | (?<= [IN ON DURING SINCE] THE) ) (?P<decade> DECADE) YEAR_UNIT?",
        _read_decade,
    ),
    (
        (
            "(?: (?<= [ON DURING SINCE FROM UNTIL BEFORE BETWEEN AROUND]) | (?<= HOLIDAY [AND TO])"
            "| (?<= [ON DURING SINCE FROM UNTIL BEFORE BETWEEN AROUND] THE) | (?<= HOLIDAY [AND TO] THE) )"
            "(?P<holiday> HOLIDAY) POSSESSIVE?"
        ),
        _read_holiday,
    ),
    ("(?: (?<= PREPOSITION) | (?<= ANY_YEAR AND) ) (?P<year> ORDINAL_YEAR)", _read_year),
    (
        "(?: (?<= PREPOSITION) | (?<= PREPOSITION THE) | (?<= ANY_WEEKDAY AND) ) (?P<weekday> ANY_WEEKDAY)",
        _read_weekday,
    ),
    ("(?<! EVERY) (?P<weekday> WEEKDAY) PART_OF_DAY? CLAUSE_END", _read_weekday),
    (
        (
            "(?: (?<= [ON SINCE FROM FROM_OR_SINCE BEFORE]) |"
            "(?<= [FROM FROM_OR_SINCE] SHORT_WEEKDAY [DASH TO UNTIL]) ) (?P<weekday> SHORT_WEEKDAY)"
        ),
        _read_weekday,
    ),
    ("(?: (?<= PREPOSITION) | (?<= PREPOSITION THE) ) WEEKEND", _read_this_weekend),
)
"""Rules for words that name a period only beside certain words, such as "May" after "in"."""

_RULES_AFTER_PART: Final = (*_CALENDAR_RULES, *_BARE_RULES)
"""Rules for the period after its part, as in "the end of May"."""

_RULES_AFTER_YEAR: Final = (*_CALENDAR_RULES, *_GUARDED_RULES)
"""Rules for the month, season or day after its year, as in "last year in March"."""

_ROLLING_RULES: Final = _build_rules(
    ("(?<= THE) (?P<shift> LAST) UNIT (?! BEFORE )", _read_rolling_period),
    ("(?P<shift> COMING) UNIT", _read_rolling_period),
)
"""Rules for "the last month", which ends today, and "the coming month", which begins today.

"Last month" without "the" is a month of the calendar, and so is a month after a part of it: "the end of the
last month".
"""

_RULES_OF_SENTENCES: Final = (*_PART_RULES, *_ROLLING_RULES, *_CALENDAR_RULES, *_GUARDED_RULES)
"""Rules for a phrase anywhere in a sentence; the first that fits reads the phrase."""
