"""`mnemon run` as a supervisor has it: in a process of its own, started again whenever it is killed."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.processes.stack import PATIENCE, until


class Runner:
    """`mnemon run` of some consumers.

    Args:
        names: the consumers.
        output: the file that has what it says.
        arguments: options of the command, such as `--data DIR`.
        module: what is run; another version of `mnemon`, say.
        environment: variables of its own.
    """

    def __init__(
        self,
        names: Sequence[str],
        output: Path,
        *arguments: str | Path,
        module: str = "mnemon",
        **environment: str,
    ) -> None:
        self._command = (sys.executable, "-m", module, "run", *names, *map(str, arguments))
        self._output = output
        self._environment = environment
        self._process: Process | None = None

    @property
    def is_alive(self) -> bool:
        """It has not ended since it was last started."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start it as a supervisor does: again and again, until it runs."""
        async with asyncio.timeout(PATIENCE):
            while not await self._started():
                pass

    async def stop(self) -> None:
        if self._process and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()

    async def killed(self) -> None:
        """`kill -9`, and a new one."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self.start()

    async def _started(self) -> bool:
        with self._output.open("wb") as output:
            self._process = process = await asyncio.create_subprocess_exec(
                *self._command, env={**os.environ, **self._environment}, stdout=output, stderr=output
            )
        await until(lambda: process.returncode is not None or "running." in self._output.read_text())
        return process.returncode is None


@asynccontextmanager
async def running(runners: Sequence[Runner]) -> AsyncIterator[None]:
    """All of them run, until the end of the block."""
    try:
        await asyncio.gather(*(runner.start() for runner in runners))
        yield
    finally:
        await asyncio.gather(*(runner.stop() for runner in runners))
