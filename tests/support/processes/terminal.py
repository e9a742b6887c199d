"""Commands at a terminal: their standard input is a pseudo-terminal, on which the test types."""

import asyncio
import os
import signal
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import IO

from tests.support.processes.command_server import ForkedCommand
from tests.support.processes.stack import TIMEOUT, CommandResult, start_mnemon, until


class TerminalCommand:
    """A running command, and the terminal that it reads from."""

    def __init__(
        self, process: Process | ForkedCommand, person: int, output: IO[bytes], errors: IO[bytes]
    ) -> None:
        self._process = process
        self._person = person
        self._output = output
        self._errors = errors

    def type(self, text: str) -> None:
        """Type text; the command receives it at the end of each line, or at Ctrl-D (`\x04`)."""
        os.write(self._person, text.encode())

    async def await_question(self, question: str) -> None:
        """Wait until the standard error contains `question`; fail if the command ends without it."""
        await until(lambda: question in _read(self._errors) or self._process.returncode is not None)
        assert question in _read(self._errors), f"ended without the question: {_read(self._errors)}"

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def await_end(self) -> CommandResult:
        """Wait until the command ends, and return its exit code and output."""
        async with asyncio.timeout(TIMEOUT):
            code = await self._process.wait()
        return CommandResult(code, _read(self._output), _read(self._errors))


@asynccontextmanager
async def run_at_terminal(*arguments: str, **environment: str) -> AsyncIterator[TerminalCommand]:
    """Run `mnemon` with a terminal as its standard input; kill it if it still runs at the end."""
    person, terminal = os.openpty()
    try:
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            process = await start_mnemon(
                *arguments, environment=environment, source=terminal, output=output, errors=errors
            )
            try:
                yield TerminalCommand(process, person, output, errors)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
    finally:
        os.close(person)
        os.close(terminal)


def _read(file: IO[bytes]) -> str:
    """Return all output of a process; leave the file offset, which the process shares, unchanged."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()
