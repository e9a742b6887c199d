"""Blocks of code of a page in Markdown."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Code between two fences.

    Attributes:
        language: as it says behind the first of them, such as `sh`.
        text: the code.
        page: the file.
        line: where its text begins, from 1.
    """

    language: str
    text: str
    page: Path
    line: int

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, from its top."""
    markdown = page.read_text(encoding="utf-8")
    for found in _FENCED.finditer(markdown):
        yield Block(found[1], found[2], page, markdown.count("\n", 0, found.start(2)) + 1)
