"""Patterns of roles: regular expressions that match the sequence of the kinds of words in a sentence."""

import re
from typing import Final

from mnemon_consumers.retrieve.search.query.periods.date_words import WordKind

_CLASSES: Final = {
    "SHIFT": "[LAST PREVIOUS BEFORE_LAST THIS NEXT COMING]",
    "TIME_PREPOSITION": "[IN OF FROM FROM_OR_SINCE UNTIL DURING SINCE BETWEEN BEFORE]",
    "PREPOSITION": "[IN ON OF FROM FROM_OR_SINCE TO UNTIL DURING SINCE BETWEEN BEFORE AROUND]",
    "ENGLISH_MONTH": "[MONTH AMBIGUOUS_MONTH SHORT_MONTH]",
    "ANY_MONTH": "[MONTH AMBIGUOUS_MONTH SHORT_MONTH RUSSIAN_MONTH]",
    "LONG_MONTH": "[MONTH AMBIGUOUS_MONTH RUSSIAN_MONTH]",
    "ANY_YEAR": "[YEAR ORDINAL_YEAR]",
    "ANY_SEASON": "[SEASON IN_SEASON]",
    "ANY_WEEKDAY": "[WEEKDAY RUSSIAN_WEEKDAY]",
    "WEEKDAY_OR_WEEKEND": "(?: (?P<weekday> ANY_WEEKDAY) | WEEKEND )",
    "DAY_NUMBER": "[NUMBER ORDINAL]",
    "COUNTED": (
        "(?: ARTICLE? (?P<few> FEW) OF? |(?P<count> [NUMBER NUMERAL ONE_AND_A_HALF ARTICLE ROUGHLY AROUND]) )"
    ),
    "AND_A_HALF": "(?: [AND FROM_OR_SINCE] ARTICLE? (?P<half> HALF) )?",
    "ANY_UNIT": "[DAY_UNIT WEEK_UNIT FORTNIGHT MONTH_UNIT YEAR_UNIT TIME_UNIT]",
    "UNIT": "(?P<unit> ANY_UNIT)",
    "LONG_UNIT": "(?P<unit> [WEEK_UNIT MONTH_UNIT YEAR_UNIT]) (?! BEFORE [LAST NEXT] )",
    "YEARS_AGO": (
        "(?: (?P<years_ago> [NUMBER NUMERAL ARTICLE]) YEAR_UNIT | (?P<year_ago> YEAR_UNIT) ) THE? AGO"
    ),
    "OF_YEAR": (
        "COMMA? [OF IN ON]? THE?"
        "(?: (?P<year> ANY_YEAR) YEAR_UNIT? | (?P<shift_of_year> SHIFT) YEAR_UNIT | YEARS_AGO )"
    ),
    "MAYBE_OF_YEAR": "(?: OF_YEAR )?",
    "CLAUSE_END": "(?= STOP | COMMA | $ )",
}

_NAME: Final = re.compile(r"(?<!<)\b[A-Z][A-Z_]+\b")


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of roles, in which a name stands for a kind of word, or for a class of kinds."""
    return re.compile(_expand_names(pattern))


def _expand_names(pattern: str) -> str:
    """Replace the names of classes and kinds in a pattern by the characters of the kinds."""

    def replace_name(match: re.Match[str]) -> str:
        if match[0] in _CLASSES:
            return _expand_names(_CLASSES[match[0]])
        character = WordKind[match[0]].value
        return character if character.isalpha() else re.escape(character)

    return re.sub(r"\s+", "", _NAME.sub(replace_name, pattern))
