"""What a model that thinks aloud writes before its answer, taken out of an answer that is still coming."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

BEGIN: Final = "<think>"
END: Final = "</think>"


async def without_thoughts(pieces: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    """The pieces of an answer, without what stands between `<think>` and `</think>` before it."""
    waiting = ""
    async for piece in pieces:
        waiting += piece
        begun = waiting.lstrip()
        if begun.startswith(BEGIN):
            _, is_over, rest = begun.partition(END)
            if not is_over:
                continue
            waiting = rest
        elif BEGIN.startswith(begun):  # it may become one
            continue
        if answer := waiting.lstrip():
            yield answer
            break
    async for piece in pieces:
        yield piece
