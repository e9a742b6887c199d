"""Child processes, which end when their parent process closes their standard input, or dies."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress


async def spawn_module(
    module: str, *arguments: str, first_line: str, descriptors: Sequence[int] = ()
) -> asyncio.subprocess.Process:
    """Start `python -m MODULE ARGUMENTS`, with pipes for standard input and output.

    `first_line` is the first line of the standard input, which may have secrets: other processes could read
    arguments and variables. `descriptors` are file descriptors that the process inherits.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        pass_fds=descriptors,
        # Ctrl-C in the terminal reaches only the parent process, which then ends the child process.
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(first_line.encode() + b"\n")
    return process


async def end_child(process: asyncio.subprocess.Process, seconds: float) -> None:
    """Close the standard input of a process and wait for its end.

    Kill the process after `seconds`, or if the wait is cancelled.
    """
    assert process.stdin is not None
    process.stdin.close()
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await process.wait()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def open_parent_pipe() -> asyncio.StreamReader:
    """Return a reader of this process's standard input; the input ends when the parent process dies."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader
