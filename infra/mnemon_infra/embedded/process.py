"""Server that runs as a child process, outlives its parent's `kill -9`, and is found by the next run."""

import asyncio
import errno
import os
import signal
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import structlog

from mnemon_infra.embedded.account import Account, build_account_arguments
from mnemon_infra.process.data_folder import replace_file

log = structlog.get_logger("embedded")

START_TIMEOUT = 120.0
"""Maximum seconds for a server to answer, recovery from a crash included."""

_POLL = 0.01

_FATAL = "FATAL:", "PANIC:", "[FTL]"
"""Marks of the log line in which a server gives the reason for its end."""


class ServerFailed(Exception):
    """A server of the stack cannot be started or reloaded; the message has the reason."""


class ServerPortTaken(Exception):
    """The port that was chosen for a server cannot be opened.

    Attributes:
        part: part of the stack: `broker` or `database`.
    """

    def __init__(self, part: str, port: int, error: OSError) -> None:
        problem = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened: {error.strerror}"
        super().__init__(f"port {port} {problem}")
        self.part = part


class ServerProcess(ABC):
    """One server as a child process. Subclasses define its command and the check that it is ready."""

    part: str
    """Part of the stack: `broker` or `database`."""
    name: str
    """Name of the program."""
    title: str
    """Name and version for display."""
    ending: tuple[tuple[signal.Signals, float], ...]
    """Signals that end the server, from gentle to harsh, each with the seconds to wait for its effect."""
    account: Account | None = None

    def __init__(self, data: Path) -> None:
        self.log_path = data / "logs" / f"{self.name}.log"
        self.pid_path = data / "run" / f"{self.name}.pid"
        self._process: asyncio.subprocess.Process | None = None
        self._log_begin = 0

    @property
    @abstractmethod
    def url(self) -> str:
        """The server's address, which is complete once `start` has returned."""

    @property
    @abstractmethod
    def command(self) -> tuple[str, ...]:
        """The program of the server, and the arguments with which it is started."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that the server gets in addition to this process's environment."""
        return {}

    @property
    @abstractmethod
    def mark(self) -> str:
        """The argument of the command that identifies the server: a path in its data folder."""

    @abstractmethod
    async def prepare(self) -> None:
        """Create the files and folders that a start needs."""

    @abstractmethod
    def is_responding(self, pid: int) -> bool:
        """Return whether the server that runs as `pid` has reported that it is ready."""

    def require_port(self, port: int | None) -> None:
        """Check that the server can open a port; None stands for any port.

        While a server that a killed run left in the folder still runs, no port is checked: that server may
        hold it, and `start` ends that server.

        Raises:
            ServerPortTaken: the port cannot be opened, for example because another program has it.
        """
        if port is None or any(self.list_orphans()):
            return
        try:
            with socket.create_server(("127.0.0.1", port)):
                pass
        except OSError as error:
            raise ServerPortTaken(self.part, port, error) from error

    async def start(self) -> None:
        """End a server that a killed run left, then start the server. Return when it answers.

        Raises:
            ServerFailed: the server cannot be prepared, or the server ended, or the server did not answer
                within `START_TIMEOUT` seconds.
            Exception: any other error of `prepare`, unchanged.
        """
        for orphan in self.list_orphans():
            log.warning("orphaned server found, stopping it", server=self.name, pid=orphan.pid)
            await self._end_process(orphan)
        # The server gets its log file already open, so no other account needs access: PostgreSQL may log
        # rows.
        self.log_path.parent.mkdir(mode=0o700, exist_ok=True)
        self.pid_path.parent.mkdir(exist_ok=True)
        await self.prepare()
        with self.log_path.open("ab") as output:
            self._log_begin = output.tell()
            self._process = await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # A Ctrl-C in the terminal goes to this process only, which ends the servers last.
                start_new_session=True,
                env={**os.environ, **self.environment},
                **build_account_arguments(self.account),
            )
        try:
            replace_file(self.pid_path, str(self._process.pid))
            await self._wait_until_ready(self._process)
        except BaseException:
            await self.stop()
            raise

    async def wait_for_end(self) -> int:
        """Wait until the server ends, for any reason, and return its exit code.

        Raises:
            RuntimeError: the server was not started.
        """
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started: call `start` first")
        return await self._process.wait()

    def ask_to_end(self) -> None:
        """Send the first signal of `ending` and return at once. The stack then restarts the server."""
        if self._process and self._process.returncode is None:
            self._process.send_signal(self.ending[0][0])

    async def stop(self) -> None:
        """End the server if it runs. A cancellation during the wait sends the next harsher signal."""
        if self._process is None or self._process.returncode is not None:
            return
        with suppress(psutil.NoSuchProcess):
            await self._end_process(psutil.Process(self._process.pid))
        await self._process.wait()

    def read_log_file(self, offset: int) -> bytes:
        """Return the bytes of the log file from a byte offset to its end."""
        with self.log_path.open("rb") as log_file:
            log_file.seek(offset)
            return log_file.read()

    def list_orphans(self) -> Iterator[psutil.Process]:
        """Yield the servers of this folder that an earlier run started and did not end."""
        yield from self.find_own_process(self.pid_path)

    def find_own_process(self, pid_path: Path) -> Iterator[psutil.Process]:
        """Yield the process whose id is on the first line of a file, if it runs this program on this folder.

        The id may belong to another process by now. Program and arguments are compared, because the creation
        time of a process changes when the clock is set.
        """
        with suppress(FileNotFoundError, ValueError, psutil.Error):
            process = psutil.Process(int(pid_path.read_text().partition("\n")[0]))
            if process.name() == self.name and self.mark in process.cmdline():
                yield process

    async def _wait_until_ready(self, process: asyncio.subprocess.Process) -> None:
        try:
            async with asyncio.timeout(START_TIMEOUT):
                while not self.is_responding(process.pid):
                    if process.returncode is not None:
                        raise ServerFailed(f"{self.name} does not start: {self._read_last_log_line()}")
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            problem = f"{self.name} did not answer within {START_TIMEOUT:.0f} s: {self._read_last_log_line()}"
            raise ServerFailed(problem) from None

    async def _end_process(self, process: psutil.Process) -> None:
        cancelled: asyncio.CancelledError | None = None
        for number, seconds in self.ending:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
            try:
                async with asyncio.timeout(seconds):
                    while _is_running(process):  # noqa: ASYNC110 (an orphan is not our child: there is no event)
                        await asyncio.sleep(_POLL)
                break
            except TimeoutError:
                log.warning(
                    "server did not stop after a signal",
                    server=self.name,
                    signal=number.name,
                    seconds=seconds,
                )
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled:
            raise cancelled

    def _read_last_log_line(self) -> str:
        """Return the server's last fatal log line, else its last log line, with the path of the log file."""
        lines = self.read_log_file(self._log_begin).decode(errors="replace").strip().splitlines()
        reason = next((line for line in reversed(lines) if any(mark in line for mark in _FATAL)), None)
        said = reason or (lines[-1] if lines else "no output")
        return f"{said} (see {self.log_path})"


def _is_running(process: psutil.Process) -> bool:
    """Return whether a process runs. A zombie does not count: in a container, it may never be reaped."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
