"""Grounding: checks a fact of a model against the messages that the fact names as sources. No I/O, no clock.

A name or a number that no source has was most likely made up, or belongs to another person. Dates have other
rules: a model has to write the date that "yesterday" means, which no message contains.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final

from mnemon_consumers.domain.alignment.morphology import fold_characters, list_forms
from mnemon_consumers.domain.alignment.parser import parse_fact, parse_text
from mnemon_consumers.domain.alignment.term import Term, TermKind
from mnemon_consumers.extract.prompt import BEGINNING, ENDING
from mnemon_infra.models.language.port import PromptFact, PromptMessage
from mnemon_infra.models.language.prompt_text import shorten_text

DERIVED_DAYS: Final = 366
"""Maximum number of days, in either direction, between a message and the date that it may mean by "in May".
"""

LIKE_NAMES: Final = 5
LIKE_SHARE: Final = 0.6
"""Minimum share of the longer word that is the common beginning of two forms of a name, such as Portugal and
Portuguese. The beginning also has at least `LIKE_NAMES` letters."""

_WORD: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_FIGURE: Final = re.compile(r"\d+")
_DAY_FIRST: Final = re.compile(r"(?<![\d.,/])(\d{1,2})[./](\d{1,2})[./](\d{4})(?![\d/])")
_HYPHEN: Final = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_MONTH: Final = "dates month "
_MAY: Final = 5
_RELATIVE: Final = re.compile(
    r"\b(?:ago|next|last|yesterday|today|tonight|tomorrow|this|coming|soon|"
    r"in (?:an? )?(?:\w+ ){1,2}(?:days?|weeks?|months?|years?)|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|weekend|"
    r"назад|через|вчера|позавчера|сегодня|завтра|послезавтра|(?:следующ|прошл|будущ|ближайш|эт)\w+|скоро|"
    r"понедельник\w*|вторник\w*|сред[ауы]|четверг\w*|пятниц\w*|суббот\w*|воскресень\w*|выходн\w+)\b",
    re.IGNORECASE,
)
_LABELS: Final = frozenset(
    ("user", "assistant", "bot", "пользователь", "пользовательница", "ассистент", "бот")
)
_VERBS: Final = re.compile(
    r"(?:like|love|live|work|want|hate|play|move|visit|eat|drink|prefer|own|keep|say|come|need|enjoy|speak|"
    r"plan|call|turn|get|give|help|know|ask|dislike|collect|become|use|take|run)s|(?:mov|visit|enjoy|studi|"
    r"plann|di|call|marri|turn|help|ask)ed|goes|went|said|came|studies|teaches|bought|got|gave|met|told|became|took"
)
"""Verbs that make the first word of a fact a name if they follow it: "Tom likes tea"."""

_ANAPHORA: Final = re.compile(
    r"\b(?:he|she|they|him|her|hers|his|them|their|it|its|there|who|"
    r"он|она|оно|они|его|ему|него|нему|ей|её|ее|неё|нее|ней|им|их|них|ними|там|туда|оттуда|это|этот|эта)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CalendarDate:
    """A date in a text.

    Attributes:
        year: the year; None if the text does not give it.
        month: 1 to 12; None if the text does not give it.
        day: the day of the month; None if the text does not give it.
        places: for each term of the date, the index of its first token.
    """

    year: int | None
    month: int | None
    day: int | None
    places: frozenset[int]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence for a fact: words, numbers and dates of texts, see `find_unsupported_terms`.

    Attributes:
        words: all forms of the words.
        months: the months that the texts name, by number.
        days: the days that the texts name, each as month and day of the month.
        is_relative: whether the texts give a relative time, such as "yesterday".
        said_on: the dates of the messages that the fact names; of all messages if it names none.
    """

    words: frozenset[str]
    numbers: frozenset[float]
    months: frozenset[int]
    days: frozenset[tuple[int, int]]
    is_relative: bool
    said_on: tuple[date, ...]


