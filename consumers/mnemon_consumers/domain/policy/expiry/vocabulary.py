"""The words by which a language names an end, as data."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple


class ExpiryLanguage(NamedTuple):
    """How a language says until when something holds. All patterns are for small letters.

    Attributes:
        code: as dateparser names the language.
        end: the words that name an end. The phrase is in the named group that matches last: `date...` is
            read by dateparser, `period...` is a week, month or year, `duration...` a number of them.
        mark: a word that begins an end, whether or not a date follows.
        needs: by group, words that the rest of the text must have.
        forbids: by group, words that the rest of the text must not have.
        doubt: words that make the end doubtful, anywhere in the text.
        clause: what separates the clauses of a sentence in which NUL stands for the end.
        verb: a verb of a clause; a word too many only means that a text has no end.
        in_past: whether the words before the end speak of the past.
        shown: a phrase as dateparser reads it.
        ahead: the word that makes a duration a date.
        next: the next week, month, year or weekday.
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
    in_past: Callable[[str], bool]
    shown: Callable[[str], str]
    ahead: str
    next: re.Pattern[str]
    units: Mapping[str, re.Pattern[str]]
