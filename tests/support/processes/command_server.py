"""Commands in processes that are forked from a process that has imported mnemon, which saves a second each.

A forked process has the arguments, the environment, the output and the exit code that `python -m mnemon` has.
Only on Linux: on other systems, a fork after such imports is not safe.
"""

import asyncio
import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO

from mnemon_infra.durables import CONSUMERS

_REQUEST_BYTES = 1 << 17
_STANDARD_STREAMS = 3
_IMPORTED = (
    "alembic.command",
    "mnemon.admin.launcher",
    "mnemon.cli.app",
    "mnemon.gateway.application",
    *(f"mnemon_consumers.{name}.handler" for name in CONSUMERS),
    "mnemon_consumers.background_process",
    "mnemon_infra.embedded.stack",
    "mnemon_infra.vectors.edge.engine",
    "rich.table",
)


class ForkedCommand:
    """A forked command, with the methods of `asyncio.subprocess.Process` that tests use."""

    def __init__(self, pid: int, ending: socket.socket) -> None:
        self.pid = pid
        self._ending = ending
        self._code: int | None = None

    @property
    def returncode(self) -> int | None:
        """The exit code; None while the command runs; -9 if the server ended without reporting it."""
        if self._code is None:
            try:
                received = self._ending.recv(16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            self._code = int(received) if received else -signal.SIGKILL
            self._ending.close()
        return self._code

    async def wait(self) -> int:
        while (code := self.returncode) is None:
            await asyncio.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class CommandServer:
    """Client of the process that forks, the server of commands."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        source: int,
        output: IO[bytes],
        errors: IO[bytes],
    ) -> ForkedCommand:
        """Start `mnemon` in the current folder of this process.

        Args:
            arguments: the arguments after `mnemon`.
            environment: all environment variables.
            source: file descriptor of the standard input.
            output: file for the standard output.
            errors: file for the standard error.
        """
        ending, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = json.dumps([str(Path.cwd()), list(arguments), dict(environment)]).encode()
        with theirs:
            files = [theirs.fileno(), source, output.fileno(), errors.fileno()]
            socket.send_fds(self._requests, [request], files)
        return ForkedCommand(int(ending.recv(16)), ending)


_servers: list[CommandServer] = []
"""The running server of commands; empty if there is none."""


def running_server() -> CommandServer | None:
    """Return the running server of commands; None if there is none."""
    return _servers[-1] if _servers else None


def heed_signals() -> None:
    """Restore the default actions of SIGINT and SIGHUP, which `nohup` or `&` of a shell disables."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def serving_commands() -> Iterator[None]:
    """Run the server of commands for the duration of the block; only on Linux."""
    if sys.platform != "linux":
        yield
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            command = (sys.executable, "-m", __name__, str(theirs.fileno()))
            # OpenBLAS must start no threads: only a process with a single thread can fork safely.
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
            process = subprocess.Popen(
                command,
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                preexec_fn=heed_signals,
            )
        with process:
            _servers.append(CommandServer(ours))
            yield
            _servers.clear()
            ours.close()


def _serve(requests: socket.socket) -> list[str] | None:
    """Fork for each request. Return the arguments in a forked process, and None after the last request."""
    running: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready != requests.fileno():
                poll.unregister(ready)
                os.close(ready)
                pid, ending = running.pop(ready)
                _tell(ending, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                ending.close()
                continue
            request, received, *_ = socket.recv_fds(requests, _REQUEST_BYTES, 1 + _STANDARD_STREAMS)
            if not request:
                return None
            ending = socket.socket(fileno=received[0])
            if pid := os.fork():
                for stream in received[1:]:
                    os.close(stream)
                _tell(ending, pid)
                watched = os.pidfd_open(pid)
                running[watched] = pid, ending
                poll.register(watched, select.POLLIN)
                continue
            for watched, (_, other) in running.items():
                os.close(watched)
                other.close()
            requests.close()
            ending.close()
            return _become(request, received[1:])


def _tell(ending: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # the process that sent the request may have ended
        ending.send(str(number).encode())


def _become(request: bytes, streams: Sequence[int]) -> list[str]:
    """Adopt the folder, environment and standard streams of a request, and return the arguments."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    folder, arguments, environment = json.loads(request)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return list(arguments)


def _run_command() -> None:
    """Run `mnemon`, and end the process without destroying the imported modules: that would copy their pages.

    Threads, exit handlers, garbage collection and output end as at a normal exit of Python.
    """
    code = 0
    try:
        runpy.run_module("mnemon", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        code = end.code
    # Python calls these two functions at its own exit and has no public names for them. `_shutdown` also
    # tells executors to end their threads; otherwise the wait for these threads would never end.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    for name in _IMPORTED:
        import_module(name)
    gc.freeze()
    if (arguments := _serve(socket.socket(fileno=int(sys.argv[1])))) is not None:
        sys.argv = ["mnemon", *arguments]
        _run_command()
