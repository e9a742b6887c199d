"""Patterns of the phrases, in one language, that say until when a fact holds."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple


class ExpiryLanguage(NamedTuple):
    """Patterns for phrases that say until when a fact holds, such as "until Friday" or "for two weeks".

    All patterns are for text in lower case. In the names, an end is the time until which the fact holds.

    Attributes:
        code: the language's name in dateparser.
        end: a whole phrase. The named group that matches last has the time in it: `date...` is a date,
            `day...` the number of a day in its month, `period...` the current or next day, week, month or
            year, or a weekend, and `duration...` a number of days, weeks or months.
        mark: a word that begins such a phrase, with or without a date after it.
        needs: by named group of `end`, words that the rest of the text must have, or else the phrase is
            ignored.
        forbids: by named group of `end`, words that the rest of the text must not have, or else the phrase is
            ignored.
        doubt: words that make each such phrase in the text doubtful.
        clause: separators of clauses in a sentence in which NUL replaces the phrase.
        verb: a verb of a clause; the effect of a false match is only that a text gets no end.
        is_in_past: function that returns whether a part of the text is about the past.
        format_phrase: function that returns the time in a phrase, in the form that dateparser reads.
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
