"""Cancellation: a repair of `asyncio.wait_for`, and a callback for abandoned tasks.

Python 3.11 loses cancellations: a task that is cancelled just when its answer arrives continues.
"""

import asyncio
import sys
from collections.abc import Awaitable
from typing import Any, TypeVar

AwaitedValue = TypeVar("AwaitedValue")

_wait_for = asyncio.wait_for


async def wait_for(answer: Awaitable[AwaitedValue], timeout: float | None) -> AwaitedValue:  # noqa: ASYNC109 - as it is
    """Behave as `asyncio.wait_for` of Python 3.12."""
    if timeout is not None and timeout <= 0:
        return await _wait_for(answer, timeout)
    async with asyncio.timeout(timeout):
        return await answer


def patch_wait_for() -> None:
    """Replace `asyncio.wait_for` for every library, above all nats-py, which waits for each answer with it.

    Otherwise a Ctrl-C is lost now and then, and more often under load. Call it first in a process: a module
    that imports the function by its name keeps the one that it found. From Python 3.12 on it does nothing.
    """
    if sys.version_info < (3, 12):
        patched: Any = asyncio
        patched.wait_for = wait_for


def suppress_task_error(task: "asyncio.Future[Any]") -> None:
    """Keep asyncio from reporting a task that fails after its callers have gone. It is a done callback."""
    if not task.cancelled():
        task.exception()
