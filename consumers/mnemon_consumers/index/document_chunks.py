"""Chunks: splits documents into pieces that can be searched."""

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from semantic_text_splitter import MarkdownSplitter, TextSplitter

CHUNK: Final = 300, 900
"""Desired minimum and maximum number of characters of a chunk. From the minimum on, a chunk may end with a
paragraph or a sentence. A chunk may be shorter than the minimum, for example before a long paragraph."""

WINDOW: Final = 4_000
MARKDOWN_WINDOW: Final = 100_000
"""Number of characters to split at a time. This takes some milliseconds, or 0.3 s for Markdown without line
breaks: the run time of the splitter grows faster than the number.
"""

_MARKDOWN: Final = (".md", ".markdown", ".mdx")


class Chunk(NamedTuple):
    """A piece of a text; `start` and `end` are offsets in the text, in characters."""

    start: int
    end: int
    text: str


def split_chunks(text: str, source: str | None) -> Iterator[Chunk]:
    """Yield the chunks of a document, in order; a blank document has no chunks.

    A document whose `source` ends in a Markdown extension, such as `.md`, is cut at headings.
    The generator splits the document part by part, so the time until the next chunk does not grow with the
    document.
    """
    is_markdown = (source or "").lower().endswith(_MARKDOWN)
    splitter, window = (
        (_open_markdown_splitter(), MARKDOWN_WINDOW) if is_markdown else (_open_plain_splitter(), WINDOW)
    )
    begin = 0
    while begin < len(text):
        found = splitter.chunk_indices(text[begin : begin + window])
        # A chunk that may continue beyond the split text is not final: the next part begins with it.
        whole = [each for each in found if begin + window >= len(text) or each[0] + CHUNK[1] < window]
        yield from (Chunk(begin + start, begin + start + len(piece), piece) for start, piece in whole)
        begin += found[len(whole)][0] if len(whole) < len(found) else window


@cache
def _open_plain_splitter() -> TextSplitter:
    return TextSplitter(CHUNK)


@cache
def _open_markdown_splitter() -> MarkdownSplitter:
    return MarkdownSplitter(CHUNK)
