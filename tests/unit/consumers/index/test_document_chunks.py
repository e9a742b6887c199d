"""Chunks of documents, which are split in windows: nearly the same as from a split of the whole text."""

import asyncio
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semantic_text_splitter import MarkdownSplitter, TextSplitter

from mnemon_consumers.index.decide import IndexedDocument
from mnemon_consumers.index.document_chunks import CHUNK, MARKDOWN_WINDOW, WINDOW, split_chunks
from mnemon_consumers.index.point_writer import build_document_items
from mnemon_contracts.events.memory import DocumentAddedV1
from tests.support.hypothesis_profiles import scale_examples

WORDS = ("the", "keeper.", "walks!", "привет", "мир.", "这是文本。", "-", "x", "", "#", "a" * 100)
BETWEEN = (" ", "\n", "\n\n", "\n\n\n", "", "  ")

Part = tuple[str, str, int]

parts = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from(BETWEEN), st.integers(1, 300)), min_size=1, max_size=8
)


def text_of(parts: list[Part]) -> str:
    return "".join((word + between) * times for word, between, times in parts)


@pytest.mark.parametrize(("source", "window"), [(None, WINDOW), ("notes.md", MARKDOWN_WINDOW)])
@given(parts=parts)
def test_a_text_that_fits_a_window_is_split_as_a_whole(
    source: str | None, window: int, parts: list[Part]
) -> None:
    text = text_of(parts)[:window]
    splitter = MarkdownSplitter(CHUNK) if source else TextSplitter(CHUNK)
    whole = [(at, at + len(piece), piece) for at, piece in splitter.chunk_indices(text)]
    assert list(split_chunks(text, source)) == whole


def test_prose_longer_than_a_window_is_split_as_a_whole() -> None:
    sentences = (f"In year {year} the keeper counted {year % 97} ships." for year in range(1_000))
    text = "".join(each + ("\n\n" if place % 7 == 6 else " ") for place, each in enumerate(sentences))
    whole = [(at, at + len(piece), piece) for at, piece in TextSplitter(CHUNK).chunk_indices(text)]
    assert list(split_chunks(text, None)) == whole


@pytest.mark.parametrize("source", [None, "notes.md"])
@settings(max_examples=scale_examples(100))
@given(parts=parts)
def test_a_long_text_is_covered_without_gaps(source: str | None, parts: list[Part]) -> None:
    section = f"# Title\n\n{text_of(parts)[:20_000]}"
    text, end = section * (120_000 // len(section)), 0
    for chunk in split_chunks(text, source):
        assert chunk.start >= end
        assert not text[end : chunk.start].strip()
        assert text[chunk.start : chunk.end] == chunk.text
        assert len(chunk.text) <= CHUNK[1]
        end = chunk.end
    assert not text[end:].strip()


@pytest.mark.parametrize("text", ["", " ", "\n" * 3 * WINDOW])
def test_blank_document_has_no_chunks(text: str) -> None:
    assert list(split_chunks(text, None)) == []


def test_the_first_pieces_of_a_long_text_need_only_its_beginning() -> None:
    assert [chunk.text for chunk in islice(split_chunks("字" * 10**8, None), 2)] == ["字" * 300] * 2


async def test_event_loop_runs_other_tasks_while_a_long_document_is_split() -> None:
    read = IndexedDocument(("acme", "anna"), "e1", DocumentAddedV1(document_id="d", text="字" * 200_000))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    found = await build_document_items(read)
    counting.cancel()

    assert len(found) == 665
    assert turns >= 60
