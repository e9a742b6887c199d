"""Separate process for an HTTP service, started by the first connection to the service's socket.

The socket is open all the time: the first request waits until the process has started. An unused service
costs neither time nor memory.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import structlog

from mnemon_infra.process.cancellation import run_task
from mnemon_infra.process.child_process import end_child, spawn_module

log = structlog.get_logger("http")

END_TIMEOUT = 10.0
"""Seconds for the process to end before it is killed."""

_PAUSE: Final = 5.0
"""Seconds after a failure before a connection can start the process again."""


class LazyProcess(NamedTuple):
    """A process `python -m MODULE DESCRIPTOR` that the first connection starts.

    The process inherits the file descriptor of the listening socket.

    Attributes:
        module: the module; its process ends with exit code 0 when it is no longer needed.
        get_options: returns one line for the standard input of the process; it may have secrets.
        take_line: takes each line that the process prints.
    """

    module: str
    get_options: Callable[[], str]
    take_line: Callable[[str], None]


@asynccontextmanager
async def start_on_demand(process: LazyProcess, listening: socket.socket) -> AsyncIterator[None]:
    """Serve a socket for the duration of the block; the process starts when a client connects."""
    async with run_task(_supervise_process(process, listening), name=process.module):
        yield


async def _supervise_process(process: LazyProcess, listening: socket.socket) -> None:
    while True:
        await _wait_for_connection(listening)
        try:
            code = await _run_process(process, listening)
        except OSError as error:  # too many open files, or no memory
            log.error(
                "HTTP process start failed, retrying", module=process.module, error=type(error).__name__
            )
        except ValueError as error:  # a line is too long, or not in UTF-8
            log.error(
                "HTTP process output read failed, restarting",
                module=process.module,
                error=type(error).__name__,
            )
        else:
            if not code:
                continue
            log.error("HTTP process failed", module=process.module, exit_code=code)
        await asyncio.sleep(_PAUSE)


async def _wait_for_connection(listening: socket.socket) -> None:
    """Wait for a connection without accepting it: the process will accept it."""
    came = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(listening, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(listening)


async def _run_process(launched: LazyProcess, listening: socket.socket) -> int:
    """Start the process and wait for its end; return its exit code."""
    descriptor = listening.fileno()
    process = await spawn_module(
        launched.module, str(descriptor), first_line=launched.get_options(), descriptors=[descriptor]
    )
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            launched.take_line(line.decode().strip())
        return await process.wait()
    finally:
        await end_child(process, END_TIMEOUT)
