"""Priority of requests: background work on the same event loop waits while requests are answered."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from weakref import WeakKeyDictionary

LONGEST_WAIT = 0.02
"""Maximum seconds that a piece of background work waits for requests, once it is the next piece."""

REST = 0.003
"""Seconds after an answer for which background work waits, because the client may ask again at once.

`LONGEST_WAIT` bounds the wait.
"""


class _Front:
    """State of one event loop: the requests that are being answered, and the end of the last one."""

    def __init__(self) -> None:
        self.requests = 0
        self.answered_at = -REST
        self.quiet = asyncio.Event()
        self.quiet.set()
        self.turn = asyncio.Lock()

    def seconds_left(self) -> float:
        """Return the seconds that are left of `REST`; negative after its end."""
        return self.answered_at + REST - asyncio.get_running_loop().time()

    async def wait_until_idle(self) -> None:
        """Wait until the event loop has had no request in work for `REST` seconds."""
        while (left := self.seconds_left()) > 0 or self.requests:
            await (self.quiet.wait() if self.requests else asyncio.sleep(left))


_fronts: WeakKeyDictionary[asyncio.AbstractEventLoop, _Front] = WeakKeyDictionary()


def _front() -> _Front:
    loop = asyncio.get_running_loop()
    front = _fronts.get(loop)
    if front is None:
        front = _fronts[loop] = _Front()
    return front


@contextmanager
def prioritise_request() -> Iterator[None]:
    """Run the block as a request: background work waits while the block runs."""
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


async def yield_to_requests() -> None:
    """Wait, for at most `LONGEST_WAIT` seconds, until no request was in work during `REST` seconds.

    Call this before each piece of background work. Pieces wait one after another, each for at most
    `LONGEST_WAIT`, so that a request that arrives meanwhile does not have to wait for all of them.
    """
    front = _front()
    async with front.turn:
        await asyncio.sleep(0)
        if not front.requests and front.seconds_left() <= 0:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAIT):
                await front.wait_until_idle()
