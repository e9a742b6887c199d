"""`mnemon` as its users run it: in processes of its own, on folders of the test's own."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from mnemon_infra.broker.connection import connect
from mnemon_infra.process.data_folder import Endpoints
from mnemon_infra.settings.api_keys import IssuedKey, issue_key, open_api_keys
from tests.support.processes.command_server import ForkedCommand, heed_signals, running_server
from tests.support.servers.qdrant import drop_reserved, stack_environment, stack_schema

TIMEOUT = 150.0
"""Seconds for anything to happen: two cores may serve many tests."""


async def until(holds: Callable[[], bool], timeout: float = TIMEOUT) -> None:
    """Wait for what nothing tells of: files and processes that are not ours."""
    async with asyncio.timeout(timeout):
        while not holds():
            await asyncio.sleep(0.02)


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


async def mnemon(*arguments: str | Path, **environment: str) -> CommandResult:
    """Run `mnemon` to its end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = await start_mnemon(*arguments, environment=environment, output=out, errors=err)
        try:
            async with asyncio.timeout(TIMEOUT):
                code = await process.wait()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        out.seek(0)
        err.seek(0)
        return CommandResult(code, out.read().decode(), err.read().decode())


async def start_mnemon(
    *arguments: str | Path,
    environment: Mapping[str, str],
    source: int | None = None,
    output: IO[bytes],
    errors: IO[bytes],
) -> Process | ForkedCommand:
    """Start `mnemon`, forked from a process that has imported it if there is one.

    Its standard input is the descriptor `source`, or empty.

    With `PYTHONPATH` in the environment it may be another version, so it is no fork.
    """
    complete = {**os.environ, **_vectors_of(arguments), **environment}
    with Path(os.devnull).open("rb") as nothing:
        descriptor = nothing.fileno() if source is None else source
        if (server := running_server()) and "PYTHONPATH" not in environment:
            return server.start([*map(str, arguments)], complete, descriptor, output, errors)
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mnemon", *map(str, arguments)),
            env=complete,
            stdin=descriptor,
            stdout=output,
            stderr=errors,
            preexec_fn=heed_signals,
        )


def _vectors_of(arguments: Sequence[str | Path]) -> dict[str, str]:
    """Return the variables of the vectors of the stack that a command is about."""
    words = [*map(str, arguments)]
    return stack_environment(Path(words[words.index("--data") + 1])) if "--data" in words[:-1] else {}


class Up:
    """`mnemon up` on a folder; may be started again after it ended."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.schema = stack_schema(data)
        self._process: Process | ForkedCommand | None = None

    async def start(self, *arguments: str, **environment: str) -> Endpoints:
        """Start it; returns when all of it answers."""
        await self.begin(*arguments, **environment)
        return await self.ready()

    async def begin(self, *arguments: str, **environment: str) -> None:
        """Start it; returns when what a killed run announced is gone."""
        before = self._announced
        with (self.data.parent / "up.log").open("ab") as output:
            self._process = await start_mnemon(
                "up", "--data", self.data, *arguments, environment=environment, output=output, errors=output
            )
        if before:
            await until(lambda: self._announced != before or self.process.returncode is not None)

    async def ready(self) -> Endpoints:
        """Wait until all of it answers."""
        await until(lambda: self.endpoints is not None or self.process.returncode is not None)
        assert self.endpoints, self.log
        return self.endpoints

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end, and return its exit code."""
        self.process.send_signal(number)
        async with asyncio.timeout(TIMEOUT):
            return await self.process.wait()

    async def kill(self) -> None:
        """End it without a chance to tidy up; its servers stay."""
        self.process.kill()
        await self.process.wait()

    async def issue_key(
        self, tenant: str, scopes: Sequence[str] = ("read", "write"), user: str | None = None
    ) -> IssuedKey:
        """Issue a key for the gateway, as `mnemon auth key create` does in a process."""
        assert self.endpoints
        issued = issue_key(tenant, scopes, user)
        async with await connect(self.endpoints.nats, name="test") as connection:
            await (await open_api_keys(connection)).add(issued.stored)
        return issued

    @property
    def _announced(self) -> int | None:
        """Which file the endpoints stand in."""
        with suppress(FileNotFoundError):
            return (self.data / "endpoints.json").stat().st_ino
        return None

    @property
    def process(self) -> Process | ForkedCommand:
        assert self._process, "it was not started"
        return self._process

    @property
    def endpoints(self) -> Endpoints | None:
        """Where it answers, while it does."""
        return Endpoints.read(self.data)

    @property
    def log(self) -> str:
        """All that it has said."""
        return (self.data.parent / "up.log").read_text()

    def beside(self) -> psutil.Process | None:
        """The process of the background consumers."""
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
                if "mnemon_consumers.background_process" in child.cmdline():
                    return child
        return None

    def servers(self) -> dict[str, psutil.Process]:
        """The servers that run on the folder, by name."""
        return {process.info["name"]: process for process in _on(self.data)}

    def pids(self) -> set[int]:
        """The ids of all processes that serve the folder."""
        return {process.pid for process in _on(self.data)}


@contextmanager
def stack_folder() -> Iterator[Path]:
    """A folder for a stack, which PostgreSQL's own account can reach; ends the processes that run on it."""
    # Not tmp_path: every start of pytest closes the folders above it for other accounts again.
    parent = Path(tempfile.mkdtemp(prefix="mnemon-test-"))
    yield parent / "data"
    for process in _on(parent / "data"):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    drop_reserved({stack_schema(parent / "data")})
    shutil.rmtree(parent, ignore_errors=True)


def _on(data: Path) -> list[psutil.Process]:
    marks = {str(data / "nats" / "nats-server.conf"), str(data / "postgres")}
    # Read as they are found: a moment later one may have ended.
    found = psutil.process_iter(["name", "cmdline", "ppid"])
    marked = {process.pid: process for process in found if marks & set(process.info["cmdline"] or ())}
    # PostgreSQL forks for each connection, under its own command line until the client has named itself.
    return [process for process in marked.values() if process.info["ppid"] not in marked]
