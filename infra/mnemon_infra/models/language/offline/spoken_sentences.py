"""Sentences of the users of a window, with the corrections that the same users made."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mnemon_infra.models.language.offline.authorship import list_sentences, takes_back
from mnemon_infra.models.language.offline.corrections import (
    ValueCorrection,
    correct_own_values,
    find_correction,
)
from mnemon_infra.models.language.offline.dates import DateSpan
from mnemon_infra.models.language.offline.sentences import Sentence, split_sentences
from mnemon_infra.models.language.offline.statements import UserStatement, find_departure, match_sentence
from mnemon_infra.models.language.port import PromptMessage

MOST_SENTENCES: Final = 50
"""Maximum number of a user's last sentences that a correction is compared with, to find the wrong value."""


class SourcedStatement(NamedTuple):
    """A statement, with the numbers of its own message and of the messages that have corrected it."""

    statement: UserStatement
    numbers: tuple[int, ...]


@dataclass(slots=True)
class SpokenSentence:
    """A sentence of a user.

    Attributes:
        sentence: the sentence, with corrections applied.
        number: the number of its message, from 1.
        message: the message.
        departure: the date of a departure that the previous sentence of the same user names.
        statements: the statements in the sentence.
        correction: the correction that the sentence makes, also if it is not applied; None if there is none,
            or if the sentence does not make it clear.
        is_applied: True if the sentence corrected another sentence or a known fact, and so makes no statement
            of its own.
    """

    sentence: Sentence
    number: int
    message: PromptMessage
    departure: DateSpan | None = None
    statements: list[SourcedStatement] = field(default_factory=list)
    correction: ValueCorrection | None = None
    is_applied: bool = False


def read_sentences(messages: Sequence[PromptMessage]) -> list[SpokenSentence]:
    """Return the sentences of users in order, without those that only corrected another sentence."""
    spoken: list[SpokenSentence] = []
    for number, message in enumerate(messages, 1):
        if message.role != "user":
            continue
        for sentence, is_own in list_sentences(message.text):
            if takes_back(sentence):
                _take_back(message, spoken)
            said = SpokenSentence(sentence, number, message)
            if is_own:
                said.correction = find_correction(sentence.text, is_cyrillic=sentence.is_cyrillic)
                said.is_applied = _correct_earlier_sentence(said, spoken, messages)
                if not said.is_applied:
                    said.departure = _find_departure(message, spoken)
                    _find_own_statements(said)
            spoken.append(said)
    return [said for said in spoken if not said.is_applied]


def _find_own_statements(said: SpokenSentence) -> None:
    """Store the statements of a sentence in `said.statements`.

    If the sentence corrects a value of its own ("in June, sorry, July"), `said.sentence` becomes the
    corrected sentence, and the statements are those of the corrected sentence.
    """
    sentence, at = said.sentence, said.message.at
    statements = match_sentence(sentence, at, said.departure)
    text = (
        correct_own_values(sentence.text, is_cyrillic=sentence.is_cyrillic) if statements else sentence.text
    )
    if text != sentence.text:
        said.sentence = sentence._replace(text=text)
        statements = match_sentence(said.sentence, at, said.departure)
    said.statements = [SourcedStatement(statement, (said.number,)) for statement in statements]


def _find_departure(message: PromptMessage, spoken: Sequence[SpokenSentence]) -> DateSpan | None:
    """Return the departure date that the last sentence of a message's author names; None if it names none."""
    for said in reversed(spoken):
        if said.message.name == message.name and not said.is_applied:
            statements = [found.statement for found in said.statements]
            return find_departure(said.sentence.text, statements, said.message.at.date())
    return None


def _take_back(message: PromptMessage, spoken: Sequence[SpokenSentence]) -> None:
    """Remove the statements of the sentence that the author of `message` wrote last."""
    for said in reversed(spoken):
        if said.message.name == message.name:
            said.statements = []
            return


def _correct_earlier_sentence(
    said: SpokenSentence, spoken: Sequence[SpokenSentence], messages: Sequence[PromptMessage]
) -> bool:
    """Apply the correction of a sentence to the only earlier sentence of the same user that it concerns.

    Return False if the sentence has no correction, or if the correction is doubtful and not applied: for
    example, it concerns several sentences, or may answer the assistant.
    """
    correction = said.correction
    if correction is None:
        return False
    own = [other for other in spoken if other.message.name == said.message.name and not other.is_applied]
    own = own[-1:] if correction.old is None else own[-MOST_SENTENCES:]
    concerned = [other for other in own if correction.may_concern(other.sentence.text)]
    if len(concerned) != 1 or not concerned[0].statements:
        return False
    other = concerned[0]
    if correction.names_a_day and said.message.at.date() != other.message.at.date():
        return False
    text = correction.apply(other.sentence.text)
    if text is None or correction.may_answer(list_answers(messages[other.number : said.number - 1])):
        return False
    sentence = other.sentence._replace(text=text)
    statements = match_sentence(sentence, other.message.at, other.departure)
    if [found.rule for found in statements] != [found.statement.rule for found in other.statements]:
        return False
    other.sentence = sentence
    other.statements = [
        former if former.statement == found else SourcedStatement(found, (*former.numbers, said.number))
        for former, found in zip(other.statements, statements, strict=True)
    ]
    return True


def list_answers(messages: Sequence[PromptMessage]) -> list[Sentence]:
    """Return the sentences of the assistant in these messages."""
    return [
        sentence
        for message in messages
        if message.role == "assistant"
        for sentence in split_sentences(message.text)
    ]
