"""Interactive commands: a test writes lines to the standard input, and waits for lines of the output."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.support.processes.stack import TIMEOUT


class ChatSession:
    """A running command. `said` is the output that was read so far."""

    def __init__(self, process: Process) -> None:
        assert process.stdin
        assert process.stdout
        self._process = process
        self._input, self._output = process.stdin, process.stdout
        self.said = ""

    async def heard(self, expected: str) -> str:
        """Wait for the next line of the output that contains `expected`, and return it.

        Raises:
            AssertionError: no such line came in time, or before the output ended.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT):
                while line := (await self._output.readline()).decode():
                    self.said += line
                    if expected in line:
                        return line
        raise AssertionError(f"it has not said {expected!r}:\n{self.said}")

    def tell(self, line: str) -> None:
        """Write a line to the standard input."""
        self._input.write(f"{line}\n".encode())

    async def terminated(self) -> int:
        """Send SIGTERM, wait for the end, and return the exit code. The standard input stays open."""
        self._process.terminate()
        async with asyncio.timeout(TIMEOUT):
            return await self._process.wait()

    async def ended(self) -> int:
        """Close the standard input, read the output to its end, and return the exit code."""
        self._input.close()
        async with asyncio.timeout(TIMEOUT):
            self.said += (await self._output.read()).decode()
            return await self._process.wait()


@asynccontextmanager
async def talk(*arguments: str | Path, **environment: str) -> AsyncIterator[ChatSession]:
    """Run `mnemon` with these arguments, until the end of the block at most."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mnemon", *map(str, arguments)),
        env={**os.environ, **environment},
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        yield ChatSession(process)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
