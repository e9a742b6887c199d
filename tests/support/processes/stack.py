"""`mnemon` as users run it: as commands in separate processes, on data folders of the test."""

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
"""Maximum seconds of a wait; long, because many tests may share two cores."""


async def until(holds: Callable[[], bool], timeout: float = TIMEOUT) -> None:
    """Poll until `holds` returns true, for files and processes that send no notification.

    Raises:
        TimeoutError: it does not return true within `timeout` seconds.
    """
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
    """Run `mnemon` to its end, and return its exit code and output."""
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
    """Start `mnemon`, as a fork of the server of commands if that runs.

    With `PYTHONPATH` in `environment`, `mnemon` may be another version, so it is not forked.

    Args:
        arguments: the arguments after `mnemon`.
        environment: further environment variables.
        source: file descriptor of the standard input; None: the input is empty.
        output: file for the standard output.
        errors: file for the standard error.
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
    """Return the variables for the vectors of the stack that `--data` names; empty without `--data`."""
    words = [*map(str, arguments)]
    return stack_environment(Path(words[words.index("--data") + 1])) if "--data" in words[:-1] else {}


class Up:
    """`mnemon up` on a data folder; it may be started again after its end."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.schema = stack_schema(data)
        self._process: Process | ForkedCommand | None = None

    async def start(self, *arguments: str, **environment: str) -> Endpoints:
        """Start `mnemon up`, wait until the whole stack answers, and return its endpoints."""
        await self.begin(*arguments, **environment)
        return await self.ready()

    async def begin(self, *arguments: str, **environment: str) -> None:
        """Start `mnemon up`; wait until the endpoints file of a killed run is gone, if there is one."""
        before = self._announced
        with (self.data.parent / "up.log").open("ab") as output:
            self._process = await start_mnemon(
                "up", "--data", self.data, *arguments, environment=environment, output=output, errors=output
            )
        if before:
            await until(lambda: self._announced != before or self.process.returncode is not None)

    async def ready(self) -> Endpoints:
        """Wait until the whole stack answers, and return its endpoints; fail with the log if it ended."""
        await until(lambda: self.endpoints is not None or self.process.returncode is not None)
        assert self.endpoints, self.log
        return self.endpoints

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, wait for the end, and return the exit code."""
        self.process.send_signal(number)
        async with asyncio.timeout(TIMEOUT):
            return await self.process.wait()

    async def kill(self) -> None:
        """Kill `mnemon up` with SIGKILL; its servers keep running."""
        self.process.kill()
        await self.process.wait()

    async def issue_key(
        self, tenant: str, scopes: Sequence[str] = ("read", "write"), user: str | None = None
    ) -> IssuedKey:
        """Issue an API key, as `mnemon auth key create` does, without a further process."""
        assert self.endpoints
        issued = issue_key(tenant, scopes, user)
        async with await connect(self.endpoints.nats, name="test") as connection:
            await (await open_api_keys(connection)).add(issued.stored)
        return issued

    @property
    def _announced(self) -> int | None:
        """Inode of the endpoints file, which tells one run from another; None without the file."""
        with suppress(FileNotFoundError):
            return (self.data / "endpoints.json").stat().st_ino
        return None

    @property
    def process(self) -> Process | ForkedCommand:
        assert self._process, "it was not started"
        return self._process

    @property
    def endpoints(self) -> Endpoints | None:
        """Endpoints of the stack; None while it does not answer."""
        return Endpoints.read(self.data)

    @property
    def log(self) -> str:
        """Output of all runs of `mnemon up` on the folder."""
        return (self.data.parent / "up.log").read_text()

    def beside(self) -> psutil.Process | None:
        """Return the process of the background consumers; None if there is none."""
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
                if "mnemon_consumers.background_process" in child.cmdline():
                    return child
        return None

    def servers(self) -> dict[str, psutil.Process]:
        """Return the processes of the servers that run on the folder, by name."""
        return {process.info["name"]: process for process in _on(self.data)}

    def pids(self) -> set[int]:
        """Return the process ids of the servers that run on the folder."""
        return {process.pid for process in _on(self.data)}


@contextmanager
def stack_folder() -> Iterator[Path]:
    """Yield the path of a data folder that PostgreSQL's account can reach.

    At the end, kill the servers that run on the folder, and remove the folder and its vectors.
    """
    # Not tmp_path: at each start, pytest removes the access of other accounts to the folders above it.
    parent = Path(tempfile.mkdtemp(prefix="mnemon-test-"))
    yield parent / "data"
    for process in _on(parent / "data"):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    drop_reserved({stack_schema(parent / "data")})
    shutil.rmtree(parent, ignore_errors=True)


def _on(data: Path) -> list[psutil.Process]:
    marks = {str(data / "nats" / "nats-server.conf"), str(data / "postgres")}
    # The attributes are read while the processes are listed: a process may end at any moment.
    found = psutil.process_iter(["name", "cmdline", "ppid"])
    marked = {process.pid: process for process in found if marks & set(process.info["cmdline"] or ())}
    # PostgreSQL forks a process for each connection. Until the client has sent its name, the process has the
    # command line of its parent.
    return [process for process in marked.values() if process.info["ppid"] not in marked]
