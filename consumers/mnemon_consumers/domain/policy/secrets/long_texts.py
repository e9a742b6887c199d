"""Detection of secrets in texts longer than a fact: a model's answer, the body of an event."""

import re
from collections.abc import Iterator
from typing import Final

from mnemon_consumers.domain.policy.secrets.detection import OVERLAP, READABLE, find_secret
from mnemon_contracts.settings.groups import Policy

LONGEST: Final = 200_000
"""Maximum number of characters of a text to examine, from its beginning."""

_LITERAL: Final = re.compile(r'"((?:[^"\\]|\\.){8,})"')
_ESCAPED: Final = re.compile(r'\\u([0-9a-fA-F]{4})|\\([nrt"/\\])')


def find_secret_in_long_text(text: str, policy: Policy) -> str | None:
    """Return the kind of secret that a text, or one of its JSON strings, holds.

    The first `LONGEST` characters of the text are examined. Each line, and each JSON string of at least 8
    characters, is examined separately too, because the quotation marks and keys around a string do not belong
    to its sentences.

    Returns:
        None if the text holds no secret, or the policy does not reject secrets.
    """
    for part in _split_parts(text[:LONGEST]):
        if (what := find_secret(part, policy)) is not None:
            return what
    return None


def _split_parts(text: str) -> Iterator[str]:
    readable = _ESCAPED.sub(_unescape_character, text)
    for literal in _LITERAL.finditer(text):
        yield _ESCAPED.sub(_unescape_character, literal[1])
    for start in range(0, max(len(readable), 1), READABLE - OVERLAP):
        yield readable[start : start + READABLE]
    if "\n" in readable:
        # A sentence may end at the end of a line, without a full stop.
        yield from readable.splitlines()


def _unescape_character(escaped: re.Match[str]) -> str:
    if escaped[1]:
        return chr(int(escaped[1], 16))
    return {"n": "\n", "r": "\n", "t": " "}.get(escaped[2], escaped[2])
