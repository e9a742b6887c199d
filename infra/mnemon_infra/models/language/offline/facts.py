"""Facts found by rules, in the form of a model's answer."""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from mnemon_infra.models.language.offline.changes import (
    KnownStatement,
    find_replaced_fact,
    is_known,
    remove_speaker,
)
from mnemon_infra.models.language.offline.corrections import ValueCorrection
from mnemon_infra.models.language.offline.sentences import Sentence
from mnemon_infra.models.language.offline.spoken_sentences import SpokenSentence, list_answers, read_sentences
from mnemon_infra.models.language.offline.statements import LONGEST, UserStatement, match_sentence
from mnemon_infra.models.language.port import PromptFact, PromptMessage

RECENT: Final = timedelta(days=1)
"""Maximum age of a known fact that a correction without a topic, or with a weekday as new value, can change.

A correction without a topic is, for example, "sorry, July, not June".
"""

MOST_CORRECTIONS: Final = 5
"""Maximum number of corrections of a window that are compared with known facts."""

_DATES: Final = re.compile(r" \(\d{4}(?:-\d\d){0,2}(?:/\d{4}-\d\d-\d\d)?\)")


class _FoundStatement(NamedTuple):
    """A statement with the numbers of its messages, from 1, and the number of its sentence.

    `speaker` is the name of the author if several people speak and the author has a name; else None.
    """

    statement: UserStatement
    numbers: tuple[int, ...]
    speaker: str | None
    sentence: int

    @property
    def place(self) -> tuple[str, str | None] | None:
        slot = self.statement.rule.slot
        return (slot, self.speaker) if slot else None


def find_facts(messages: Sequence[PromptMessage], known: Sequence[PromptFact]) -> list[dict[str, Any]]:
    """Return users' new statements about themselves, and known facts that users have corrected.

    The facts are JSON objects of the form that a prompt asks for.
    """
    kept: list[tuple[_FoundStatement, KnownStatement]] = []
    facts_known = [KnownStatement.from_fact(fact) for fact in known]
    sentences = read_sentences(messages)
    corrected = _correct_known_facts(sentences, messages, known)
    for found in _find_statements(sentences, messages):
        # The clauses of one sentence say different things: "I love my dog and my dog loves me".
        earlier = [comparable for other, comparable in kept if other.sentence != found.sentence]
        if is_known(found.statement, facts_known) or is_known(found.statement, earlier):
            continue
        # The last statement counts for a slot with one value.
        kept = [(other, each) for other, each in kept if other.place is None or other.place != found.place]
        kept.append((found, KnownStatement.from_fact(PromptFact("", found.statement.text))))
    return [_build_fact(found, facts_known) for found, _ in kept] + corrected


def _find_statements(
    sentences: Sequence[SpokenSentence], messages: Sequence[PromptMessage]
) -> Iterator[_FoundStatement]:
    several = _have_several_authors(messages)
    for place, sentence in enumerate(sentences):
        if sentence.is_applied:
            continue
        name = sentence.message.name
        speaker = " ".join(name.split()) if several and name else None
        for statement, numbers in sentence.statements:
            if len(statement.write_fact(speaker)) <= LONGEST:
                yield _FoundStatement(statement, tuple(dict.fromkeys(numbers)), speaker, place)


def _build_fact(found_statement: _FoundStatement, known: Sequence[KnownStatement]) -> dict[str, Any]:
    statement, rule, speaker = (
        found_statement.statement,
        found_statement.statement.rule,
        found_statement.speaker,
    )
    return {
        "text": statement.write_fact(speaker),
        "memory_type": rule.kind,
        "importance": rule.importance,
        "tier": rule.tier,
        "expires_at": statement.ends_on.isoformat() if statement.ends_on else None,
        # If several people speak, the owner of the known facts is unknown.
        "supersedes": None if speaker else find_replaced_fact(statement, known),
        "sources": list(found_statement.numbers),
    }


def _have_several_authors(messages: Sequence[PromptMessage]) -> bool:
    return len({message.name for message in messages if message.role == "user"}) > 1


def _correct_known_facts(
    sentences: Sequence[SpokenSentence], messages: Sequence[PromptMessage], known: Sequence[PromptFact]
) -> list[dict[str, Any]]:
    """Return a fact for each known fact that a sentence of this window corrects, to supersede the known one.

    A correction concerns a known fact if it names the wrong value, no earlier message of the window has that
    value, and exactly one known fact has it. A correction without a topic must also be in the first message
    of the user, and must not be a possible answer to the assistant. Sentences that make such corrections are
    marked as applied.
    """
    if _have_several_authors(messages):
        return []  # the owner of the known facts is unknown
    facts: list[dict[str, Any]] = []
    first = next((number for number, message in enumerate(messages, 1) if message.role == "user"), 0)
    for said in [each for each in sentences if each.correction][:MOST_CORRECTIONS]:
        correction = said.correction
        if correction is None or correction.old is None or (correction.is_bare and said.number != first):
            continue
        before = messages[: said.number - 1]
        if any(correction.may_concern(message.text) for message in before):
            continue
        if correction.may_answer(list_answers(before)):
            continue
        concerned = [fact for fact in known if correction.may_concern(fact.text)]
        if len(concerned) == 1 and (fact := _correct_fact(correction, said, concerned[0])):
            said.is_applied = True
            facts.append(fact)
    return facts


def _correct_fact(
    correction: ValueCorrection, said: SpokenSentence, fact: PromptFact
) -> dict[str, Any] | None:
    """Return a known fact with a correction; None in doubt.

    The dates in brackets in the text of the fact depend on the day of its message, which is not known: the
    fact is corrected only if the day on which it was saved gives the same dates.
    """
    at = said.message.at
    is_recent = fact.saved_at is not None and timedelta() <= at - fact.saved_at <= RECENT
    if correction.names_a_day or ((correction.is_bare or correction.names_a_weekday) and not is_recent):
        return None
    former = remove_speaker(fact.text)
    words = _DATES.sub("", former)
    corrected = correction.apply(words)
    if corrected is None:
        return None
    is_cyrillic = said.sentence.is_cyrillic
    read = match_sentence(Sentence(words, is_cyrillic), fact.saved_at or at)
    written = match_sentence(Sentence(corrected, is_cyrillic), fact.saved_at or at)
    if [statement.text for statement in read] == [former] and len(written) == 1:
        found = _FoundStatement(written[0], (said.number,), None, 0)
        return {**_build_fact(found, ()), "supersedes": fact.id}
    if read or words != former:
        return None
    return {"text": corrected, "supersedes": fact.id, "sources": [said.number]}
