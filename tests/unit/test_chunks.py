"""Documents in pieces: the same as when they are split as a whole, without the time that this takes."""

import asyncio
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semantic_text_splitter import MarkdownSplitter, TextSplitter

from consumers.index.chunks import CHUNK, WINDOW, chunks
from consumers.index.decide import Read
from consumers.index.writing import document
from contracts.memory import DocumentAddedV1

WORDS = ("the", "keeper.", "walks!", "привет", "мир.", "这是文本。", "-", "x", "", "#", "a" * 100)
BETWEEN = (" ", "\n", "\n\n", "\n\n\n", "", "  ")

Part = tuple[str, str, int]

parts = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from(BETWEEN), st.integers(1, 300)), min_size=1, max_size=8
)


def text_of(parts: list[Part]) -> str:
    return "".join((word + between) * times for word, between, times in parts)


@settings(deadline=None)
@given(parts)
def test_pieces_are_those_of_the_whole(parts: list[Part]) -> None:
    text = text_of(parts)
    whole = [(start, start + len(piece), piece) for start, piece in TextSplitter(CHUNK).chunk_indices(text)]
    assert list(chunks(text, None)) == whole


@settings(deadline=None)
@given(parts)
def test_markdown_that_fits_a_window_is_split_as_a_whole(parts: list[Part]) -> None:
    text = text_of(parts)[:100_000]
    whole = [(at, at + len(piece), piece) for at, piece in MarkdownSplitter(CHUNK).chunk_indices(text)]
    assert list(chunks(text, "notes.md")) == whole


@settings(deadline=None)
@given(parts)
def test_long_markdown_is_covered_without_gaps(parts: list[Part]) -> None:
    section = f"# Title\n\n{text_of(parts)[:20_000]}"
    text, end = section * (120_000 // len(section)), 0
    for chunk in chunks(text, "notes.md"):
        assert chunk.start >= end
        assert not text[end : chunk.start].strip()
        assert text[chunk.start : chunk.end] == chunk.text
        end = chunk.end
    assert not text[end:].strip()


@pytest.mark.parametrize("text", ["", " ", "\n" * 3 * WINDOW])
def test_a_blank_document_has_none(text: str) -> None:
    assert list(chunks(text, None)) == []


def test_the_first_pieces_of_a_long_text_need_only_its_beginning() -> None:
    assert [chunk.text for chunk in islice(chunks("字" * 10**8, None), 2)] == ["字" * 300] * 2


async def test_others_have_their_turn_while_a_long_document_is_cut() -> None:
    read = Read(("acme", "anna"), "e1", DocumentAddedV1(document_id="d", text="字" * 200_000))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    found = await document(read)
    counting.cancel()

    assert len(found) == 665
    assert turns >= 60
