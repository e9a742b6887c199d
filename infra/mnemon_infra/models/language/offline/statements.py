"""Statements of people about themselves. Precision comes before recall: unclear statements are left out."""

from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

from mnemon_infra.models.language.offline.dates import DateSpan, find_dates, remove_dates, write_dates
from mnemon_infra.models.language.offline.rules import ENGLISH, RUSSIAN, LanguageRules, Rule
from mnemon_infra.models.language.offline.sentences import Sentence, split_sentences
from mnemon_infra.models.language.port import PromptMessage

SHORTEST: Final = 12
"""Minimum characters of a fact without a name: a shorter statement gets the language's word for a user."""

LONGEST: Final = 240
"""Maximum number of characters of a statement, with the speaker's name if it becomes a fact."""

_STRAIGHT: Final = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "«": '"', "»": '"', "„": '"'})
_ENDING: Final = " .!…,;:–—-"


class UserStatement(NamedTuple):
    """A statement of a person about themselves.

    Attributes:
        text: the person's own words, with dates in brackets after words such as "yesterday".
        user: the language's word for a user.
        undated: the text without the words that name dates.
        ends_on: the first day on which the statement no longer holds; None if no end is known.
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


def find_statements(message: PromptMessage) -> list[UserStatement]:
    """Return a message's statements about its author."""
    found = (_match_rules(sentence, message.at) for sentence in split_sentences(message.text))
    return [statement for statement in found if statement]


def _match_rules(sentence: Sentence, at: datetime) -> UserStatement | None:
    if len(sentence.text) > 2 * LONGEST:
        return None
    language = RUSSIAN if sentence.is_cyrillic else ENGLISH
    text = _trim_sentence(sentence.text, language)
    if text.endswith("?") or len(text) > LONGEST:
        return None
    plain, day = text.translate(_STRAIGHT), at.date()
    for rule in language.find_candidates(plain):
        begins = [match.start() for match in rule.pattern.finditer(plain)]
        if not begins:
            continue
        named = find_dates(plain, day, rule.needs)
        if rule.needs and not any(_is_in_direction(span, day, rule.needs) for span in named):
            continue
        if any(_begins_a_clause(plain[:begin], named, language) for begin in begins):
            shown = write_dates(text, named)
            ends_on = max(span.last for span in named) + timedelta(days=1) if rule.needs > 0 else None
            undated = remove_dates(plain, named)
            return (
                UserStatement(shown, language.user, rule, undated, ends_on) if len(shown) <= LONGEST else None
            )
    return None


def _trim_sentence(text: str, language: LanguageRules) -> str:
    """Remove filler words at the beginning of a sentence, and a request or question at its end."""
    plain = text.translate(_STRAIGHT)
    begin, end = 0, len(text)
    while opening := language.opening.match(plain, begin):
        begin = opening.end()
    if request := language.request.search(plain, begin):
        end = request.start()
    kept = text[begin:end].strip(_ENDING)
    return kept[:1].upper() + kept[1:] if begin else kept


def _begins_a_clause(before: str, named: list[DateSpan], language: LanguageRules) -> bool:
    if not before.strip():
        return True
    if before.count('"') % 2 or language.hedge.search(before):
        return False
    return language.joint.search(before) is not None or any(
        span.end == len(before.rstrip()) for span in named
    )


def _is_in_direction(span: DateSpan, day: date, direction: int) -> bool:
    return span.last >= day if direction > 0 else span.first <= day
