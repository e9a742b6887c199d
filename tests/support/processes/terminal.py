"""Commands at a terminal: their standard input is a pseudo-terminal, on which the test types."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from tests.support.processes.stack import TIMEOUT, CommandResult


class TerminalCommand:
    """A running command, and the terminal that it reads from."""

    def __init__(self, process: Process, person: int) -> None:
        self._process = process
        self._person = person
        self._errors = b""

    def type(self, text: str) -> None:
        """Type text; the command gets it at each end of a line, or Ctrl-D (`\x04`)."""
        os.write(self._person, text.encode())

    async def await_question(self, question: str) -> None:
        """Wait until the command asks a question on standard error."""
        assert self._process.stderr is not None
        async with asyncio.timeout(TIMEOUT):
            while question.encode() not in self._errors:
                piece = await self._process.stderr.read(4096)
                assert piece, f"ended without the question: {self._errors.decode()}"
                self._errors += piece

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def await_end(self) -> CommandResult:
        """Wait until the command ends."""
        async with asyncio.timeout(TIMEOUT):
            out, err = await self._process.communicate()
        return CommandResult(self._process.returncode or 0, out.decode(), (self._errors + err).decode())


@asynccontextmanager
async def run_at_terminal(*arguments: str, **environment: str) -> AsyncIterator[TerminalCommand]:
    """Run `mnemon` with a terminal as its standard input; kill it if it still runs at the end."""
    person, terminal = os.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mnemon", *arguments),
            stdin=terminal,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **environment},
            # A test run in the background of a shell passes on that SIGINT is ignored.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        try:
            yield TerminalCommand(process, person)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    finally:
        os.close(person)
        os.close(terminal)
