"""Periods that a query names: "last week", «прошлым летом» (last summer), "21.01.2024". No I/O, no clock.

A lexicon gives each word its role in dates, and rules match the sequence of roles. The package does not use
dateparser, which takes a millisecond for each phrase of a query, and most of a second to load. Besides,
dateparser does not know seasons, weekends and parts of a month.
"""

from collections.abc import Iterator
from datetime import datetime, time, timedelta
from typing import Final, NamedTuple

from mnemon_consumers.retrieve.search.query.periods.date_range import DateRange, set_year
from mnemon_consumers.retrieve.search.query.periods.date_words import DateWord, WordKind, split_date_words
from mnemon_consumers.retrieve.search.query.periods.period import QueryPeriod
from mnemon_consumers.retrieve.search.query.periods.phrase_rules import DateSentence, Phrase, find_phrases
from mnemon_consumers.retrieve.search.query.periods.role_pattern import compile_pattern


class PeriodSplit(NamedTuple):
    """Periods that a text names, and the words and marks outside of the phrases that name them.

    Attributes:
        periods: the periods, in their order in the text.
        gaps: the words before the first phrase, between each phrase and the next, and after the last.
    """

    periods: tuple[QueryPeriod, ...]
    gaps: tuple[tuple[DateWord, ...], ...]


_ROLES_OF_DATES: Final = compile_pattern(
    "[DATE ISO_MONTH SEVERAL_YEARS YEAR ORDINAL_YEAR MONTH AMBIGUOUS_MONTH SHORT_MONTH RUSSIAN_MONTH SEASON "
    "IN_SEASON WEEKDAY RUSSIAN_WEEKDAY WEEKDAYS NAMED_DAY PART_OF_DAY DAY_UNIT WEEK_UNIT MONTH_UNIT "
    "YEAR_UNIT TIME_UNIT WEEKEND WEEKENDS HALF_YEAR DECADE HOLIDAY "
    "FORTNIGHT NIGHTS SEASONS SHORT_WEEKDAY DAY_OF_MONTH RECENT_DAYS ORDINAL]"
)
"""Roles of words. A text without a word in one of these roles names no period."""

_RANGE: Final = compile_pattern("(?: [TO UNTIL DASH] | (?P<and> AND) ) PREPOSITION? THE?")

_BETWEEN: Final = compile_pattern("BETWEEN THE? $")

_BOTH_ENDS: Final = compile_pattern("[TO UNTIL AND SEVERAL_YEARS] | (?<! [EDGE RUSSIAN_EDGE]) DASH")
"""Roles in a phrase that names the beginning and the end of a period, unlike "mid-June"."""


