"""Periods that a query names: "last week", "in March 2024", «прошлым летом», "21.01.2024". No I/O, no clock.

A lexicon gives each word its role in dates, and rules match the sequence of roles. The module does not use
dateparser, which takes a millisecond for each phrase of a query, and most of a second to load. Besides,
dateparser does not know seasons, weekends and parts of a month.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta
from functools import lru_cache, partial
from typing import Final, Literal, NamedTuple, TypeAlias

from mnemon_consumers.retrieve.search.query.period_words import DateWord, Meaning, WordKind, split_date_words

FADING_OF_DAY: Final = timedelta(days=3)
"""Distance from a short period at which closeness has fallen to 1/e."""

FADING_SHARE: Final = 0.5
"""Distance from a longer period at which closeness has fallen to 1/e, as a share of the period's length."""

FARTHEST: Final = 5.0
"""Distance from which closeness counts as 0, as a multiple of the distance at which it has fallen to 1/e."""


CACHED_YEARS: Final = 10_000
"""Maximum number of pairs of a period and a year whose recurrences a process caches."""


class QueryPeriod(NamedTuple):
    """A period of time that a query names.

    Attributes:
        start: its first moment.
        end: the first moment after it.
        is_yearly: whether the query names no year. The period then recurs in every year; `start` and `end`
            are those of one year.
    """

    start: datetime
    end: datetime
    is_yearly: bool = False

    def measure_closeness(self, moment: datetime) -> float:
        """Return the closeness of a moment to the period: 1 inside it, falling to 0 with growing distance.

        A period that recurs has the closeness of its nearest recurrence.
        """
        if not self.is_yearly:
            return _measure_closeness(self.start, self.end, moment)
        year = moment.astimezone(self.start.tzinfo).year
        return max(_measure_closeness(*each, moment) for each in _list_recurrences(self, year))

    def find_latest_recurrence(self, now: datetime) -> tuple[datetime, datetime]:
        """Return start and end; of a period that recurs, those of the latest recurrence that has begun."""
        if not self.is_yearly:
            return self.start, self.end
        recurrences = _list_recurrences(self, now.astimezone(self.start.tzinfo).year)
        return max((each for each in recurrences if each[0] <= now), default=(self.start, self.end))


class PeriodSplit(NamedTuple):
    """Periods that a text names, and the words and marks outside of the phrases that name them.

    Attributes:
        periods: the periods, in their order in the text.
        gaps: the words before the first phrase, between each phrase and the next, and after the last.
    """

    periods: tuple[QueryPeriod, ...]
    gaps: tuple[tuple[DateWord, ...], ...]


@lru_cache(maxsize=CACHED_YEARS)
def _list_recurrences(period: QueryPeriod, year: int) -> tuple[tuple[datetime, datetime], ...]:
    """List starts and ends of a yearly period in a year, the year before it and the year after it.

    A period that begins on 29 February does not recur in a year without this day. Without any recurrence, the
    period itself is listed.
    """
    start, end = period.start, period.end
    recurrences = []
    for each in range(max(year - 1, MINYEAR), min(year + 1, MAXYEAR - 1) + 1):
        try:
            shifted = start.replace(year=each)
        except ValueError:
            continue
        try:
            recurrences.append((shifted, end.replace(year=end.year + each - start.year)))
        except ValueError:
            recurrences.append((shifted, end.replace(year=end.year + each - start.year, month=3, day=1)))
    return tuple(recurrences) or ((start, end),)


def _measure_closeness(start: datetime, end: datetime, moment: datetime) -> float:
    if start <= moment < end:
        return 1.0
    distance = start - moment if moment < start else moment - end
    fadings = distance / max(FADING_OF_DAY, (end - start) * FADING_SHARE)
    return math.exp(-fadings) if fadings < FARTHEST else 0.0


def find_periods(text: str, now: datetime) -> tuple[QueryPeriod, ...]:
    """Find the periods that a text names, in their order in the text.

    Weeks begin on Monday, seasons are those of the northern hemisphere, and a weekday without more words is
    the last day of this name before today. "A week ago" and "in two months" mean a period as long as the
    unit, around that day. The first week of a month or a year is its first seven days; the beginning, the
    middle and the end are thirds. After "since" or «с», a period lasts until today, unless its phrase names
    both ends, as "3 to 10 May" does.

    Args:
        text: a query.
        now: the moment to which "yesterday" is relative; its time zone is that of the periods.
    """
    return split_at_periods(text, now).periods


