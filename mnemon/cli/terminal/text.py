"""Text from outside, made safe for a terminal."""

import re
from typing import Final

_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters but for tabs and newlines, and halves of characters, which no terminal takes."""


def make_printable(text: str) -> str:
    """What somebody said must not steer the terminal of who reads it, such as its title or its clipboard."""
    return _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))
