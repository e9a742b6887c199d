"""`mnemon run` in a separate process, which a test kills and starts again as a supervisor does."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

from tests.support.processes.command_server import ForkedCommand
from tests.support.processes.stack import TIMEOUT, start_mnemon, until


class Runner:
    """`mnemon run` of some consumers.

    Args:
        names: names of the consumers.
        output: file for standard output and standard error; each start overwrites it.
        arguments: options of the command, such as `--data DIR`.
        module: Python module to run in the place of `mnemon`, such as another version.
        environment: further environment variables.
    """

    def __init__(
        self,
        names: Sequence[str],
        output: Path,
        *arguments: str | Path,
        module: str = "mnemon",
        **environment: str,
    ) -> None:
        self._arguments = ("run", *names, *map(str, arguments))
        self._module = module
        self._output = output
        self._environment = environment
        self._process: Process | ForkedCommand | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the process was started and still runs."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start the process, again if it ends, until the consumers run."""
        async with asyncio.timeout(TIMEOUT):
            while not await self._started():
                pass

    async def stop(self) -> None:
        if self._process and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()

    async def killed(self) -> None:
        """Kill the process with SIGKILL, and start a new one."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self.start()

    async def _started(self) -> bool:
        with self._output.open("wb") as output:
            self._process = process = await self._begun(output)
        await until(lambda: process.returncode is not None or "running." in self._output.read_text())
        return process.returncode is None

    async def _begun(self, output: IO[bytes]) -> Process | ForkedCommand:
        if self._module == "mnemon":
            return await start_mnemon(
                *self._arguments, environment=self._environment, output=output, errors=output
            )
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", self._module, *self._arguments),
            env={**os.environ, **self._environment},
            stdout=output,
            stderr=output,
        )


@asynccontextmanager
async def running(runners: Sequence[Runner]) -> AsyncIterator[None]:
    """Run all runners for the duration of the block."""
    try:
        await asyncio.gather(*(runner.start() for runner in runners))
        yield
    finally:
        await asyncio.gather(*(runner.stop() for runner in runners))
