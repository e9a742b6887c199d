"""Background process: runs consumers at a lower CPU priority than the process that answers bots."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module

import structlog
from tenacity import AsyncRetrying, RetryCallState, wait_exponential

from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment
from mnemon_infra.durables import GRACEFUL_TIMEOUT
from mnemon_infra.process.cancellation import patch_wait_for, run_task
from mnemon_infra.process.child_process import end_child, open_parent_pipe, spawn_module
from mnemon_infra.telemetry.endpoint import MetricsPortTaken
from mnemon_infra.telemetry.logging import configure_logging

log = structlog.get_logger("app")

NICENESS = 10
"""Nice value with which the background process gets about a tenth of the CPU weight of the process that
answers bots."""

START_TIMEOUT = 60.0
"""Maximum time, in seconds, for the consumers to become ready."""

END_TIMEOUT = GRACEFUL_TIMEOUT + 5
"""Maximum time, in seconds, for the consumers to finish their current batches when the process ends."""

_READY = b"ready"
_PORT_TAKEN = b"port taken: "


class BackgroundFailed(Exception):
    """The background process ended or timed out before its consumers were ready.

    The log of the background process has the reason.
    """


@asynccontextmanager
async def run_in_background(names: Sequence[str], deployment: Deployment) -> AsyncIterator[None]:
    """Run consumers in another process until the block ends. The block begins when the consumers are ready.

    The process is restarted whenever it ends. If its parent process is killed, the process ends too.

    Raises:
        BackgroundFailed: the consumers did not start, or were not ready within `START_TIMEOUT` seconds.
        MetricsPortTaken: the process cannot listen on its metrics port.
    """
    if not names:
        yield
        return
    process = await _start_process(names, deployment)
    async with run_task(_keep_running(process, names, deployment), name="background"):
        yield


async def _keep_running(
    process: asyncio.subprocess.Process, names: Sequence[str], deployment: Deployment
) -> None:
    try:
        while True:
            code = await process.wait()
            log.error("background process ended, restarting", exit_code=code)
            async for attempt in AsyncRetrying(
                wait=wait_exponential(multiplier=0.1, max=5), before_sleep=_log_failed_start
            ):
                with attempt:
                    process = await _start_process(names, deployment)
    finally:
        await end_child(process, END_TIMEOUT)


def _log_failed_start(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    log.warning("background process start failed, retrying", error=str(error))


async def _start_process(names: Sequence[str], deployment: Deployment) -> asyncio.subprocess.Process:
    process = await spawn_module(
        "mnemon_consumers.background_process", *names, first_line=deployment.to_json()
    )
    assert process.stdout is not None
    try:
        try:
            async with asyncio.timeout(START_TIMEOUT):
                said = await process.stdout.readline()
        except TimeoutError:
            raise BackgroundFailed(
                f"the consumers {', '.join(names)} were not ready within {START_TIMEOUT:g} s; read the log "
                "messages above"
            ) from None
        if said.startswith(_PORT_TAKEN):
            raise MetricsPortTaken(said.removeprefix(_PORT_TAKEN).decode().strip())
        if said.strip() != _READY:
            raise BackgroundFailed(
                f"the consumers {', '.join(names)} did not start; read the log messages above"
            )
    except BaseException:
        await end_child(process, END_TIMEOUT)
        raise
    return process


async def _consume_until_closed(names: Sequence[str]) -> None:
    """Consume until standard input is closed. A kill of the parent process closes standard input, too."""
    for name in names:
        import_module(f"mnemon_consumers.{name}.handler")
    # Imports come first at normal priority: the start of the whole stack waits for them.
    os.nice(NICENESS)
    parent = await open_parent_pipe()
    deployment = Deployment.from_json(await parent.readline())
    try:
        async with run_consumers(names, deployment):
            _write_to_parent(_READY)
            await parent.read()
    except MetricsPortTaken as error:
        _write_to_parent(_PORT_TAKEN + str(error).encode())


def _write_to_parent(line: bytes) -> None:
    """Write a line to standard output, where the parent process reads whether the consumers are ready."""
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    configure_logging()
    patch_wait_for()
    asyncio.run(_consume_until_closed(sys.argv[1:]))
