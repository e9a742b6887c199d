"""Text for people: printable text, commands to type next, and counts with their nouns."""

import os
import re
from pathlib import Path
from shlex import quote
from typing import Final

_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters other than tab and newline; also lone surrogates, which terminals cannot show."""

_FINAL_Y: Final = re.compile(r"(?<![aeiou])y$")
_PLURAL_VERBS: Final = {"": "", "is": "are", "was": "were"}


def make_printable(text: str) -> str:
    """Replace control characters, which could change the title or the clipboard of a terminal.

    Lone surrogates are replaced too. Tabs and newlines stay; a carriage return before a newline is removed.
    """
    return _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def spell_command(command: str) -> str:
    """Return a command to type next; with the prefix `uv run` if `uv` started this process."""
    return f"uv run {command}" if "UV" in os.environ else command


def format_data_option(data: Path | None) -> str:
    """Return ` --data DIR`, which names the folder of a stack at the end of a command; empty for None."""
    return "" if data is None else f" --data {quote(str(data))}"


def format_count(count: int, noun: str, verb: str = "") -> str:
    """Format a count with a noun and, if given, the verb `is` or `was`: `1 event is`, `2,000 events are`.

    The plural of the noun is formed with an s; `entry` becomes `entries`.
    """
    if count == 1:
        return f"1 {noun} {verb}".rstrip()
    plural = _FINAL_Y.sub("ie", noun)
    return f"{count:,} {plural}s {_PLURAL_VERBS[verb]}".rstrip()
