"""Text from outside, made safe for a terminal."""

import re
from typing import Final

_STEERING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters but for tabs and newlines, and halves of characters, which no terminal takes."""


def printable(text: str) -> str:
    """What somebody said must not steer the terminal of who reads it, such as its title or its clipboard."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))
