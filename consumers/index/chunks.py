"""Cutting documents into pieces that can be found."""

from functools import cache
from typing import NamedTuple

from semantic_text_splitter import MarkdownSplitter, TextSplitter

CHUNK = 300, 900
"""Characters of a chunk: from this many, where a paragraph or a sentence ends, up to so many."""

_MARKDOWN = (".md", ".markdown", ".mdx")


class Chunk(NamedTuple):
    """A piece of a text, and where it lies in it, in characters."""

    start: int
    end: int
    text: str


def chunks(text: str, source: str | None) -> list[Chunk]:
    """The pieces of a document, in order; none of a blank one. Markdown is cut at its headings."""
    splitter = _markdown() if (source or "").lower().endswith(_MARKDOWN) else _plain()
    return [Chunk(start, start + len(piece), piece) for start, piece in splitter.chunk_indices(text)]


@cache
def _plain() -> TextSplitter:
    return TextSplitter(CHUNK)


@cache
def _markdown() -> MarkdownSplitter:
    return MarkdownSplitter(CHUNK)