def find_unsupported_terms(
    text: str, sources: Sequence[int], messages: Sequence[PromptMessage], known: Iterable[PromptFact]
) -> list[str]:
    """Find the names, numbers and dates of a fact that its evidence lacks, in the spelling of the fact.

    Evidence is the text of the fact's sources (of all messages if it has none), the messages of the
    assistant, the speakers' names, and the known facts that the model was shown. If a source says "she" or
    "there", any message is evidence for a name.

    Args:
        text: the fact.
        sources: log positions of the messages that the fact cites.
        messages: the messages that the model was shown.
        known: the known facts that the model was shown.
    """
    named = [message for message in messages if message.seq in sources] or list(messages)
    shown = [message for message in messages if message.role == "assistant"]
    beside = [*(fact.text for fact in known), *(message.name for message in messages if message.name)]
    found = _collect_evidence([*(message.text for message in (*named, *shown)), *beside], named)
    refers = any(_ANAPHORA.search(message.text) for message in named)
    names = found.words | (_collect_words(message.text for message in messages) if refers else frozenset())
    terms = parse_fact(_normalise_text(text)).terms
    dates = list(_find_dates(terms))
    dated = frozenset(place for each in dates for place in each.places)
    missing = [term for term in terms if _is_name(term, text) and not _is_name_supported(term, names)]
    missing += [
        term
        for each in dates
        if not _is_date_supported(each, found)
        for term in terms
        if term.place in each.places
    ]
    missing += [
        term
        for term in terms
        if term.kind is TermKind.NUMBER and term.place not in dated and not _is_number_supported(term, found)
    ]
    ordered = sorted(missing, key=lambda term: term.place)
    return list(dict.fromkeys(_find_spelling(term.text, text) for term in ordered))


def _collect_evidence(texts: Iterable[str], messages: Sequence[PromptMessage]) -> Evidence:
    read = [_normalise_text(shorten_text(text, BEGINNING, ENDING)) for text in texts]
    terms = [_parse_terms(text) for text in read]
    dates = [each for of_text in terms for each in _find_dates(of_text)]
    numbers = {value for of_text in terms for term in of_text for value in _list_values(term)}
    numbers |= {float(figure) for text in read for figure in _FIGURE.findall(text) if len(figure) < 16}
    return Evidence(
        words=_collect_words(read),
        numbers=frozenset(numbers),
        months=frozenset(each.month for each in dates if each.month),
        days=frozenset((each.month, each.day) for each in dates if each.month and each.day),
        is_relative=any(_RELATIVE.search(text) for text in read),
        said_on=tuple(message.at.date() for message in messages),
    )


@lru_cache(maxsize=500)
def _parse_terms(text: str) -> tuple[Term, ...]:
    # A message may be long, so it bypasses the cache of parsed facts, which are short.
    return parse_text(text).terms


def _collect_words(texts: Iterable[str]) -> frozenset[str]:
    found = {word.casefold() for text in texts for word in _WORD.findall(fold_characters(text))}
    found |= {word.removesuffix("'s").removesuffix("s'") for word in found}
    return frozenset(form for word in found for form in list_forms(word)) | found


def _find_dates(terms: Sequence[Term]) -> Iterator[CalendarDate]:
    """Yield the dates of a text: months, with a day and a year if these are near, and single years."""
    used: set[int] = set()
    for at, term in enumerate(terms):
        month = _find_month(term)
        if month is None:
            continue
        beside = [
            (each, int(value))
            for each in terms[max(0, at - 2) : at + 3]
            for value in _list_values(each)
            if abs(each.place - term.place) <= 2 and value == int(value)
        ]
        years = [(each, value) for each, value in beside if _is_year(value)]
        days = [
            (each, value)
            for each, value in beside
            if 1 <= value <= 31 and abs(each.place - term.place) <= 1 and each.place not in used
        ]
        parts = [*years[:1], *days[:1]]
        places = frozenset((term.place, *(each.place for each, _ in parts)))
        used |= places
        yield CalendarDate(years[0][1] if years else None, month, days[0][1] if days else None, places)
    for term in terms:
        value = next((value for value in _list_values(term) if _is_year(value)), None)
        if value is not None and term.place not in used and re.fullmatch(r"\d{4}", term.text):
            yield CalendarDate(int(value), None, None, frozenset((term.place,)))


def _find_month(term: Term) -> int | None:
    if _is_month_of_may(term):
        return _MAY
    return next((int(key.removeprefix(_MONTH)) for key in term.keys if key.startswith(_MONTH)), None)


