"""Cutting documents into pieces that can be found."""

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from semantic_text_splitter import MarkdownSplitter, TextSplitter

CHUNK: Final = 300, 900
"""Characters of a chunk: from this many, where a paragraph or a sentence ends, up to so many."""

WINDOW: Final = 4_000
MARKDOWN_WINDOW: Final = 100_000
"""Characters that are split at a time: the splitter takes time by the square of them, some ms for these."""

_MARKDOWN: Final = (".md", ".markdown", ".mdx")


class Chunk(NamedTuple):
    """A piece of a text, and where it lies in it, in characters."""

    start: int
    end: int
    text: str


def chunks(text: str, source: str | None) -> Iterator[Chunk]:
    """The pieces of a document, in order; none of a blank one. Markdown is cut at its headings.

    They come as they are found: between two of them a few milliseconds pass, however long the document is.
    """
    is_markdown = (source or "").lower().endswith(_MARKDOWN)
    splitter, window = (_markdown(), MARKDOWN_WINDOW) if is_markdown else (_plain(), WINDOW)
    begin = 0
    while begin < len(text):
        found = splitter.chunk_indices(text[begin : begin + window])
        # What may go on beyond the window is not decided by it: the next window begins with that.
        whole = [each for each in found if begin + window >= len(text) or each[0] + CHUNK[1] < window]
        yield from (Chunk(begin + start, begin + start + len(piece), piece) for start, piece in whole)
        begin += found[len(whole)][0] if len(whole) < len(found) else window


@cache
def _plain() -> TextSplitter:
    return TextSplitter(CHUNK)


@cache
def _markdown() -> MarkdownSplitter:
    return MarkdownSplitter(CHUNK)
