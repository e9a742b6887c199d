"""Dates that a text names, exact ones and those relative to its day: "tomorrow", «вчера» (yesterday)."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from typing import Final, NamedTuple

from mnemon_infra.models.months import ENGLISH, RUSSIAN


class DateSpan(NamedTuple):
    """A range of days that a text names.

    Attributes:
        start: offset of the words in the text, in characters.
        end: offset of the end of the words in the text, in characters.
        first: first day of the range.
        last: last day of the range.
        shown: the range as text; empty if the words are an exact date already, or if the day is in doubt.
    """

    start: int
    end: int
    first: date
    last: date
    shown: str = ""


Direction = int
"""Direction in which a date such as "on Friday" lies: 1 future, -1 past; 0 leaves such dates out."""

Days = tuple[date, date, str]
"""First and last day of a range, and the range as text."""

DateReading = Callable[[re.Match[str], date], Days | None]

_NUMBERS: Final[Mapping[str, int]] = {
    word: number
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "a",
        "an",
        "один два три четыре пять шесть семь восемь девять десять",
        "одну две",
    )
    for number, word in enumerate(words.split(), 1)
}
_UNITS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("day", "days", "день", "дня", "дней"), "day"),
    **dict.fromkeys(("week", "weeks", "неделя", "неделю", "недели", "недель", "неделе"), "week"),
    **dict.fromkeys(("month", "months", "месяц", "месяца", "месяцев", "месяце"), "month"),
    **dict.fromkeys(("year", "years", "год", "года", "году", "лет"), "year"),
}
_WEEKDAYS: Final[Mapping[str, int]] = {
    name: number
    for names in (
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
        ("понедельник", "вторник", "среду", "четверг", "пятницу", "субботу", "воскресенье"),
    )
    for number, name in enumerate(names)
}
_RUSSIAN_IN: Final = (
    *("январе", "феврале", "марте", "апреле", "мае", "июне"),
    *("июле", "августе", "сентябре", "октябре", "ноябре", "декабре"),
)
_MONTHS: Final[Mapping[str, int]] = {
    **{
        name.lower()[:length]: number
        for length in (3, None)  # "dec" and "december"
        for names in (ENGLISH, RUSSIAN, _RUSSIAN_IN)
        for number, name in enumerate(names, 1)
    },
    "sept": 9,
    "февр": 2,
    "сент": 9,
    "нояб": 11,
}
_SHIFTS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("last", "прошлый", "прошлую", "прошлое", "прошлой", "прошлом", "прошлых"), -1),
    **dict.fromkeys(("this", "этот", "эту", "это", "этой", "этом", "этих", "ближайший", "ближайшую"), 0),
    **dict.fromkeys(
        ("next", "следующий", "следующую", "следующее", "следующей", "следующем", "следующих"), 1
    ),
    **dict.fromkeys(("будущей", "будущем"), 1),
}
_DAYS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("the day before yesterday", "day before yesterday", "позавчера"), -2),
    **dict.fromkeys(("yesterday", "last night", "вчера"), -1),
    **dict.fromkeys(("today", "tonight", "this morning", "this afternoon", "this evening", "сегодня"), 0),
    **dict.fromkeys(("tomorrow", "завтра"), 1),
    **dict.fromkeys(("the day after tomorrow", "day after tomorrow", "послезавтра"), 2),
}


def _join_words(words: Mapping[str, int] | Mapping[str, str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


def find_dates(
    text: str, day: date, direction: Direction = 0, departure: DateSpan | None = None
) -> list[DateSpan]:
    """Return the dates that a text names, in their order in the text, without overlaps.

    Args:
        text: content of a message, or a statement from it.
        day: the day to which words such as "tomorrow" refer.
        direction: where a date such as "on Friday" lies: 1 future, -1 past; 0 leaves such dates out.
        departure: the date of a departure that the previous sentence names; None if it names none.
    """
    found = sorted(_find_spans(text, day, direction), key=lambda span: (span.start, -span.end))
    apart: list[DateSpan] = []
    for span in found:
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
    if direction > 0 and departure and apart and _RETURN.search(text):
        apart[0] = _order_weekday(text, apart[0], departure._replace(start=0, end=0), direction)
    return _order_weekdays(text, apart, direction) if direction else apart


def names_departure(text: str) -> bool:
    """Return whether a text has a verb of departure, such as "leave" or "fly"."""
    return _DEPARTURE.search(text) is not None


def resolve_future_dates(
    text: str, named: list[DateSpan], day: date, future: re.Pattern[str], past: re.Pattern[str]
) -> list[DateSpan]:
    """Return the dates of a text about the past, with the dates in clauses about the future moved ahead.

    In "We bought a backpack, Sam starts school in September", the month is the next September.

    Args:
        text: the statement.
        named: the dates of the statement, found with the direction -1.
        day: the day of the message.
        future: words of a clause that speaks of the future.
        past: verbs in the past tense, which show that a clause does not speak of the future.
    """
    later = {(span.start, span.end): span for span in find_dates(text, day, 1)}
    resolved = []
    for span in named:
        begin = max((end.end() for end in _CLAUSE_END.finditer(text, 0, span.start)), default=0)
        clause = text[begin : _find_clause_end(text, span.end)]
        is_ahead = future.search(clause) is not None and past.search(clause) is None
        resolved.append(later.get((span.start, span.end), span) if is_ahead else span)
    return resolved


def _order_weekdays(text: str, named: list[DateSpan], direction: Direction) -> list[DateSpan]:
    """Count a weekday from the date before it if the text says so: "leaving on Friday, back on Monday".

    In the past, the earlier weekday is counted back from the later date. If the order is in doubt, `shown` of
    the weekday is empty, and its range has all days that the weekday can mean.
    """
    ordered: list[DateSpan] = []
    for span in named[::direction]:
        ordered.append(_order_weekday(text, span, ordered[-1], direction) if ordered else span)
    if direction > 0 and len(ordered) > 1:
        ordered[0] = _drop_doubtful_day(text, *ordered[:2])
    return ordered[::direction]


def _order_weekday(text: str, span: DateSpan, other: DateSpan, direction: Direction) -> DateSpan:
    """Return the span of a weekday with a day after the date `other`, or before `other` in the past.

    A span that is no weekday, or in this order already, is returned unchanged. In doubt, the range has all
    days that the weekday can mean.
    """
    weekday = _BARE_WEEKDAY.fullmatch(text, span.start, span.end)
    is_in_order = span.first > other.last if direction > 0 else span.last < other.first
    if weekday is None or is_in_order:
        return span
    begin, later = sorted((span.end, other.end))
    follows = _RETURN.search(text, begin, _find_clause_end(text, later)) is not None
    if span[2:4] == other[2:4] and not follows:
        return span
    origin = other.last + timedelta(days=1) if direction > 0 else other.first
    day, _, shown = _find_nearest(_WEEKDAYS[weekday["weekday"].lower()], origin, direction)
    if follows and other.first == other.last != span.first:
        return span._replace(first=day, last=day, shown=shown)
    return span._replace(first=min(day, span.first), last=max(day, span.last), shown="")


def _drop_doubtful_day(text: str, span: DateSpan, departure: DateSpan) -> DateSpan:
    """Leave open the day of a return that a text names first: "back on Monday, leaving on Friday".

    The range then has all days up to that weekday after the departure.
    """
    weekday = _BARE_WEEKDAY.fullmatch(text, span.start, span.end)
    end = _find_clause_end(text, departure.end)
    if weekday and _RETURN.search(text, 0, span.start) and _DEPARTURE.search(text, span.end, end):
        day, _, _ = _find_nearest(_WEEKDAYS[weekday["weekday"].lower()], departure.last, 1)
        return span._replace(last=max(day, span.last), shown="")
    return span


def _find_clause_end(text: str, begin: int) -> int:
    end = _CLAUSE_END.search(text, begin)
    return end.start() if end else len(text)


def write_dates(text: str, named: list[DateSpan]) -> str:
    """Return the text with each date in brackets after the words that name the date.

    Exact dates, doubtful dates, and dates that the text has in brackets already are not added.
    """
    for span in reversed(named):
        if span.shown and not text.startswith(f" ({span.shown}", span.end):
            text = f"{text[: span.end]} ({span.shown}){text[span.end :]}"
    return text


def remove_dates(text: str, named: list[DateSpan]) -> str:
    """Return the text without the words that name these dates."""
    for span in reversed(named):
        text = text[: span.start] + text[span.end :]
    return text


def _find_spans(text: str, day: date, direction: Direction) -> Iterator[DateSpan]:
    for pattern, reading in (*_ALWAYS, *((_AHEAD, _BEHIND)[direction < 0] if direction else ())):
        for match in pattern.finditer(text):
            try:
                days = reading(match, day)
            except (OverflowError, ValueError):
                continue  # no such date: 31 February, or a hundred thousand years ago
            if days:
                yield DateSpan(match.start(), match.end(), *days)


def _name_day(day: date) -> Days:
    return day, day, day.isoformat()


def _name_week(day: date, days: int = 7) -> Days:
    last = day - timedelta(days=day.weekday()) + timedelta(days=6)
    first = last - timedelta(days=days - 1)
    return first, last, f"{first}/{last}"


def _name_month(year: int, month: int) -> Days:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    following = date(year + month // 12, month % 12 + 1, 1)
    return date(year, month, 1), following - timedelta(days=1), f"{year:04}-{month:02}"


def _name_year(year: int) -> Days:
    return date(year, 1, 1), date(year, 12, 31), f"{year:04}"


def _read_day_name(match: re.Match[str], day: date) -> Days:
    return _name_day(day + timedelta(days=_DAYS[match["day"].lower()]))


def _read_distance(match: re.Match[str], day: date) -> Days | None:
    """Return the days that a distance such as "two weeks ago" names; None if its number is unreadable."""
    count = _parse_number(match["count"])
    if count is None:
        return None
    count = -count if "ago" in match.groupdict() else count
    match _UNITS[match["unit"].lower()]:
        case "day":
            return _name_day(day + timedelta(days=count))
        case "week":
            return _name_week(day + timedelta(weeks=count))
        case "month":
            return _name_month(day.year, day.month + count)
        case _:
            return _name_year(day.year + count)


def _parse_number(text: str) -> int | None:
    """Parse a number in digits or as a word; None for other texts.

    An empty text is 1, as before the unit in «через неделю» (in a week).
    """
    text = text.strip().lower()
    if not text:
        return 1
    return int(text) if text.isdecimal() else _NUMBERS.get(text)


def _read_shift(match: re.Match[str], day: date) -> Days:
    """Return the days for "last", "this" or "next" with a week, weekend, month or year."""
    shift = _SHIFTS[match["shift"].lower()]
    unit = match["unit"].lower()
    if unit in ("weekend", "выходных", "выходные"):
        return _name_week(day + timedelta(weeks=shift), days=2)
    match _UNITS[unit]:
        case "week":
            return _name_week(day + timedelta(weeks=shift))
        case "month":
            return _name_month(day.year, day.month + shift)
        case _:
            return _name_year(day.year + shift)


def _read_weekday(match: re.Match[str], day: date) -> Days:
    """Return the day for "last", "this" or "next" with a weekday; "this Friday" may be today."""
    shift, wanted = _SHIFTS[match["shift"].lower()], _WEEKDAYS[match["weekday"].lower()]
    if shift == 1:
        return _name_day(day - timedelta(days=day.weekday()) + timedelta(days=7 + wanted))
    return _find_nearest(wanted, day, -1 if shift < 0 else 1)


def _find_nearest(wanted: int, day: date, direction: Direction) -> Days:
    if direction < 0:
        return _name_day(day - timedelta(days=(day.weekday() - wanted - 1) % 7 + 1))
    return _name_day(day + timedelta(days=(wanted - day.weekday()) % 7))


def _build_weekday_reading(direction: Direction) -> DateReading:
    return lambda match, day: _find_nearest(_WEEKDAYS[match["weekday"].lower()], day, direction)


def _build_month_reading(direction: Direction) -> DateReading:
    def read_month(match: re.Match[str], day: date) -> Days:
        month = _MONTHS[match["month"].lower()]
        later = month > day.month if direction < 0 else month < day.month
        return _name_month(day.year + (direction if later else 0), month)

    return read_month


def _build_day_reading(direction: Direction) -> DateReading:
    """Return a function that turns a day and month without a year into the nearest date in a direction."""

    def read_day(match: re.Match[str], day: date) -> Days:
        month, number = _MONTHS[match["month"].lower()], int(match["number"])
        this_year = date(day.year, month, number)
        is_wrong = this_year > day if direction < 0 else this_year < day
        return _name_day(this_year.replace(year=day.year + direction) if is_wrong else this_year)

    return read_day


def _read_date(match: re.Match[str], day: date) -> Days:
    groups = match.groupdict()
    month = _MONTHS[groups["month"].lower()] if groups.get("month") else int(groups["of_year"])
    exact = date(int(groups["year"]), month, int(groups["number"]))
    return exact, exact, ""


def _compile_rules(*rules: tuple[str, DateReading]) -> list[tuple[re.Pattern[str], DateReading]]:
    return [
        (re.compile(rf"(?<![\w-])(?:{pattern})(?![\w'-])", re.IGNORECASE), read) for pattern, read in rules
    ]


_COUNT: Final = rf"(?P<count>\d{{1,3}}|{_join_words(_NUMBERS)})"
_UNIT: Final = rf"(?P<unit>{_join_words(_UNITS)})"
_MONTH: Final = rf"(?P<month>{_join_words(_MONTHS)})\.?"
_WEEKDAY: Final = rf"(?P<weekday>{_join_words(_WEEKDAYS)})"
_SHIFT: Final = rf"(?P<shift>{_join_words(_SHIFTS)})"
_NUMBER: Final = r"(?P<number>\d{1,2})(?:st|nd|rd|th|-?го)?"
_NO_YEAR: Final = r"(?!\.?,? (?:of )?\d{4})"
_NO_PLURAL: Final = r"(?! (?:mornings|afternoons|evenings|nights)\b)"
"""Excludes a regular weekday: "on Wednesday evenings" names no single day."""

_BARE_WEEKDAY: Final = re.compile(rf"(?:on|в|во) {_WEEKDAY}", re.IGNORECASE)
_RETURN: Final = re.compile(
    r"(?<!\w)(?:back(?! to (?!work\b|school\b)(?-i:[a-z]))|return\w*|then|"
    r"(?:com|driv|fly|head)(?:e|ing)? home|верн\w+|возвра[тщ]\w+|обратно|назад|домой|потом|затем)(?!\w)",
    re.IGNORECASE,
)
"""Words that say that a date is later than the date before it in the text."""

_DEPARTURE: Final = re.compile(
    r"(?<!\w)(?:leav\w+|depart\w*|fly\w*|улета\w+|лечу|летим|уезжа\w+|уед\w+|вылета\w+|выезжа\w+)(?!\w)"
    r"(?! (?:again|снова|опять)\b)",
    re.IGNORECASE,
)
_CLAUSE_END: Final = re.compile(
    r"[,;:.!?()]| [—–-] |(?<!\w)(?:and|but|so|because|that|which|и|а|но|ведь|поэтому|потому|что)(?!\w)",
    re.IGNORECASE,
)

_ALWAYS: Final = _compile_rules(
    (rf"(?P<day>{_join_words(_DAYS)})", _read_day_name),
    (rf"{_COUNT} {_UNIT} (?P<ago>ago|назад)", _read_distance),
    (r"(?P<count>)(?P<unit>неделю|месяц|год) (?P<ago>назад)", _read_distance),
    (rf"(?:in|через) {_COUNT} {_UNIT}(?: time)?", _read_distance),
    (r"через (?P<count>)(?P<unit>неделю|месяц|год)", _read_distance),
    (rf"(?:this )?{_SHIFT} (?P<unit>week|weekend|month|year)", _read_shift),
    (rf"(?:на|в) {_SHIFT} (?P<unit>неделе|выходных|выходные|месяце|году)", _read_shift),
    (rf"(?:(?:on|в|во) )?{_SHIFT} {_WEEKDAY}", _read_weekday),
    (rf"{_NUMBER} (?:of )?{_MONTH},? (?P<year>\d{{4}})", _read_date),
    (rf"{_MONTH} {_NUMBER},? (?P<year>\d{{4}})", _read_date),
    (r"(?P<year>\d{4})-(?P<of_year>\d\d)-(?P<number>\d\d)", _read_date),
    (r"(?P<number>\d{1,2})\.(?P<of_year>\d\d)\.(?P<year>\d{4})", _read_date),
)


def _build_directed_rules(direction: Direction) -> list[tuple[re.Pattern[str], DateReading]]:
    return _compile_rules(
        (rf"(?:on|в|во) {_WEEKDAY}{_NO_PLURAL}", _build_weekday_reading(direction)),
        (rf"(?:in|в) {_MONTH}{_NO_YEAR}", _build_month_reading(direction)),
        (rf"(?:on )?(?:the )?{_NUMBER} (?:of )?{_MONTH}{_NO_YEAR}", _build_day_reading(direction)),
        (rf"(?:on )?{_MONTH} {_NUMBER}{_NO_YEAR}", _build_day_reading(direction)),
    )


_AHEAD: Final = _build_directed_rules(1)
_BEHIND: Final = _build_directed_rules(-1)