def split_at_periods(text: str, now: datetime) -> PeriodSplit:
    """Split a text at the phrases that name periods; the arguments are those of `find_periods`."""
    words = split_date_words(text)
    roles = "".join(word.kind for word in words)
    if _ROLES_OF_DATES.search(roles) is None:
        return PeriodSplit((), (tuple(words),))
    sentence = _DateSentence(words, roles, now)
    found = _join_phrases(_find_phrases(sentence), roles)
    periods: list[QueryPeriod] = []
    for each in found:
        for dates in _extend_to_today(each, sentence):
            start, end = (datetime.combine(day, time(), now.tzinfo) for day in (dates.first, dates.after))
            periods.append(QueryPeriod(start, end, dates.is_yearly))
    starts, ends = [each.start for each in found], [each.end for each in found]
    gaps = zip([0, *ends], [*starts, len(words)], strict=True)
    return PeriodSplit(tuple(dict.fromkeys(periods)), tuple(tuple(words[start:end]) for start, end in gaps))


Unit: TypeAlias = Literal["day", "weekday", "week", "month", "season", "year", "other"]


class _DateRange(NamedTuple):
    """Days that a phrase names: from `first` up to the day before `after`."""

    first: date
    after: date
    unit: Unit = "other"
    is_yearly: bool = False


class _DateSentence(NamedTuple):
    words: Sequence[DateWord]
    roles: str
    now: datetime

    @property
    def today(self) -> date:
        return self.now.date()


class _RuleMatch(NamedTuple):
    """A match of a rule's pattern in the roles of a sentence."""

    sentence: _DateSentence
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

    def get_year(self) -> int | None:
        """Return the year that the phrase names, as `2024` or "last year"; None if it names none."""
        shift = self.get_number("shift_of_year")
        return self.get_number("year") if shift is None else self.today.year + shift


class _Phrase(NamedTuple):
    """A phrase: words from index `start` up to the one before `end`, and the ranges of days that it names."""

    start: int
    end: int
    ranges: tuple[_DateRange, ...]


_Reading: TypeAlias = Callable[[_RuleMatch], tuple[int, Sequence[_DateRange]] | None]
"""Function that returns the index of the word after a phrase, and the ranges that the phrase names; None
if the phrase names none."""


class _PhraseRule(NamedTuple):
    pattern: re.Pattern[str]
    read: _Reading


_CLASSES: Final = {
    "SHIFT": "[LAST BEFORE_LAST THIS NEXT]",
    "TIME_PREPOSITION": "[IN OF FROM FROM_OR_SINCE UNTIL DURING SINCE BETWEEN BEFORE]",
    "PREPOSITION": "[IN ON OF FROM FROM_OR_SINCE TO UNTIL DURING SINCE BETWEEN BEFORE]",
    "ENGLISH_MONTH": "[MONTH AMBIGUOUS_MONTH SHORT_MONTH]",
    "ANY_MONTH": "[MONTH AMBIGUOUS_MONTH SHORT_MONTH RUSSIAN_MONTH]",
    "LONG_MONTH": "[MONTH AMBIGUOUS_MONTH RUSSIAN_MONTH]",
    "ANY_SEASON": "[SEASON IN_SEASON]",
    "ANY_WEEKDAY": "[WEEKDAY RUSSIAN_WEEKDAY]",
    "DAY_NUMBER": "[NUMBER ORDINAL]",
    "COUNTED": "(?: ARTICLE? (?P<few> FEW) OF? | (?P<count> [NUMBER NUMERAL ARTICLE]) )",
    "UNIT": "(?P<unit> [DAY_UNIT WEEK_UNIT MONTH_UNIT YEAR_UNIT TIME_UNIT])",
    "LONG_UNIT": "(?P<unit> [WEEK_UNIT MONTH_UNIT YEAR_UNIT]) (?! BEFORE [LAST NEXT] )",
    "OF_YEAR": (
        "COMMA? [OF IN ON]? THE? (?: (?P<year> YEAR) YEAR_UNIT? | (?P<shift_of_year> SHIFT) YEAR_UNIT )"
    ),
    "MAYBE_OF_YEAR": "(?: OF_YEAR )?",
    "CLAUSE_END": "(?= STOP | COMMA | $ )",
}
_NAME: Final = re.compile(r"(?<!<)\b[A-Z][A-Z_]+\b")


