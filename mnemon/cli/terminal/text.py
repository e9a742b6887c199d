"""Text from outside, made safe for a terminal."""

import re
from typing import Final

_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters except tabs and newlines, and lone surrogates, which terminals cannot show."""


def make_printable(text: str) -> str:
    """Replace control characters, which could change the title or the clipboard of a terminal."""
    return _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))
