"""Aliases: names by which the speakers of a conversation of two address each other. No I/O, no clock."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from mnemon_consumers.domain.alignment.morphology import normalize
from mnemon_consumers.retrieve.search.names import is_same_name

REGULAR: Final = 3
"""Minimum number of messages of one speaker that address the other by a name."""

LOOKED_AT: Final = 2_000
"""Maximum number of characters of a message to read, from its beginning."""

_GREETING: Final = (
    r"(?i:hey|hi|hiya|hello|yo|dear|thanks|thank you|thx|good (?:morning|afternoon|evening|night)|bye|goodbye"
    r"|see you|sorry|wow|congrats|congratulations|welcome back"
    r"|привет|приветик|здравствуй|здравствуйте|доброе утро|добрый (?:день|вечер)|спасибо|пока|извини|прости"
    r"|дорогая|дорогой|слушай|поздравляю)"
)
_NAME: Final = r"(?P<name>[A-ZА-Я][^\W\d_]+)"
_GREETED: Final = re.compile(rf"\b{_GREETING},?\s+{_NAME}(?=\s*(?:[,.!?:;)\n]|\Z))")
"""A name after a greeting: "Hey Kate.", "Спасибо, Катя!"."""

_LAST: Final = re.compile(rf"(?<=[^\W\d_]),?\s+{_NAME}\s*(?:[.!?]+|\Z)")
"""A name at the end of a sentence: "I'm doing well Kate". It may be a place: it only confirms a greeting."""

_FIRST: Final = re.compile(rf"(?:\A|[.!?]\s+){_NAME},\s")
"""A name before a comma: "Kate, are you there?". It may be another word, so it only confirms a greeting."""

_NO_NAMES: Final = """
there all everyone everybody guys folks again you both god everything so much yes no ok okay well
всем всех все вам тебе большое бог боже что как
"""
_OTHERS: Final = frozenset(_NO_NAMES.split())
"""Words after a greeting that are no name."""


def find_aliases(messages: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Return the speaker whom each alias means, for a conversation of two.

    If one speaker regularly addresses the other by a name that fits neither of the two, that name is an
    alias of the other. Conversations of fewer or more speakers have no aliases.

    Args:
        messages: speaker and text of each message.
    """
    texts: dict[str, list[str]] = {}
    for speaker, text in messages:
        texts.setdefault(speaker, []).append(normalize(text[:LOOKED_AT]))
    if len(texts) != 2:
        return MappingProxyType({})
    one, other = texts
    spoken = {speaker: _list_addresses(texts[speaker]) for speaker in texts}
    aliases = {
        name: addressed
        for speaker, addressed in ((one, other), (other, one))
        for name in spoken[speaker]
        if name not in spoken[addressed] and not any(is_same_name(name, each) for each in texts)
    }
    return MappingProxyType(aliases)


def _list_addresses(texts: Iterable[str]) -> list[str]:
    """Return the names that regularly address the reader of these messages, the most frequent first."""
    greeted: set[str] = set()
    counts: Counter[str] = Counter()
    for text in texts:
        found = {each["name"] for each in _GREETED.finditer(text)}
        greeted |= found
        counts.update(
            found.union(each["name"] for pattern in (_LAST, _FIRST) for each in pattern.finditer(text))
        )
    return [
        name
        for name, count in counts.most_common()
        if count >= REGULAR and name in greeted and name.lower() not in _OTHERS
    ]
