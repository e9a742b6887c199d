"""Names and numbers of a sentence, and the most informative part of a long sentence."""

import re
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

LONGEST_TOKEN: Final = 24
"""Maximum number of characters of a token.

A longer token, such as a sentence in a language without spaces, is split.
"""

_PART: Final = 12
"""Maximum number of characters of each part of a split token."""

_DETAIL_WEIGHT: Final = 4.0
_CONTENT_WEIGHT: Final = 1.0
_DATE_WEIGHT: Final = 2.0
_SHORT_WEIGHT: Final = 0.1
_BEGINNING_WEIGHT: Final = 2.0
_SHORTEST_CONTENT_WORD: Final = 4

_TOKEN: Final = re.compile(r"\S+")
_CORE: Final = re.compile(r"[\w№$€£₽][\w.,:/'’№$€£₽%°+-]*[\w%°$€£₽]|\w")
_CLOSED: Final = re.compile(r"[,.;:!?…)\]»”\"]+$")
_OPENS_A_SENTENCE: Final = re.compile(r"[.!?…:;][)\]»”\"']*$|^[—–-]$")
_DATED: Final = re.compile(r"\(\d{4}(?:-\d\d){0,2}(?:/\d{4}-\d\d-\d\d)?\)")
"""The date in brackets after a word such as "yesterday"."""

_FIRST_PERSON: Final = re.compile(r"I(?:['’](?:m|ve|d|ll|s))?$")
_UNIT: Final = re.compile(r"[^\W\d_]+[,.;:!?…)]*$")
_AROUND_EXCERPTS: Final = " ,;:–—-.…"
_END: Final = re.compile(r"[.!?…。！？؟।][\"'»”)]*$")


class Detail(NamedTuple):
    """A name, or a number with its unit.

    Attributes:
        text: the words as written, without punctuation around them.
        core: the name, or the number without its unit. A text shows the detail if it contains `core`.
    """

    text: str
    core: str


class TokenizedSentence(NamedTuple):
    """A sentence in tokens.

    Attributes:
        spans: begin and end of each token, in characters.
        weights: weight of each token in the choice of an excerpt.
        details: names and numbers of the sentence.
    """

    text: str
    spans: Sequence[tuple[int, int]]
    weights: Sequence[float]
    details: Sequence[Detail]

    @classmethod
    def from_text(cls, text: str, names: Collection[str] = ()) -> "TokenizedSentence":
        """Split a sentence into tokens; `names` count as names at the beginning of the sentence too."""
        spans = _split_tokens(text)
        tokens = [text[start:end] for start, end in spans]
        found = _find_details(tokens, names)
        held = {place for places, _ in found for place in places}
        weights = [
            _DETAIL_WEIGHT if place in held else _weigh_token(token) for place, token in enumerate(tokens)
        ]
        return cls(text, spans, weights, [detail for _, detail in found])

    @property
    def words(self) -> int:
        return len(self.spans)

    def clip(self, max_words: int) -> str:
        """Return the sentence, or its most informative part of at most `max_words` consecutive words.

        A part has `…` where words are left out, and at its end unless it ends with a mark such as `?`. A
        whole sentence without a mark at its end gets a period.
        """
        if self.words <= max_words:
            return self.text if _END.search(self.text) else f"{self.text}."
        weights = self.weights
        begin = max(
            range(self.words - max_words + 1),
            key=lambda place: (
                sum(weights[place : place + max_words]) + (_BEGINNING_WEIGHT if place == 0 else 0)
            ),
        )
        end = begin + max_words
        while end - begin > 1 and end < self.words and weights[end - 1] == _SHORT_WEIGHT:
            end -= 1
        while end - begin > 1 and begin and weights[begin] == _SHORT_WEIGHT:
            begin += 1
        excerpt = self.text[self.spans[begin][0] : self.spans[end - 1][1]].lstrip(_AROUND_EXCERPTS)
        if end < self.words or not _END.search(excerpt):
            excerpt = f"{excerpt.rstrip(_AROUND_EXCERPTS)}…"
        return f"{'…' if begin else ''}{excerpt}"


def find_names(texts: Collection[str]) -> frozenset[str]:
    """Return the names in sentences: runs of capitalised words that do not begin a sentence.

    Sentences mostly in capital letters, and names with a digit, are left out.
    """
    found = (detail.core for text in texts for detail in TokenizedSentence.from_text(text).details)
    return frozenset(core for core in found if not any(character.isdigit() for character in core))


def _split_tokens(text: str) -> list[tuple[int, int]]:
    spans = []
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        step = _PART if end - start > LONGEST_TOKEN else end - start
        spans += [(place, min(place + step, end)) for place in range(start, end, step)]
    return spans


def _find_details(tokens: Sequence[str], names: Collection[str]) -> list[tuple[range, Detail]]:
    """Return names and numbers in order, each with the indices of its tokens."""
    found: list[tuple[range, Detail]] = []
    shouts = sum(token.isupper() for token in tokens) * 2 > len(tokens) > 1
    place = 0
    while place < len(tokens):
        is_name = not shouts and _is_name(tokens, place, names)
        end = place
        while end < len(tokens) and (_is_name(tokens, end, names) if is_name else _is_number(tokens[end])):
            end += 1
            if _CLOSED.search(tokens[end - 1]):
                break
        if end == place:
            place += 1
            continue
        last = end
        if not is_name and end < len(tokens) and not _CLOSED.search(tokens[end - 1]):
            end += bool(_UNIT.match(tokens[end]))
        core = _strip_punctuation(tokens[place:last])
        if core:
            found.append((range(place, end), Detail(_strip_punctuation(tokens[place:end]), core)))
        place = end
    return found


def _is_name(tokens: Sequence[str], place: int, names: Collection[str]) -> bool:
    core = _strip_punctuation(tokens[place : place + 1])
    if not core[:1].isupper() or _FIRST_PERSON.match(core):
        return False
    begins = place == 0 or _OPENS_A_SENTENCE.search(tokens[place - 1]) is not None
    return core in names if begins else len(core) > 1


def _is_number(token: str) -> bool:
    return any(map(str.isdigit, token)) and not _DATED.match(token)


def _strip_punctuation(tokens: Sequence[str]) -> str:
    text = " ".join(tokens)
    found = list(_CORE.finditer(text))
    return text[found[0].start() : found[-1].end()] if found else ""


def _weigh_token(token: str) -> float:
    if _DATED.match(token):
        return _DATE_WEIGHT
    letters = sum(map(str.isalnum, token))
    return _CONTENT_WEIGHT + letters / 100 if letters >= _SHORTEST_CONTENT_WORD else _SHORT_WEIGHT
