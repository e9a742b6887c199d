"""Sentence splitting of messages, in any language."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

import sentencex

_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED: Final = re.compile(r"^\s*>.*$", re.MULTILINE)
_BREAK: Final = re.compile(
    # Emoji and the brackets that Russians smile with end sentences in a chat.
    "[\n\r]+|[\u2600-\u27bf\U0001f000-\U0001faff\u200d\ufe0f]+|(?<=[\\w.!?…])\\s*\\){2,}|\\s[:;=][-']?[)(DPp/]+(?=\\s|$)"
    "|(?<=[!?][!?])\\s+"
)
_LONE_BRACKET: Final = re.compile(r"(?<=[^\W\d_]{2})[()]+(?=\s|$)")
"""Brackets after a word, which are a smile or a sad face if the line has no bracket of the other kind."""
_LIST_MARK: Final = re.compile(r"^(?:[-*•–—]|\d{1,2}[.)])\s+")
_CYRILLIC: Final = re.compile("[А-Яа-яЁё]")
_LATIN: Final = re.compile("[A-Za-z]")
_QUESTION: Final = re.compile(r"[?？؟][\s!?.…)\]}\"'»”]*$")

_STRAIGHT: Final = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "«": '"', "»": '"', "„": '"'})

LONGEST: Final = 20_000
"""Maximum number of characters of a text that are split into sentences; the rest is ignored."""


def straighten_quotes(text: str) -> str:
    """Return a text of the same length with typewriter apostrophes and quotation marks."""
    return text.translate(_STRAIGHT)


class Sentence(NamedTuple):
    """A sentence, with each run of white space replaced by one space.

    `is_cyrillic` is True if the sentence has more Cyrillic letters than Latin ones.
    """

    text: str
    is_cyrillic: bool

    @property
    def is_question(self) -> bool:
        return _QUESTION.search(self.text) is not None


def is_cyrillic(text: str) -> bool:
    """Return whether a text has more Cyrillic letters than Latin ones."""
    return len(_CYRILLIC.findall(text)) > len(_LATIN.findall(text))


def split_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text in order, without fenced code and lines quoted by `>`.

    Only the first `LONGEST` characters of the text are read.
    """
    prose = _QUOTED.sub("", _CODE.sub("\n", text[:LONGEST]))
    for part in chain.from_iterable(map(_split_at_smiles, _BREAK.split(prose))):
        line = _LIST_MARK.sub("", " ".join(part.split()))
        if line:
            cyrillic = is_cyrillic(line)
            for segment in sentencex.segment("ru" if cyrillic else "en", line):
                if sentence := segment.strip():
                    yield Sentence(sentence, is_cyrillic(sentence))


def _split_at_smiles(line: str) -> list[str]:
    return [line] if ("(" in line) == (")" in line) else _LONE_BRACKET.split(line)
