"""Expiry of a text: the date until which a fact holds, as the words of the fact say. No I/O, no clock.

"On vacation until Friday" names an end. "The deadline is on Friday" names none, because the date of the
deadline stays the same after Friday. A wrong end hides a fact for ever. So a fact gets no end if there is any
doubt. For example, a past tense before the end, a negation, a habit, or a date with two readings is a
reason for doubt.

A narrow pattern finds the words that name the end, and dateparser reads only these. An end includes its last
day: "until Friday" ends when Saturday begins, "until June" when July begins.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from mnemon_consumers.domain.policy.expiry import english, russian
from mnemon_consumers.domain.policy.expiry.vocabulary import ExpiryLanguage

FARTHEST_WITHOUT_YEAR: Final = timedelta(days=305)
"""Maximum distance of a date without a year from the day of the statement. A date farther ahead may mean the
past: "until March", said in April."""

CACHED_TEXTS: Final = 10_000
"""Maximum number of entries in each of the two caches of a process: the ends that texts name, and the dates
that phrases name."""

_LANGUAGES: Final = (english.LANGUAGE, russian.LANGUAGE)
_PLAIN: Final = str.maketrans({"’": "'", "‘": "'", "ё": "е"})
_SEVERAL_SENTENCES: Final = re.compile(r"[.!?;]\s+\w")
_QUOTED: Final = re.compile(r"«[^»]*»|“[^”]*”|„[^“]*“|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)")
_TITLE: Final = re.compile(r"[\w,]\W*\s\W*(?:Until|Till|Through|Thru|By|For|До|По|На|К)(?= \w)")
"""A preposition with a capital letter in the middle of a sentence, as in the title of a song or a film."""
_SENTENCE_END: Final = re.compile(r"[.!?:;—–]")
_YEAR: Final = re.compile(r"20\d\d")
_ENDS_OF_MONTHS: Final = frozenset({"date_of_end", "date_by"})
"""Groups of the pattern `end` that name the end of a month. This month's end is a clear date; "until March",
said in March, is not."""


class _NamedEnd(NamedTuple):
    """A named end: its language, the group of the pattern `end` that matched, and the words in this group."""

    language: ExpiryLanguage
    group: str
    phrase: str


def names_end(text: str) -> bool:
    """Return whether a text has words that name an end, even if `find_expiry` finds no date in them."""
    return bool(_find_ends(text))


def find_expiry(text: str, said_at: datetime, zone: str = "UTC") -> datetime | None:
    """Find the moment, in UTC, from which a text no longer holds.

    Args:
        text: a fact.
        said_at: the time of the statement; "until Friday" means the next Friday after that.
        zone: time zone in which the speaker's days begin, such as Europe/Moscow.

    Returns:
        The latest of the ends that the text names. None if it names no end, if one of the ends is not a clear
        date, or if the moment is not after `said_at`.
    """
    ends = _find_ends(text)
    if not ends:
        return None
    local = ZoneInfo(zone)
    try:
        day = said_at.astimezone(local).date()
        after = [_find_next_day(end, day) for end in ends]
        if None in after:
            return None
        expires_at = datetime.combine(max(filter(None, after)), time(), local).astimezone(UTC)
    except (OverflowError, ValueError):
        return None
    return expires_at if expires_at > said_at else None


@lru_cache(maxsize=CACHED_TEXTS)
def _find_ends(text: str) -> tuple[_NamedEnd, ...]:
    unquoted = _QUOTED.sub("…", text)
    if any(not _SENTENCE_END.search(title[0]) for title in _TITLE.finditer(unquoted)):
        return ()
    plain = " ".join(unquoted.lower().translate(_PLAIN).split()).strip(" .!")
    if _SEVERAL_SENTENCES.search(plain):
        return ()
    return next((ends for language in _LANGUAGES if (ends := tuple(_find_ends_in(plain, language)))), ())


def _find_ends_in(text: str, language: ExpiryLanguage) -> Iterator[_NamedEnd]:
    matches = list(language.end.finditer(text))
    if not matches or language.doubt.search(text) or language.is_in_past(text[: matches[-1].start()]):
        return
    # "Until Friday, or until she is well": one of the ends has no date.
    marked = sum(language.mark.search(match[0]) is not None for match in matches)
    if len(language.mark.findall(text)) > marked:
        return
    if any(text.startswith("'s", match.end()) for match in matches) or _has_other_statement(
        text, matches, language
    ):
        return
    for match in matches:
        group = match.lastgroup
        assert group is not None, "each alternative of the pattern is a group"
        needs, forbids = language.needs.get(group), language.forbids.get(group)
        rest = text[: match.start()] + text[match.end() :]
        if (needs is None or needs.search(rest)) and not (forbids and forbids.search(rest)):
            yield _NamedEnd(language, group, match[group])


def _has_other_statement(text: str, matches: Sequence[re.Match[str]], language: ExpiryLanguage) -> bool:
    """Return whether another clause has a statement of its own: "is away until Friday, bought a house"."""

    def has_statement(clause: str) -> bool:
        return language.verb.search(clause) is not None or language.is_in_past(clause)

    # The comma in "14 May, 2027" separates no clauses.
    plain = text
    for match in matches:
        plain = plain[: match.start()] + "\0" * len(match[0]) + plain[match.end() :]
    clauses = language.clause.split(plain)
    ending = [clause for clause in clauses if "\0" in clause]
    if all(not re.search(r"\w", clause) for clause in ending):
        # "Until Friday, the user is in Rome".
        return sum(map(has_statement, clauses)) > 1
    return any(has_statement(clause) for clause in clauses if "\0" not in clause)


def _find_next_day(end: _NamedEnd, day: date) -> date | None:
    """Return the day after the last day of an end; None if the words of the end are not a clear date.

    `day` is the day of the statement.
    """
    language, group, phrase = end
    if group.startswith("period"):
        return _find_day_after_period(language, phrase, day)
    if group.startswith("day"):
        number = re.search(r"\d+", phrase)
        assert number is not None, "a day of the month has a number"
        if "this month" in phrase and int(number[0]) < day.day:
            return None  # "until the 5th of this month", after the fifth
        return _find_day_of_month(int(number[0]), day) + timedelta(days=1)
    if group.startswith("duration"):
        parsed = _parse_date(
            language.code, f"{language.ahead} {language.format_phrase(phrase)}", day, "current"
        )
        return parsed[0] + timedelta(days=1) if parsed else None
    formatted = language.format_phrase(phrase)
    is_next = language.next.search(phrase) is not None
    parsed = _parse_date(language.code, formatted, day, "first")
    if parsed is None:
        return None
    first, unit = parsed
    if not _YEAR.search(phrase) and first - day > FARTHEST_WITHOUT_YEAR:
        # dateparser moves even today and the current month to a later year.
        latest = _parse_date(language.code, formatted, day, "first", "past")
        if latest is None or (latest[1] != "day" and group not in _ENDS_OF_MONTHS):
            return None
        after = _find_day_after(*latest)
        return after if after > day else None
    if is_next and first.isocalendar()[:2] == day.isocalendar()[:2]:
        # On a Monday, "next Friday" is in the next week; the earlier day would be "this Friday".
        first += timedelta(weeks=1)
    return _find_day_after(first, unit)


def _find_day_of_month(number: int, day: date) -> date:
    """Return the first day, from `day` on, that has a number in its month.

    Raises:
        ValueError: the month has no such day.
    """
    return (day if number >= day.day else _find_day_after(day, "month")).replace(day=number)


def _find_day_after_period(language: ExpiryLanguage, phrase: str, day: date) -> date:
    """Return the day after the period that a phrase names.

    The period is the day, week, month or year that contains `day`, or the next one.
    """
    unit = next(unit for unit, pattern in language.units.items() if pattern.search(phrase))
    first = _find_day_after(day, unit)
    return _find_day_after(first, unit) if language.next.search(phrase) else first


def _find_day_after(day: date, unit: str) -> date:
    """Return the first day after the `unit` (day, week, month or year) that contains `day`."""
    match unit:
        case "week":
            return day + timedelta(days=7 - day.weekday())
        case "month":
            return date(day.year + day.month // 12, day.month % 12 + 1, 1)
        case "year":
            return date(day.year + 1, 1, 1)
        case _:
            return day + timedelta(days=1)


@lru_cache(maxsize=CACHED_TEXTS)
def _parse_date(
    language: str, phrase: str, day: date, day_of_month: str, direction: str = "future"
) -> tuple[date, str] | None:
    """Return a day of the date that a phrase names, and the unit of this date; None if it is not a date.

    The unit is `day`, `week`, `month` or `year`. The day of a longer unit is any day within it.

    Args:
        language: the code of the language in dateparser.
        phrase: words that may be a date.
        day: the day to which the phrase is relative.
        day_of_month: the setting `PREFER_DAY_OF_MONTH` of dateparser.
        direction: the setting `PREFER_DATES_FROM` of dateparser, for a date without a year. `future` excludes
            the month or the day that contains `day`; `past` includes it.
    """
    # Loading takes 0.1 s, and as long again for each language, so only texts that name an end load it.
    from dateparser.date import DateDataParser

    settings: dict[str, Any] = {
        "RELATIVE_BASE": datetime.combine(day, time()),
        "PREFER_DATES_FROM": direction,
        "PREFER_DAY_OF_MONTH": day_of_month,
        "TIMEZONE": "UTC",
        "RETURN_AS_TIMEZONE_AWARE": False,
    }
    found = DateDataParser(languages=[language], settings=settings).get_date_data(phrase)
    return (found.date_obj.date(), found.period or "day") if found.date_obj else None
