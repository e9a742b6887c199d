"""Event loop of processes that serve."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

Result = TypeVar("Result")


def run_service(service: Coroutine[Any, Any, Result]) -> Result:
    """Run a service as `asyncio.run` does, in the event loop of uvloop.

    A request to `context` takes about a fifth less time than in the loop of asyncio.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(service)