def _is_month_of_may(term: Term) -> bool:
    """Return whether a term is the month of May, which looks like a name."""
    return term.kind is TermKind.NAME and term.text == "may"


def _is_year(value: float) -> bool:
    return 1900 <= value <= 2100


def _list_values(term: Term) -> Iterator[float]:
    if term.kind is not TermKind.NUMBER:
        return
    for key in term.keys:
        hours, colon, minutes = key.partition(":")
        try:
            yield round(float(hours) + (float(minutes) / 100 if colon else 0), 2)
        except ValueError:
            continue


def _is_name(term: Term, text: str) -> bool:
    first, following, *_ = [*text.split(maxsplit=2), "", ""]
    begins = (
        term.place == 0
        and term.kind is TermKind.WORD
        and first[:1].isupper()
        and bool(_VERBS.fullmatch(following))
    )
    return (term.kind is TermKind.NAME and not _is_month_of_may(term)) or begins


def _is_name_supported(term: Term, words: frozenset[str]) -> bool:
    if term.text in _LABELS or not term.keys.isdisjoint(words):
        return True
    return any(_have_common_beginning(term.text, word) for word in words)


def _have_common_beginning(one: str, other: str) -> bool:
    alike = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    return alike >= LIKE_NAMES and alike >= LIKE_SHARE * max(len(one), len(other))


def _is_number_supported(term: Term, evidence: Evidence) -> bool:
    values = list(_list_values(term))
    years = [number for number in evidence.numbers if _is_year(number)]
    return not values or any(
        value == 1
        or value in evidence.numbers
        or (12 < value < 24 and round(value - 12, 2) in evidence.numbers)
        # An age may follow from a year of birth.
        or any(day.year - year - value in (0, 1) for day in evidence.said_on for year in years)
        for value in values
    )


def _is_date_supported(each: CalendarDate, evidence: Evidence) -> bool:
    parts = [each.year, each.day]
    is_written = all(part is None or float(part) in evidence.numbers for part in parts)
    if is_written and (each.month is None or each.month in evidence.months):
        return True
    return any(_is_date_derived(each, day, evidence) for day in evidence.said_on)


def _is_date_derived(each: CalendarDate, day: date, evidence: Evidence) -> bool:
    """Return whether a message sent on `day` may mean the date `each` by words such as "in May"."""
    if each.month is None:
        offset = abs((each.year or day.year) - day.year)
        # "I am 30" implies a year of birth, "two years ago" a year.
        return offset <= 1 or float(offset) in evidence.numbers or float(offset - 1) in evidence.numbers
    years = [each.year] if each.year else [day.year - 1, day.year, day.year + 1]
    away = [abs((_make_date(year, each.month, each.day or day.day) - day).days) for year in years]
    if min(away) > DERIVED_DAYS:
        is_far = each.year is not None and float(abs(each.year - day.year)) in evidence.numbers
        return is_far and (evidence.is_relative or not evidence.months)
    if evidence.is_relative or min(away) <= 1:
        return True
    if each.day is None:
        return not evidence.months or each.month in evidence.months or each.month == day.month
    # If the sources name days, the date is one of them, or a day that they give without a month.
    named = {each_day for _, each_day in evidence.days}
    return (each.month, each.day) in evidence.days or not named or float(each.day) in evidence.numbers - named


def _make_date(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except ValueError:
        return date(year, month, 28)


def _normalise_text(text: str) -> str:
    """Rewrite dates such as 17.06.2026 as 2026-06-17 and split words at hyphens."""
    return _HYPHEN.sub(" ", _DAY_FIRST.sub(_rewrite_date, text))


def _rewrite_date(match: re.Match[str]) -> str:
    day, month, year = (int(part) for part in match.groups())
    if month > 12:
        day, month = month, day
    return f"{year:04}-{month:02}-{day:02}" if 1 <= month <= 12 and 1 <= day <= 31 else match[0]


def _find_spelling(word: str, text: str) -> str:
    found = re.search(rf"(?<!\w){re.escape(word)}", fold_characters(text), re.IGNORECASE)
    return found[0] if found else word