def find_periods(text: str, now: datetime) -> tuple[QueryPeriod, ...]:
    """Find the periods that a text names, in their order in the text.

    Weeks begin on Monday, seasons are those of the northern hemisphere, and a weekday without more words is
    the last day of this name before today, as a day without a month, such as "the 14th", is the last one; in
    a question about the future, such as "What am I doing on Friday?", it is the next one.
    "A week ago" and "in two months" mean a period as long as the unit, around that day. "Last month" is a
    month of the calendar, "the last month" ends today, and "the other day" is one of the seven days before
    today. The first week of a month or a year is its first seven days; the beginning, the middle and the end
    are thirds. After "since" or «с», a period lasts until today, unless its phrase names both ends, as "3 to
    10 May" does.

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
    sentence = DateSentence(text, words, roles, now)
    found = _join_phrases(find_phrases(sentence), roles)
    periods: list[QueryPeriod] = []
    for each in found:
        for dates in _extend_to_today(each, sentence):
            start, end = (datetime.combine(day, time(), now.tzinfo) for day in (dates.first, dates.after))
            periods.append(QueryPeriod(start, end, dates.is_yearly))
    starts, ends = [each.start for each in found], [each.end for each in found]
    gaps = zip([0, *ends], [*starts, len(words)], strict=True)
    return PeriodSplit(tuple(dict.fromkeys(periods)), tuple(tuple(words[start:end]) for start, end in gaps))


def _join_phrases(phrases: Iterator[Phrase], roles: str) -> list[Phrase]:
    """Join phrases as in "from Monday to Friday" and "between March and May"."""
    joined: list[Phrase] = []
    for phrase in phrases:
        if joined and (link := _RANGE.fullmatch(roles, joined[-1].end, phrase.start)):
            before = roles[max(0, joined[-1].start - 2) : joined[-1].start]
            if link["and"] is not None and not _BETWEEN.search(before):
                joined[-1] = _share_year(joined[-1], phrase)
            else:
                dates = _build_joined_range(joined[-1], phrase)
                if dates is not None:
                    joined[-1] = Phrase(joined[-1].start, phrase.end, (dates,))
                    continue
        joined.append(phrase)
    return joined


def _share_year(one: Phrase, other: Phrase) -> Phrase:
    """Return the phrase `one`, with the year of `other` if `one` names none, as in "in June and July 2023".

    `one` is returned unchanged unless `other` is a day, a month or a season with a year.
    """
    year, last = other.ranges[0].first.year, other.ranges[0]
    if last.is_yearly or last.unit not in ("day", "month", "season"):
        return one
    try:
        ranges = tuple(set_year(dates, year) if dates.is_yearly else dates for dates in one.ranges)
    except (OverflowError, ValueError):
        return one
    return one._replace(ranges=ranges)


def _build_joined_range(one: Phrase, other: Phrase) -> DateRange | None:
    """Return the range from the beginning of one phrase to the end of another.

    Return None if a phrase has several ranges, if the end is not after the beginning, or if a date would not
    exist, such as 29 February 2023.
    """
    if len(one.ranges) != 1 or len(other.ranges) != 1:
        return None
    first, last = one.ranges[0], other.ranges[0]
    try:
        if first.is_yearly and not last.is_yearly:
            first = set_year(first, last.first.year)
            if first.first > last.first:
                first = set_year(one.ranges[0], last.first.year - 1)
        elif last.is_yearly:
            is_in_next_year = (last.first.month, last.first.day) <= (first.first.month, first.first.day)
            last = set_year(last, first.first.year + is_in_next_year)
        elif first.first >= last.first and last.unit == "weekday":
            last = last._replace(first=last.first + timedelta(days=7), after=last.after + timedelta(days=7))
    except (OverflowError, ValueError):
        return None
    if first.first >= last.after:
        return None
    return DateRange(first.first, last.after, "other", one.ranges[0].is_yearly and other.ranges[0].is_yearly)


def _extend_to_today(phrase: Phrase, sentence: DateSentence) -> tuple[DateRange, ...]:
    """Return the ranges of a phrase; after "since" or «с», a range without a named end lasts until today."""
    before = phrase.start - 1
    if before >= 0 and sentence.words[before].kind is WordKind.THE:
        before -= 1
    word = sentence.words[before] if before >= 0 else None
    is_open = word is not None and word.kind in (WordKind.SINCE, WordKind.FROM_OR_SINCE)
    if word is not None and word.kind is WordKind.FROM_OR_SINCE:
        # «С неделю назад» is "about a week ago".
        is_open = sentence.words[phrase.end - 1].kind is not WordKind.AGO
    has_end = _BOTH_ENDS.search(sentence.roles, phrase.start, phrase.end) is not None
    if not is_open or has_end or len(phrase.ranges) != 1:
        return phrase.ranges
    (dates,) = phrase.ranges
    try:
        if dates.is_yearly and dates.first > sentence.today:
            dates = set_year(dates, dates.first.year - 1)
        after = max(dates.after, sentence.today + timedelta(days=1))
    except (OverflowError, ValueError):
        return phrase.ranges  # 29 February of a year without it, or the end of the calendar
    return (DateRange(dates.first, after),) if dates.first <= sentence.today else phrase.ranges
