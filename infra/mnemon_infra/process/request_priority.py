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


class _RequestLoad:
    """State of one event loop: the requests that are being answered, and the end of the last request."""

    def __init__(self) -> None:
        self.requests = 0
        self.answered_at = -REST
        self.quiet = asyncio.Event()
        self.quiet.set()
        self.turn = asyncio.Lock()

    def count_seconds_left(self) -> float:
        """Return the seconds until `REST` seconds have passed since the last answer; negative afterwards."""
        return self.answered_at + REST - asyncio.get_running_loop().time()

    async def wait_until_idle(self) -> None:
        """Wait until the event loop has had no request in work for `REST` seconds."""
        while (left := self.count_seconds_left()) > 0 or self.requests:
            await (self.quiet.wait() if self.requests else asyncio.sleep(left))


_loads: WeakKeyDictionary[asyncio.AbstractEventLoop, _RequestLoad] = WeakKeyDictionary()


def _get_load() -> _RequestLoad:
    loop = asyncio.get_running_loop()
    load = _loads.get(loop)
    if load is None:
        load = _loads[loop] = _RequestLoad()
    return load


@contextmanager
def prioritise_request() -> Iterator[None]:
    """Run the block as a request: background work waits while the block runs."""
    load = _get_load()
    load.requests += 1
    load.quiet.clear()
    try:
        yield
    finally:
        load.requests -= 1
        if not load.requests:
            load.answered_at = asyncio.get_running_loop().time()
            load.quiet.set()


async def yield_to_requests() -> None:
    """Wait, for at most `LONGEST_WAIT` seconds, until no request has been in work for `REST` seconds.

    Call this before each piece of background work. Pieces wait one after another, each for at most
    `LONGEST_WAIT`, so that a request that arrives meanwhile does not have to wait for all of them.
    """
    load = _get_load()
    async with load.turn:
        await asyncio.sleep(0)
        if not load.requests and load.count_seconds_left() <= 0:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAIT):
                await load.wait_until_idle()
