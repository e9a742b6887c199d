"""Statements of people about themselves. Precision comes before recall: unclear statements are left out."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

from mnemon_infra.models.language.offline.authorship import (
    find_other_person,
    is_about_other_person,
    is_disclaimed,
    is_labelled,
    list_sentences,
)
from mnemon_infra.models.language.offline.dates import (
    DateSpan,
    find_dates,
    names_departure,
    remove_dates,
    resolve_future_dates,
    write_dates,
)
from mnemon_infra.models.language.offline.rules import ENGLISH, RUSSIAN, ClauseForms, LanguageRules, Rule
from mnemon_infra.models.language.offline.sentences import Sentence, straighten_quotes
from mnemon_infra.models.language.port import PromptMessage

SHORTEST: Final = 12
"""Minimum characters of a fact without a name: a shorter statement gets the language's word for a user."""

LONGEST: Final = 240
"""Maximum number of characters of a statement, with the speaker's name if it becomes a fact."""

_ENDING: Final = " .!…,;:–—-"
_PRONOUN: Final = re.compile(r"(?:I|we)(?=[ '’])", re.IGNORECASE)

_HOUR: Final = re.compile(
    r"(?: (?:at|в|к) \d{1,2}(?:[:.]\d\d)?(?: ?[ap]m| утра| дня| вечера)?)?\s*", re.IGNORECASE
)
"""Hour that may follow a date: "on Friday at 10", or nothing."""


class UserStatement(NamedTuple):
    """A statement of a person about themselves.

    Attributes:
        text: the person's own words, with dates in brackets after words such as "yesterday".
        user: the language's word for a user.
        undated: the text without the words that name dates.
        ends_on: the first day on which the statement is no longer true; None if no end is known.
    """

    text: str
    user: str
    rule: Rule
    undated: str
    ends_on: date | None = None

    def write_fact(self, speaker: str | None) -> str:
        """Return the text of the statement, after the speaker's name if one is given.

        Without a speaker, a text of fewer than `SHORTEST` characters follows the language's word for a user.
        """
        if speaker is None and len(self.text) < SHORTEST:
            speaker = self.user
        return f"{speaker}: {self.text}" if speaker else self.text


class _Reference(NamedTuple):
    """The day of a message, and the date of a departure that the previous sentence names."""

    day: date
    departure: DateSpan | None

    def find_dates(self, text: str, rule: Rule) -> list[DateSpan]:
        return find_dates(text, self.day, rule.needs, self.departure)


def find_statements(message: PromptMessage) -> list[UserStatement]:
    """Return a message's statements about its author."""
    return [
        statement
        for sentence, is_own in list_sentences(message.text)
        if is_own
        for statement in match_sentence(sentence, message.at)
    ]


def find_departure(text: str, statements: Sequence[UserStatement], day: date) -> DateSpan | None:
    """Return the date of a plan to leave, from which a return in the next sentence is counted.

    Return None if the sentence has no such plan, or if the plan has no date.

    Args:
        text: the sentence.
        statements: the statements of the sentence.
        day: the day of the message.
    """
    if not statements or statements[-1].ends_on is None or not names_departure(text):
        return None
    named = find_dates(straighten_quotes(text), day, direction=1)
    return named[-1] if named else None


def match_sentence(
    sentence: Sentence, at: datetime, departure: DateSpan | None = None
) -> list[UserStatement]:
    """Return the statements of a sentence: none, one, or one for each clause that is complete alone.

    A joke, and a sentence of more than twice `LONGEST` characters, have no statements.

    Args:
        sentence: the sentence.
        at: the time of the message.
        departure: the date of a departure that the previous sentence names; None if it names none.
    """
    if len(sentence.text) > 2 * LONGEST:
        return []
    reference = _Reference(at.date(), departure)
    language = RUSSIAN if sentence.is_cyrillic else ENGLISH
    text = _trim_sentence(sentence.text, language)
    whole = _match_rules(text, reference, language)
    whole = whole or _match_remembered(sentence.text, text, reference, language)
    if whole is None or is_disclaimed(sentence.text, language):
        return []
    return _split_statement(text, reference, language) or [whole]


