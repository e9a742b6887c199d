"""Fenced code blocks of a Markdown page."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced code block.

    Attributes:
        language: word after the opening fence, such as `sh`; empty without one.
        text: the code.
        page: file of the page.
        line: number of the first line of the code in the page, from 1.
    """

    language: str
    text: str
    page: Path
    line: int

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Yield the code blocks of a page, from the top."""
    markdown = page.read_text(encoding="utf-8")
    for found in _FENCED.finditer(markdown):
        yield Block(found[1], found[2], page, markdown.count("\n", 0, found.start(2)) + 1)