def _expand_names(pattern: str) -> str:
    """Replace the names of classes and kinds in a pattern by the characters of the kinds."""

    def replace_name(match: re.Match[str]) -> str:
        if match[0] in _CLASSES:
            return _expand_names(_CLASSES[match[0]])
        character = WordKind[match[0]].value
        return character if character.isalpha() else re.escape(character)

    return re.sub(r"\s+", "", _NAME.sub(replace_name, pattern))


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(_expand_names(pattern))


_ROLES_OF_DATES: Final = _compile_pattern(
    "[DATE ISO_MONTH SEVERAL_YEARS YEAR MONTH AMBIGUOUS_MONTH SHORT_MONTH RUSSIAN_MONTH SEASON IN_SEASON "
    "WEEKDAY RUSSIAN_WEEKDAY NAMED_DAY PART_OF_DAY DAY_UNIT WEEK_UNIT MONTH_UNIT YEAR_UNIT TIME_UNIT WEEKEND "
    "HALF_YEAR]"
)
"""Roles of words. A text without a word in one of these roles names no period."""


def _build_day(day: date, unit: Unit = "day") -> _DateRange:
    return _DateRange(day, day + timedelta(days=1), unit)


def _build_week(day: date) -> _DateRange:
    first = day - timedelta(days=day.weekday())
    return _DateRange(first, first + timedelta(days=7), "week")


def _build_weekend(day: date) -> _DateRange:
    monday = day - timedelta(days=day.weekday())
    return _DateRange(monday + timedelta(days=5), monday + timedelta(days=7))


