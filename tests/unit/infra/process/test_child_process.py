"""Child processes end after their standard input is closed, or are killed."""

import asyncio
import sys
from collections.abc import AsyncIterator
from signal import SIGKILL

import pytest
import pytest_asyncio

from mnemon_infra.process.child_process import end_child


@pytest_asyncio.fixture
async def process_that_ignores_its_input() -> AsyncIterator[asyncio.subprocess.Process]:
    """Yield a process that ignores the end of its standard input; the test must end it."""
    code = "import time; time.sleep(600)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=asyncio.subprocess.PIPE)
    yield process
    assert process.returncode is not None


async def test_process_that_does_not_end_is_killed_without_an_error(
    process_that_ignores_its_input: asyncio.subprocess.Process,
) -> None:
    await end_child(process_that_ignores_its_input, 0.0)
    assert process_that_ignores_its_input.returncode == -SIGKILL


async def test_process_is_killed_if_the_wait_for_its_end_is_cancelled(
    process_that_ignores_its_input: asyncio.subprocess.Process,
) -> None:
    ending = asyncio.create_task(end_child(process_that_ignores_its_input, 600.0))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert process_that_ignores_its_input.returncode == -SIGKILL


async def test_process_that_reads_to_the_end_ends_in_order() -> None:
    command = sys.executable, "-c", "import sys; sys.stdin.read()"
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
    await end_child(process, 600.0)
    assert process.returncode == 0
