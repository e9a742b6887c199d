"""Removal of the thoughts that a model writes before its answer, from a streamed answer."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

BEGIN: Final = "<think>"
END: Final = "</think>"


async def strip_thoughts(pieces: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    """Yield the pieces of an answer without the thoughts before it, between `<think>` and `</think>`."""
    waiting = ""
    async for piece in pieces:
        waiting += piece
        begun = waiting.lstrip()
        if begun.startswith(BEGIN):
            _, is_over, rest = begun.partition(END)
            if not is_over:
                continue
            waiting = rest
        elif BEGIN.startswith(begun):  # the text may become the tag
            continue
        if answer := waiting.lstrip():
            yield answer
            break
    else:
        if (answer := waiting.lstrip()) and not answer.startswith(BEGIN):  # the tag has not been completed
            yield answer
    async for piece in pieces:
        yield piece
