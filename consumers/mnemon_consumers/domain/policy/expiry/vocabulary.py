"""Patterns of the expressions for an end in a language."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple


class ExpiryLanguage(NamedTuple):
    """Patterns for the ends that a language names. All patterns are for lower case.

    Attributes:
        code: the language's name in dateparser.
        end: the words that name an end. The phrase is in the named group that matches last: `date...` is a
            date, `period...` the current or next day, week, month or year, or a weekend, and `duration...` a
            number of days, weeks or months.
        mark: a word that begins an end, with or without a date after it.
        needs: by named group of `end`, words that the rest of the text must have.
        forbids: by named group of `end`, words that the rest of the text must not have.
        doubt: words that make the end doubtful, anywhere in the text.
        clause: separators of clauses in a sentence in which NUL replaces the end.
        verb: a verb of a clause; the effect of a false match is only that a text gets no end.
        is_in_past: function that returns whether the words before the end are about the past.
        format_phrase: function that returns a phrase in the form that dateparser reads.
        ahead: the word that turns a duration into a date for dateparser, such as "in" in "in two weeks".
        next: a word that means the next week, month, year or weekday.
        units: the words for the units of time, by `day`, `week`, `month` and `year`.
    """

    code: str
    end: re.Pattern[str]
    mark: re.Pattern[str]
    needs: Mapping[str, re.Pattern[str]]
    forbids: Mapping[str, re.Pattern[str]]
    doubt: re.Pattern[str]
    clause: re.Pattern[str]
    verb: re.Pattern[str]
    is_in_past: Callable[[str], bool]
    format_phrase: Callable[[str], str]
    ahead: str
    next: re.Pattern[str]
    units: Mapping[str, re.Pattern[str]]
