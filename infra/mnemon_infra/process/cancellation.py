"""Cancellations, and what goes on after them.

Python 3.11 loses cancellations: whoever is cancelled while an answer has just come goes on with it.
"""

import asyncio
import sys
from collections.abc import Awaitable
from typing import Any, TypeVar

AwaitedValue = TypeVar("AwaitedValue")

_wait_for = asyncio.wait_for


async def wait_for(answer: Awaitable[AwaitedValue], timeout: float | None) -> AwaitedValue:  # noqa: ASYNC109 - as it is
    """`asyncio.wait_for` as Python has it from 3.12 on."""
    if timeout is not None and timeout <= 0:
        return await _wait_for(answer, timeout)
    async with asyncio.timeout(timeout):
        return await answer


def heed_cancellations() -> None:
    """Have every library heed them, nats-py above all, which waits for each answer in this way.

    A Ctrl-C would otherwise be lost now and then, and the more often the more there is to do. To be called
    first in a process: what imports the function by its name keeps the one it found.
    """
    if sys.version_info < (3, 12):
        patched: Any = asyncio
        patched.wait_for = wait_for


def abandon_quietly(task: "asyncio.Future[Any]") -> None:
    """Keep asyncio from reporting a task that fails after whoever asked has gone; a callback of the task."""
    if not task.cancelled():
        task.exception()
