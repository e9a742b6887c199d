"""Cancellation: a repair of `asyncio.wait_for`, tasks that end with a block, and errors of abandoned tasks.

Python 3.11 loses cancellations: a task continues if it is cancelled just when its answer arrives.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

AwaitedValue = TypeVar("AwaitedValue")

_wait_for = asyncio.wait_for


async def wait_for(answer: Awaitable[AwaitedValue], timeout: float | None) -> AwaitedValue:  # noqa: ASYNC109 - as it is
    """Wait for an answer as `asyncio.wait_for` of Python 3.12 does."""
    if timeout is not None and timeout <= 0:
        return await _wait_for(answer, timeout)
    async with asyncio.timeout(timeout):
        return await answer


def patch_wait_for() -> None:
    """Replace `asyncio.wait_for` for all libraries; nats-py waits with it for each answer of the server.

    With the original, Ctrl-C sometimes has no effect, more often under load. Call this function before other
    imports: a module that has imported `wait_for` by name keeps the original. From Python 3.12 on, the call
    has no effect.
    """
    if sys.version_info < (3, 12):
        patched: Any = asyncio
        patched.wait_for = wait_for


@asynccontextmanager
async def run_task(work: Coroutine[Any, Any, None], name: str | None = None) -> AsyncIterator[None]:
    """Run a coroutine as a task while the block runs, then cancel the task and wait for its end.

    An error that has ended the task is raised at the end of the block.
    """
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def suppress_task_error(task: "asyncio.Future[Any]") -> None:
    """Keep asyncio from logging a task's error that no caller has retrieved. Use this as a done callback."""
    if not task.cancelled():
        task.exception()