def _build_months(year: int, month: int, count: int, unit: Unit) -> _DateRange:
    """Return the days of `count` months from `month` on; a month above 12 or below 1 is in another year."""
    first, after = (
        date(year + (number - 1) // 12, (number - 1) % 12 + 1, 1) for number in (month, month + count)
    )
    return _DateRange(first, after, unit)


def _build_month(year: int, month: int) -> _DateRange:
    return _build_months(year, month, 1, "month")


def _build_season(year: int, season: int) -> _DateRange:
    """Return the days of a season, 1 for spring to 4 for winter, that begins in `year`."""
    return _build_months(year, 3 * season, 3, "season")


def _build_year(year: int) -> _DateRange:
    return _build_months(year, 1, 12, "year")


def _build_unit(kind: WordKind | None, today: date, shift: int) -> _DateRange:
    match kind:
        case WordKind.WEEK_UNIT:
            return _build_week(today + timedelta(weeks=shift))
        case WordKind.WEEKEND:
            return _build_weekend(today + timedelta(weeks=shift))
        case WordKind.MONTH_UNIT:
            return _build_month(today.year, today.month + shift)
        case _:
            return _build_year(today.year + shift)


def _set_year(dates: _DateRange, year: int) -> _DateRange:
    """Return the days of a yearly range, such as a month, in another year."""
    years = year - dates.first.year
    first, after = dates.first.replace(year=year), dates.after.replace(year=dates.after.year + years)
    if dates.unit == "month":
        return _build_month(year, first.month)
    return _DateRange(first, after, dates.unit)


def _shift_day(today: date, kind: WordKind | None, count: int) -> date:
    """Return the day that is `count` units of `kind` after `today`; before it if `count` is negative.

    A month after 31 January is the last day of February.
    """
    match kind:
        case WordKind.DAY_UNIT:
            return today + timedelta(days=count)
        case WordKind.WEEK_UNIT:
            return today + timedelta(weeks=count)
        case WordKind.MONTH_UNIT | WordKind.YEAR_UNIT:
            month = _build_month(today.year, today.month + count * (12 if kind is WordKind.YEAR_UNIT else 1))
            return min(month.first + timedelta(days=today.day - 1), month.after - timedelta(days=1))
        case _:
            raise ValueError(
                f"{kind!r} is no unit of whole days; give the kind of a day, week, month or year"
            )


_LENGTHS: Final = {WordKind.WEEK_UNIT: 3, WordKind.MONTH_UNIT: 15, WordKind.YEAR_UNIT: 182}
"""Number of days that belong to the period before and after a day that is a week, a month or a year away."""


def _read_distance(match: _RuleMatch, direction: int) -> tuple[int, list[_DateRange]] | None:
    """Read a distance from today such as "two weeks ago", or "in two weeks" with `direction` 1."""
    few, count = match.get_number("few"), match.get_number("count")
    kind = match.get_kind("unit")
    number = few or count
    if number is None:
        if match.get_number("unit") != 1 and kind is not WordKind.TIME_UNIT:
            return None
        number = 1
    if kind is WordKind.TIME_UNIT:
        minutes = number * (match.get_number("unit") or 0)
        moment = match.sentence.now + direction * timedelta(minutes=minutes)
        return match.found.end(), [_build_day(moment.date())]
    day = _shift_day(match.today, kind, direction * number)
    around = timedelta(days=_LENGTHS.get(kind, 0) if kind else 0)
    unit: Unit = "other" if around else "day"
    return match.found.end(), [_DateRange(day - around, day + around + timedelta(days=1), unit)]


def _read_half_year(match: _RuleMatch, direction: int) -> tuple[int, list[_DateRange]]:
    day = _shift_day(match.today, WordKind.MONTH_UNIT, direction * 6)
    around = timedelta(days=_LENGTHS[WordKind.MONTH_UNIT])
    return match.found.end(), [_DateRange(day - around, day + around + timedelta(days=1))]


def _read_rolling_period(match: _RuleMatch) -> tuple[int, list[_DateRange]] | None:
    """Read "the last two weeks", which end today, or "the next two weeks", which begin today."""
    kind, shift = match.get_kind("unit"), match.get_number("shift") or 0
    number = match.get_number("few") or match.get_number("count")
    if number is None:
        # "The past week" has a length, and "the past weeks" has not.
        is_one = match.get_number("unit") == 1
        if is_one and kind is WordKind.DAY_UNIT:
            return None
        number = 1 if is_one else 3
    if kind is WordKind.TIME_UNIT or shift not in (-1, 1):
        return None
    other = _shift_day(match.today, kind, shift * number)
    first, last = sorted((other, match.today))
    return match.found.end(), [_DateRange(first, last + timedelta(days=1))]


def _read_numeric_date(match: _RuleMatch) -> tuple[int, list[_DateRange]] | None:
    dates = match.get_value("date")
    assert isinstance(dates, tuple)
    ranges = []
    for each in dates:
        assert isinstance(each, tuple)
        try:
            ranges.append(_build_day(date(*each)))
        except ValueError:
            continue
    return (match.found.end(), ranges) if ranges else None


def _read_pair(match: _RuleMatch) -> tuple[int, list[_DateRange]]:
    pair = match.get_value("pair")
    assert isinstance(pair, tuple)
    first, second = pair
    assert isinstance(first, int)
    assert isinstance(second, int)
    if match.get_kind("pair") is WordKind.ISO_MONTH:
        return match.found.end(), [_build_month(first, second)]
    if (season := match.get_number("season")) is not None:
        return match.found.end(), [_build_season(first, season)]
    return match.found.end(), [_DateRange(date(first, 1, 1), date(second + 1, 1, 1))]


def _read_year_range(match: _RuleMatch) -> tuple[int, list[_DateRange]] | None:
    first, last = match.get_number("year"), match.get_number("last_year")
    assert first is not None
    assert last is not None
    return (
        (match.found.end(), [_DateRange(date(first, 1, 1), date(last + 1, 1, 1))]) if first <= last else None
    )


def _read_days_of_month(match: _RuleMatch) -> tuple[int, list[_DateRange]] | None:
    """Read a day of a month, or several, with or without a year."""
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
        return match.found.end(), [_DateRange(first, final + timedelta(days=1), unit, year is None)]
    return None


def _list_years(year: int) -> range:
    """List a year and the eight years before it, latest first: one of them has a 29 February."""
    return range(year, year - 9, -1)


def _read_month(match: _RuleMatch) -> tuple[int, list[_DateRange]]:
    month, shift, year = match.get_number("month"), match.get_number("shift"), match.get_year()
    assert month is not None
    today = match.today
    if year is not None:
        return match.found.end(), [_build_month(year, month)]
    if shift is None:
        return match.found.end(), [_build_month(today.year, month)._replace(is_yearly=True)]
    nearest = today.year
    if shift < 0 and month >= today.month:
        nearest -= 1
    elif shift > 0 and month <= today.month:
        nearest += 1
    return match.found.end(), [_build_month(nearest + min(shift + 1, 0), month)]


def _read_season(match: _RuleMatch) -> tuple[int, list[_DateRange]]:
    season, shift, year = match.get_number("season"), match.get_number("shift"), match.get_year()
    assert season is not None
    today = match.today
    if year is not None:
        # The winter of 2023 may begin or end in 2023.
        years = (year - 1, year) if season == 4 and match.get_number("shift_of_year") is None else (year,)
        return match.found.end(), [_build_season(each, season) for each in years]
    if shift is None:
        return match.found.end(), [_build_season(today.year, season)._replace(is_yearly=True)]
    nearest = today.year
    if shift < 0:
        while _build_season(nearest, season).after > today:
            nearest -= 1
        nearest += shift + 1
    elif shift > 0:
        while _build_season(nearest, season).first <= today:
            nearest += 1
    elif season == 4 and today.month <= 6:
        nearest -= 1
    return match.found.end(), [_build_season(nearest, season)]


def _read_year(match: _RuleMatch) -> tuple[int, list[_DateRange]]:
    year = match.get_number("year")
    assert year is not None
    return match.found.end(), [_build_year(year)]


def _read_unit(match: _RuleMatch) -> tuple[int, list[_DateRange]]:
    """Read "last week", "the month before last" and "this weekend"."""
    shift = (match.get_number("shift") or 0) + (match.get_number("before") or 0)
    return match.found.end(), [_build_unit(match.get_kind("unit"), match.today, shift)]


def _read_weekday(match: _RuleMatch) -> tuple[int, list[_DateRange]]:
    weekday, shift, weeks = (match.get_number(name) for name in ("weekday", "shift", "shift_of_week"))
    assert weekday is not None
    if (weeks is None and shift is None) or shift == -1:
        back = (match.today.weekday() - weekday) % 7 + 1
        day = match.today - timedelta(days=back)
    else:
        weeks = shift if weeks is None else weeks
        day = _build_week(match.today + timedelta(weeks=weeks or 0)).first + timedelta(days=weekday - 1)
    return match.found.end(), [_build_day(day, "weekday")]


def _read_named_day(match: _RuleMatch) -> tuple[int, list[_DateRange]] | None:
    days = sum(match.get_number(name) or 0 for name in ("day", "before", "shift"))
    if match.get_number("shift") is not None and days not in (-1, 0):
        return None
    return match.found.end(), [_build_day(match.today + timedelta(days=days))]


def _read_this_weekend(match: _RuleMatch) -> tuple[int, list[_DateRange]]:
    """Read "at the weekend" as the current weekend, or else the last weekend."""
    shift = 0 if match.today.weekday() >= 5 else -1
    return match.found.end(), [_build_weekend(match.today + timedelta(weeks=shift))]


def _read_phrase_in_year(match: _RuleMatch) -> tuple[int, list[_DateRange]] | None:
    """Read a year before its month, season or day: "last year in March", «в 2023 году летом»."""
    year = match.get_year()
    inner = _read_phrase(match.sentence, match.found.end(), _IN_CONTEXT)
    if year is None or inner is None or not all(dates.is_yearly for dates in inner.ranges):
        return None
    return inner.end, [_set_year(dates, year) for dates in inner.ranges]


def _read_whole_period(match: _RuleMatch) -> tuple[int, tuple[_DateRange, ...]] | None:
    """Read the period that a part belongs to: "the beginning OF LAST MONTH", "the end OF THE WEEK"."""
    kind = match.get_kind("unit")
    if kind is not None:
        return match.found.end(), (_build_unit(kind, match.today, 0),)
    inner = _read_phrase(match.sentence, match.found.end(), _INSIDE)
    if inner is None or any(dates.unit not in ("week", "month", "season", "year") for dates in inner.ranges):
        return None
    return inner.end, inner.ranges


def _cut_date_range(dates: _DateRange, number: int, parts: int) -> _DateRange:
    """Return part `number`, from 0 on, of `parts` equal parts of a range, in whole months or whole days."""
    months = {"year": 12, "season": 3}.get(dates.unit, 0)
    if months and months % parts == 0:
        count = months // parts
        part = _build_months(dates.first.year, dates.first.month + number * count, count, "other")
        return part._replace(is_yearly=dates.is_yearly)
    days = (dates.after - dates.first).days
    first, after = (
        dates.first + timedelta(days=round(days * place / parts)) for place in (number, number + 1)
    )
    return _DateRange(first, after, "other", dates.is_yearly)


def _read_edge(match: _RuleMatch) -> tuple[int, list[_DateRange]] | None:
    """Read the beginning, the middle or the end of a period."""
    whole, edge = _read_whole_period(match), match.get_number("edge")
    if whole is None or edge is None:
        return None
    return whole[0], [_cut_date_range(dates, edge, 3) for dates in whole[1]]


def _read_part(match: _RuleMatch) -> tuple[int, list[_DateRange]] | None:
    """Read a day, a week or a half of a period, counted from its beginning or, for "last", from its end."""
    whole, place, kind = _read_whole_period(match), match.get_number("place"), match.get_kind("part")
    if whole is None or place is None:
        return None
    if kind is WordKind.HALF:
        return (
            (whole[0], [_cut_date_range(dates, place % 3 - 1, 2) for dates in whole[1]])
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
        ranges.append(_DateRange(first, after, "other", dates.is_yearly))
    return whole[0], ranges


def _build_rules(*rules: tuple[str, _Reading]) -> tuple[_PhraseRule, ...]:
    return tuple(_PhraseRule(_compile_pattern(pattern), read) for pattern, read in rules)


_PARTS: Final = _build_rules(
    (
        "(?P<place> [ORDINAL LAST PAST]) (?P<part> [DAY_UNIT WEEK_UNIT HALF]) (?: OF THE? )? LONG_UNIT",
        _read_part,
    ),
    ("(?P<place> [ORDINAL LAST PAST]) (?P<part> [DAY_UNIT WEEK_UNIT HALF]) [OF IN ON]? THE?", _read_part),
    ("(?P<edge> EDGE) OF THE? LONG_UNIT", _read_edge),
    ("(?P<edge> RUSSIAN_EDGE) LONG_UNIT", _read_edge),
    ("(?P<edge> [EDGE RUSSIAN_EDGE]) [OF DASH]? THE?", _read_edge),
    ("(?P<shift_of_year> SHIFT) YEAR_UNIT COMMA? PREPOSITION? THE?", _read_phrase_in_year),
    ("(?P<year> YEAR) YEAR_UNIT? COMMA? PREPOSITION? THE?", _read_phrase_in_year),
)

_CALENDAR: Final = _build_rules(
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
            "MAYBE_OF_YEAR (?! [DAY_UNIT WEEK_UNIT MONTH_UNIT YEAR_UNIT TIME_UNIT] )"
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
        "(?: ANY_WEEKDAY COMMA? THE? )? (?P<day> DAY_NUMBER) OF? THE? (?P<month> ANY_MONTH) MAYBE_OF_YEAR",
        _read_days_of_month,
    ),
    (
        "(?: ANY_WEEKDAY COMMA? )? (?P<month> ENGLISH_MONTH) THE? (?P<day> DAY_NUMBER) MAYBE_OF_YEAR",
        _read_days_of_month,
    ),
    ("(?P<season> ANY_SEASON) OF? (?P<pair> SEVERAL_YEARS)", _read_pair),
    ("(?P<pair> [ISO_MONTH SEVERAL_YEARS]) YEAR_UNIT?", _read_pair),
    (
        (
            "(?<= [BETWEEN FROM FROM_OR_SINCE DURING SINCE]) (?P<year> YEAR) YEAR_UNIT? [AND TO UNTIL DASH]"
            "(?P<last_year> YEAR) YEAR_UNIT?"
        ),
        _read_year_range,
    ),
    ("(?P<month> ANY_MONTH) OF_YEAR", _read_month),
    ("(?P<shift> SHIFT) (?P<month> [MONTH RUSSIAN_MONTH])", _read_month),
    ("(?P<shift> [LAST NEXT]) (?P<month> AMBIGUOUS_MONTH)", _read_month),
    ("(?P<shift> THIS) (?P<month> AMBIGUOUS_MONTH) CLAUSE_END", _read_month),
    ("(?P<season> ANY_SEASON) OF_YEAR", _read_season),
    ("(?P<shift> SHIFT) (?P<season> ANY_SEASON)", _read_season),
    ("(?P<season> IN_SEASON)", _read_season),
    (
        "(?P<weekday> ANY_WEEKDAY) COMMA? [OF IN ON]? THE? (?P<shift_of_week> SHIFT) WEEK_UNIT",
        _read_weekday,
    ),
    (
        "(?P<shift_of_week> SHIFT) WEEK_UNIT COMMA? ON? THE? (?P<weekday> ANY_WEEKDAY)",
        _read_weekday,
    ),
    ("(?P<shift> SHIFT) (?P<weekday> ANY_WEEKDAY)", _read_weekday),
    ("(?P<shift> SHIFT) (?P<unit> [WEEK_UNIT MONTH_UNIT YEAR_UNIT WEEKEND])", _read_unit),
    (
        "(?P<unit> [WEEK_UNIT MONTH_UNIT YEAR_UNIT WEEKEND]) (?P<before> BEFORE) (?P<shift> [LAST NEXT])",
        _read_unit,
    ),
    ("(?P<day> NAMED_DAY)", _read_named_day),
    ("DAY_UNIT (?P<before> BEFORE) (?P<day> NAMED_DAY)", _read_named_day),
    ("(?P<shift> [LAST THIS]) PART_OF_DAY", _read_named_day),
    ("COUNTED? UNIT THE? AGO", partial(_read_distance, direction=-1)),
    ("UNIT (?P<count> [NUMBER NUMERAL]) THE? AGO", partial(_read_distance, direction=-1)),
    ("(?: HALF_YEAR | HALF ARTICLE YEAR_UNIT ) THE? AGO", partial(_read_half_year, direction=-1)),
    ("COUNTED UNIT FROM NOW", partial(_read_distance, direction=1)),
    ("AFTER_TIME COUNTED? UNIT", partial(_read_distance, direction=1)),
    ("(?: AFTER_TIME HALF_YEAR | (?<= IN) HALF ARTICLE YEAR_UNIT )", partial(_read_half_year, direction=1)),
    (
        (
            "(?<= IN) (?: ARTICLE? (?P<few> FEW) OF? | (?P<count> [NUMBER NUMERAL]) )"
            "(?! TIME_UNIT ) UNIT (?! AGO )"
        ),
        partial(_read_distance, direction=1),
    ),
    ("(?P<shift> [LAST NEXT PAST]) COUNTED UNIT", _read_rolling_period),
    ("(?P<shift> PAST) UNIT", _read_rolling_period),
    ("(?P<month> [MONTH RUSSIAN_MONTH])", _read_month),
)

_BARE: Final = _build_rules(
    ("(?P<month> AMBIGUOUS_MONTH)", _read_month),
    ("(?P<season> SEASON)", _read_season),
    ("(?P<year> YEAR) YEAR_UNIT?", _read_year),
)
"""Rules for words that name a period after "the end of", and may mean another thing elsewhere."""

_GUARDED: Final = _build_rules(
    (
        (
            "(?: (?<= TIME_PREPOSITION) | (?<= LONG_MONTH [AND TO DASH]) | (?<= LONG_MONTH YEAR [TO DASH]) )"
            "(?P<month> AMBIGUOUS_MONTH)"
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
    ("(?P<year> YEAR) YEAR_UNIT", _read_year),
    ("YEAR_UNIT (?P<year> YEAR)", _read_year),
    ("(?<= [IN DURING SINCE]) (?P<year> YEAR)", _read_year),
    ("(?: (?<= ON) | (?<= TIME_PREPOSITION) | (?<= YEAR AND) ) (?P<year> YEAR) (?! OTHER )", _read_year),
    (
        "(?: (?<= PREPOSITION) | (?<= PREPOSITION THE) | (?<= ANY_WEEKDAY AND) ) (?P<weekday> ANY_WEEKDAY)",
        _read_weekday,
    ),
    ("(?<! EVERY) (?P<weekday> WEEKDAY) CLAUSE_END", _read_weekday),
    ("(?: (?<= PREPOSITION) | (?<= PREPOSITION THE) ) WEEKEND", _read_this_weekend),
)

_INSIDE: Final = (*_CALENDAR, *_BARE)
_IN_CONTEXT: Final = (*_CALENDAR, *_GUARDED)
_EVERYWHERE: Final = (*_PARTS, *_CALENDAR, *_GUARDED)


def _read_phrase(sentence: _DateSentence, start: int, rules: Sequence[_PhraseRule]) -> _Phrase | None:
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
            return _Phrase(start, named[0], tuple(named[1]))
    return None


def _find_phrases(sentence: _DateSentence) -> Iterator[_Phrase]:
    place = 0
    while place < len(sentence.words):
        phrase = None
        if sentence.words[place].kind is not WordKind.OTHER:
            phrase = _read_phrase(sentence, place, _EVERYWHERE)
        if phrase is not None:
            yield phrase
        place = phrase.end if phrase is not None else place + 1


_RANGE: Final = _compile_pattern("(?: [TO UNTIL DASH] | (?P<and> AND) ) PREPOSITION? THE?")
_BETWEEN: Final = _compile_pattern("BETWEEN THE? $")


def _join_phrases(phrases: Iterator[_Phrase], roles: str) -> list[_Phrase]:
    """Join phrases as in "from Monday to Friday" and "between March and May"."""
    joined: list[_Phrase] = []
    for phrase in phrases:
        if joined and (link := _RANGE.fullmatch(roles, joined[-1].end, phrase.start)):
            before = roles[max(0, joined[-1].start - 2) : joined[-1].start]
            if link["and"] is not None and not _BETWEEN.search(before):
                joined[-1] = _share_year(joined[-1], phrase)
            else:
                dates = _build_joined_range(joined[-1], phrase)
                if dates is not None:
                    joined[-1] = _Phrase(joined[-1].start, phrase.end, (dates,))
                    continue
        joined.append(phrase)
    return joined


_BOTH_ENDS: Final = _compile_pattern("[TO UNTIL AND SEVERAL_YEARS] | (?<! [EDGE RUSSIAN_EDGE]) DASH")
"""Roles in a phrase that names the beginning and the end of a period; "mid-June" does not."""


def _extend_to_today(phrase: _Phrase, sentence: _DateSentence) -> tuple[_DateRange, ...]:
    """Return the ranges of a phrase; after "since" or «с», a range without a named end lasts until today."""
    before = phrase.start - 1
    if before >= 0 and sentence.words[before].kind is WordKind.THE:
        before -= 1
    word = sentence.words[before] if before >= 0 else None
    is_open = word is not None and word.kind in (WordKind.SINCE, WordKind.FROM_OR_SINCE)
    has_end = _BOTH_ENDS.search(sentence.roles, phrase.start, phrase.end) is not None
    if not is_open or has_end or len(phrase.ranges) != 1:
        return phrase.ranges
    (dates,) = phrase.ranges
    try:
        if dates.is_yearly and dates.first > sentence.today:
            dates = _set_year(dates, dates.first.year - 1)
        after = max(dates.after, sentence.today + timedelta(days=1))
    except (OverflowError, ValueError):
        return phrase.ranges  # 29 February of a year without it, or the end of the calendar
    return (_DateRange(dates.first, after),) if dates.first <= sentence.today else phrase.ranges


def _share_year(one: _Phrase, other: _Phrase) -> _Phrase:
    """Return the phrase `one` with the year of `other`, as in "in June and July 2023"."""
    year, last = other.ranges[0].first.year, other.ranges[0]
    if last.is_yearly or last.unit not in ("day", "month", "season"):
        return one
    try:
        ranges = tuple(_set_year(dates, year) if dates.is_yearly else dates for dates in one.ranges)
    except (OverflowError, ValueError):
        return one
    return one._replace(ranges=ranges)


def _build_joined_range(one: _Phrase, other: _Phrase) -> _DateRange | None:
    """Return the range from the beginning of one phrase to the end of another.

    Return None if a phrase has several ranges, if the end is not after the beginning, or if a date would not
    exist, such as 29 February 2023.
    """
    if len(one.ranges) != 1 or len(other.ranges) != 1:
        return None
    first, last = one.ranges[0], other.ranges[0]
    try:
        if first.is_yearly and not last.is_yearly:
            first = _set_year(first, last.first.year)
            if first.first > last.first:
                first = _set_year(one.ranges[0], last.first.year - 1)
        elif last.is_yearly:
            is_in_next_year = (last.first.month, last.first.day) <= (first.first.month, first.first.day)
            last = _set_year(last, first.first.year + is_in_next_year)
        elif first.first >= last.first and last.unit == "weekday":
            last = last._replace(first=last.first + timedelta(days=7), after=last.after + timedelta(days=7))
    except (OverflowError, ValueError):
        return None
    if first.first >= last.after:
        return None
    return _DateRange(first.first, last.after, "other", one.ranges[0].is_yearly and other.ranges[0].is_yearly)
