"""Text for a terminal: without control characters, and commands to type next."""

import os
import re
from typing import Final

_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters except tabs and newlines, and lone surrogates, which terminals cannot show."""


def make_printable(text: str) -> str:
    """Replace control characters, which could change the title or the clipboard of a terminal."""
    return _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def spell_command(command: str) -> str:
    """Return a command to type next; with the prefix `uv run` if this process was started that way."""
    return f"uv run {command}" if "UV" in os.environ else command
