"""Summaries of the sentences that say most, in the words in which they were said."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import sqrt
from typing import Final, NamedTuple

from infra.models.language.port import Said
from infra.models.language.rules.changes import stems
from infra.models.language.rules.dates import dated, spans
from infra.models.language.rules.sentences import is_cyrillic, sentences
from infra.models.language.rules.statements import statements

MOST_WORDS: Final = 60
"""Of a summary."""

OF_A_SENTENCE: Final = 30
"""Words of a sentence that are shown: of a longer one, its beginning."""

LONGEST_WORD: Final = 8
"""Characters: where words are longer, or do not stand apart, so many count as one."""

_SENTENCES: Final = 2
"""Of a summary of messages; one of earlier summaries has as many as there is room for."""

_SPEAKERS: Final = {
    False: {"user": "User", "assistant": "Assistant"},
    True: {"user": "Пользователь", "assistant": "Ассистент"},
}
_SPEAKER: Final = re.compile(r"((?:User|Assistant|Пользователь|Ассистент)(?: \([^)]{1,60}\))?): ")
_NO_SPEECH: Final = re.compile(r"\((?:tools used|использованы): |\[\.\.\.\]$")
_NAME_OR_NUMBER: Final = re.compile(r"\d|(?<=\s)[A-ZА-ЯЁ]\w")
_OF_ONESELF: Final = re.compile(
    r"\b(?:I|my|me|we|our|я|мне|меня|мой|моя|мо[её]|мои|мы|у нас)\b", re.IGNORECASE
)
_END: Final = re.compile(r"[.!?…。！？؟।][\"'»”)]*$")

_USER: Final = 1.5
_STATEMENT: Final = 2.0
_DETAIL: Final = 1.2
_OFFER: Final = 0.5
_NEW: Final = 0.5


class _Unit(NamedTuple):
    """A sentence; `speaker` is how a summary names who said it, where that is known."""

    place: int
    speaker: str | None
    text: str
    stems: frozenset[int]
    worth: float

    @property
    def words(self) -> int:
        return _words(self.text)


def summary(said: Sequence[Said]) -> str:
    """One or two sentences of messages, or of earlier summaries (role `system`) as many as there is room for.

    They are those that tell most, the user's before others, and none says what another one does. There are at
    most `MOST_WORDS` words, and who said them.
    """
    of_messages = any(message.role in ("user", "assistant") for message in said)
    units = list(_units(said, of_messages))
    common = Counter(stem for unit in units for stem in unit.stems)
    ranked = sorted(units, key=lambda unit: (-_score(unit, common, len(units)), unit.place))
    chosen = _chosen(ranked, _SENTENCES if of_messages else len(units))
    return _written(sorted(chosen)) or "There were no words."


def _units(said: Sequence[Said], of_messages: bool) -> Iterator[_Unit]:
    names = _SPEAKERS[is_cyrillic(" ".join(message.text for message in said))]
    place = 0
    for message in said:
        if of_messages and message.role not in ("user", "assistant"):
            continue
        speaker = names.get(message.role)
        if speaker and message.name:
            speaker = f"{speaker} ({' '.join(message.name.split())})"
        told = [] if message.role == "assistant" else [each.text[:40] for each in statements(message)]
        for sentence in sentences(message.text):
            text = sentence.text
            if named := _SPEAKER.match(text) if not of_messages else None:
                speaker, text = named[1], text[named.end() :]
            if _NO_SPEECH.match(text) or not any(character.isalpha() for character in text):
                continue
            shown = dated(text, spans(text, message.at.date())) if of_messages else text
            worth = _worth(message, text, sentence.is_question)
            if any(statement in shown for statement in told):
                worth *= _STATEMENT
            yield _Unit(place, speaker, _clipped(shown), stems(text), worth)
            place += 1


def _worth(message: Said, text: str, is_question: bool) -> float:
    worth = _USER if message.role == "user" else _OFFER if is_question else 1.0
    return worth * _DETAIL ** sum(bool(detail.search(text)) for detail in (_NAME_OR_NUMBER, _OF_ONESELF))


def _score(unit: _Unit, common: Counter[int], units: int) -> float:
    """How much a sentence tells: by its rarer and its shared words, and the newer the more."""
    shared = sum(1 + min(common[stem] - 1, 3) / 2 for stem in unit.stems)
    return unit.worth * shared / sqrt(unit.words + 6) * (1 + _NEW * unit.place / units)


def _chosen(ranked: Sequence[_Unit], most: int) -> list[_Unit]:
    chosen: list[_Unit] = []
    for unit in ranked:
        room = MOST_WORDS - sum(other.words for other in chosen)
        if (
            len(chosen) < most
            and unit.words <= room
            and not any(_say_the_same(unit, each) for each in chosen)
        ):
            chosen.append(unit)
    return chosen


def _say_the_same(one: _Unit, other: _Unit) -> bool:
    return 2 * len(one.stems & other.stems) > min(len(one.stems), len(other.stems))


def _words(text: str) -> int:
    return max(len(text.split()), len(text) // LONGEST_WORD)


def _clipped(text: str) -> str:
    if _words(text) <= OF_A_SENTENCE:
        return text if _END.search(text) else f"{text}."
    beginning = " ".join(text.split()[:OF_A_SENTENCE])[: OF_A_SENTENCE * LONGEST_WORD - 1]
    return f"{beginning.rstrip(' ,;:–—-.…')}…"


def _written(units: Sequence[_Unit]) -> str:
    parts = []
    for speaker, spoken in groupby(units, key=lambda unit: unit.speaker):
        text = " ".join(unit.text for unit in spoken)
        parts.append(f"{speaker}: {text}" if speaker else text)
    return " ".join(parts)