def _match_remembered(
    sentence: str, text: str, reference: _Reference, language: LanguageRules
) -> UserStatement | None:
    """Return the statement that a sentence asks to remember; None if it asks for nothing, or asks a question.

    Args:
        sentence: the whole sentence.
        text: the sentence without filler words, a request or a question at its ends.
        reference: the day of the message.
        language: the rules of the sentence.
    """
    plain, rule = straighten_quotes(sentence), language.remembered
    asked = rule.pattern.search(plain)
    if asked is None or asked.start() >= _find_content(plain, language) or text.endswith("?"):
        return None
    return _build_statement(
        text, reference.day, language, rule, reference.find_dates(straighten_quotes(text), rule)
    )


def _match_rules(
    text: str, reference: _Reference, language: LanguageRules, *, from_start: bool = False
) -> UserStatement | None:
    """Return the statement of a text; None for a question, a text over `LONGEST`, or if no rule matches.

    `from_start` ignores clauses that begin later in the text.
    """
    if text.endswith("?") or len(text) > LONGEST:
        return None
    plain, day = straighten_quotes(text), reference.day
    for rule in language.find_candidates(plain):
        begins = [match.start() for match in rule.pattern.finditer(plain)]
        if not begins:
            continue
        named = reference.find_dates(plain, rule)
        if rule.needs and not any(_is_in_direction(span, day, rule.needs) for span in named):
            continue
        if begins[0] == 0 or (
            not from_start and any(_begins_a_clause(plain, begin, named, language) for begin in begins)
        ):
            return _build_statement(text, day, language, rule, named)
    return None


def _build_statement(
    text: str, day: date, language: LanguageRules, rule: Rule, named: list[DateSpan]
) -> UserStatement | None:
    if rule.needs < 0:
        named = resolve_future_dates(straighten_quotes(text), named, day, language.future, language.past)
    shown = write_dates(text, named)
    ends_on = max(span.last for span in named) + timedelta(days=1) if rule.needs > 0 else None
    undated = remove_dates(straighten_quotes(text), named)
    return UserStatement(shown, language.user, rule, undated, ends_on) if len(shown) <= LONGEST else None


class _Clause(NamedTuple):
    """A part of a sentence that is a statement on its own: its text, and the statement read from the text."""

    text: str
    statement: UserStatement


def _split_statement(text: str, reference: _Reference, language: LanguageRules) -> list[UserStatement]:
    """Return the statements of a sentence's clauses; an empty list if the sentence is to stay whole.

    A clause that is no statement alone stays with the clause before it. The sentence stays whole if such a
    clause is the first, or follows "and" and is not the last; if a word or a mark such as a colon may bind
    clauses to each other; if a clause ends something; if two clauses name one property of the user; or if a
    date depends on a date in another clause.
    """
    plain, forms = straighten_quotes(text), language.clauses
    if any(mark in plain for mark in '"()[]?:') or forms.bound.search(plain) or language.hedge.search(plain):
        return []
    clauses: list[_Clause] = []
    parts = list(_split_parts(text, plain, forms.separator))
    for number, (part, separator) in enumerate(parts, 1):
        clause = _read_clause(part, clauses[-1] if clauses else None, reference, language)
        if clause is not None and not (separator and _continues_list(clauses, separator)):
            clauses.append(clause)
        elif not clauses or separator is None or (number < len(parts) and _has_word(separator)):
            return []  # "and my wife and I live in Rome"
        else:
            joined = f"{clauses[-1].text}{separator[0]}{part}"
            statement = _match_clause(joined, reference, language)
            if statement is None:
                return []
            clauses[-1] = _Clause(joined, statement)
    if not all(_keeps_dates(clause, plain, reference) for clause in clauses):
        return []
    found = [clause.statement for clause in clauses]
    slots = [statement.rule.slot for statement in found if statement.rule.slot]
    if len(found) < 2 or len(set(slots)) < len(slots) or any(statement.rule.ends for statement in found):
        return []
    return found


