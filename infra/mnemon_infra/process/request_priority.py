"""Who asks goes first: background work that shares an event loop with the answers gives way to them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from weakref import WeakKeyDictionary

PATIENCE = 0.02
"""Seconds that a piece of background work waits at most: it goes on, however much is asked."""

REST = 0.003
"""Seconds after an answer that nothing else is begun in: whoever got it may ask again at once."""


class _Front:
    """What is being answered on one event loop, and who waits for the end of it."""

    def __init__(self) -> None:
        self.requests = 0
        self.answered_at = -REST
        self.quiet = asyncio.Event()
        self.quiet.set()
        self.turn = asyncio.Lock()

    def left(self) -> float:
        """Seconds of `REST` that are left."""
        return self.answered_at + REST - asyncio.get_running_loop().time()

    async def rested(self) -> None:
        """Wait until nothing is asked, and has not been for `REST`."""
        while (left := self.left()) > 0 or self.requests:
            await (self.quiet.wait() if self.requests else asyncio.sleep(left))


_fronts: WeakKeyDictionary[asyncio.AbstractEventLoop, _Front] = WeakKeyDictionary()


def _front() -> _Front:
    loop = asyncio.get_running_loop()
    front = _fronts.get(loop)
    if front is None:
        front = _fronts[loop] = _Front()
    return front


@contextmanager
def answering() -> Iterator[None]:
    """Have background work give way as long as the block lasts."""
    front = _front()
    front.requests += 1
    front.quiet.clear()
    try:
        yield
    finally:
        front.requests -= 1
        if not front.requests:
            front.answered_at = asyncio.get_running_loop().time()
            front.quiet.set()


async def give_way() -> None:
    """Wait while something is being answered, `PATIENCE` at most: to be called before each piece of work.

    One piece is let on at a time, and what came in meanwhile is seen before the next: all that waits would
    otherwise go on at once, and whoever asks then would wait for all of it.
    """
    front = _front()
    async with front.turn:
        await asyncio.sleep(0)
        if not front.requests and front.left() <= 0:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await front.rested()
