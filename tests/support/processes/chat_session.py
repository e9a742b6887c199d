"""A command that goes on: what it says is awaited line by line, and it can be told something."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.support.processes.stack import TIMEOUT


class ChatSession:
    """A process that is spoken with."""

    def __init__(self, process: Process) -> None:
        assert process.stdin
        assert process.stdout
        self._process = process
        self._input, self._output = process.stdin, process.stdout
        self.said = ""

    async def heard(self, expected: str) -> str:
        """The first line from now on that has this in it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT):
                while line := (await self._output.readline()).decode():
                    self.said += line
                    if expected in line:
                        return line
        raise AssertionError(f"it has not said {expected!r}:\n{self.said}")

    def tell(self, line: str) -> None:
        """Give it a line."""
        self._input.write(f"{line}\n".encode())

    async def terminated(self) -> int:
        """Send SIGTERM, and return the exit code. The input stays open."""
        self._process.terminate()
        async with asyncio.timeout(TIMEOUT):
            return await self._process.wait()

    async def ended(self) -> int:
        """Close its input, hear it out, and return its exit code."""
        self._input.close()
        async with asyncio.timeout(TIMEOUT):
            self.said += (await self._output.read()).decode()
            return await self._process.wait()


@asynccontextmanager
async def talk(*arguments: str | Path, **environment: str) -> AsyncIterator[ChatSession]:
    """`mnemon` with some arguments, until the end of the block."""
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