def _keeps_dates(clause: _Clause, sentence: str, reference: _Reference) -> bool:
    """Return whether the dates of a clause are the same without the rest of its sentence."""
    alone, within = (
        {span.shown for span in reference.find_dates(straighten_quotes(text), clause.statement.rule)}
        for text in (clause.text, sentence)
    )
    return alone <= within


def _split_parts(
    text: str, plain: str, pattern: re.Pattern[str]
) -> Iterator[tuple[str, re.Match[str] | None]]:
    """Yield the parts of a text between separators, each with the separator before it; None at the start."""
    begin, before = 0, None
    for separator in pattern.finditer(plain):
        yield text[begin : separator.start()], before
        begin, before = separator.end(), separator
    yield text[begin:], before


def _continues_list(clauses: list[_Clause], separator: re.Match[str]) -> bool:
    """Return whether "and" may end a list in the last clause: "tea, coffee and I have a dog"."""
    return "," in clauses[-1].text and _has_word(separator)


def _has_word(separator: re.Match[str]) -> bool:
    return separator[0].strip(" ,;") != ""


def _read_clause(
    part: str, before: _Clause | None, reference: _Reference, language: LanguageRules
) -> _Clause | None:
    """Return a part as a clause, with the subject that it may share with the clause before it.

    The result is None if the part is no statement alone.
    """
    text, forms = part.strip(_ENDING), language.clauses
    while before and (opening := language.opening.match(straighten_quotes(text))):
        text = text[opening.end() :]
    subject = _find_shared_subject(text, before, forms) if before else None
    shown = f"{subject}{text}" if subject else text[:1].upper() + text[1:] if before else text
    statement = _match_clause(shown, reference, language)
    if before is None and statement is None and forms.introduction.pattern.match(straighten_quotes(shown)):
        statement = _build_statement(shown, reference.day, language, forms.introduction, [])
    return _Clause(shown, statement) if statement else None


def _find_shared_subject(text: str, before: _Clause, forms: ClauseForms) -> str | None:
    """Return the pronoun that a text without a subject shares with the clause before it; None in doubt."""
    pronoun = _PRONOUN.match(before.text)
    if pronoun is None or not forms.shared.match(text):
        return None
    if "," in before.text or forms.unshared.search(straighten_quotes(f"{before.text} {text}")):
        return None
    return f"{pronoun[0]} "


def _match_clause(text: str, reference: _Reference, language: LanguageRules) -> UserStatement | None:
    plain = straighten_quotes(text)
    if not language.clauses.beginning.match(plain):
        return None
    return _match_rules(text, reference, language, from_start=True)


def _trim_sentence(text: str, language: LanguageRules) -> str:
    """Remove filler words at both ends of a sentence, and a request or question at its end."""
    plain = straighten_quotes(text)
    begin, end = _find_content(plain, language), len(text)
    if request := language.request.search(plain, begin):
        end = request.start()
    while closing := language.closing.match(plain, max(begin, plain.rfind(" ", begin, end)), end):
        end = closing.start()
    kept = text[begin:end].strip(_ENDING)
    return kept[:1].upper() + kept[1:] if begin else kept


def _find_content(text: str, language: LanguageRules) -> int:
    """Return the offset after the filler words at the beginning of a text."""
    begin = 0
    while opening := language.opening.match(text, begin):
        begin = opening.end()
    return begin


def _begins_a_clause(text: str, begin: int, named: list[DateSpan], language: LanguageRules) -> bool:
    """Return whether a clause about the author begins at an offset of a text."""
    before = text[:begin]
    if not before.strip():
        return True
    if before.count('"') % 2 or language.hedge.search(before) or is_labelled(before):
        return False
    other = find_other_person(before, language)
    if other and is_about_other_person(text[begin:], other, language):
        return False
    return language.joint.search(before) is not None or any(
        span.end <= begin and _HOUR.fullmatch(before, span.end) for span in named
    )


def _is_in_direction(span: DateSpan, day: date, direction: int) -> bool:
    return span.last >= day if direction > 0 else span.first <= day
