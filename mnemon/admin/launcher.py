"""Launcher of the admin page next to a stack, in a separate process that runs only while the page is used.

The process of the stack answers bots, so it does not render pages; and a page that is not used costs neither
time nor memory. The socket is open all the time: the first request waits until the process has started.
"""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import structlog

from mnemon.admin.session.tokens import create_link_key, load_token, open_admin_folder
from mnemon.http.server import format_address, open_listening_socket
from mnemon_infra.config import Deployment
from mnemon_infra.process.data_folder import replace_file

log = structlog.get_logger("admin")

END_TIMEOUT = 10.0
"""Seconds for the process to end before it is killed."""

_PAUSE = 5.0
"""Seconds before the process is restarted after a failure."""


class PageAddress(NamedTuple):
    """The address of the page, and a link that logs in once."""

    address: str
    login: str


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """Options of the process: the servers, the folder, the token and the login links."""

    deployment: Deployment
    data: Path
    token: str
    links: list[str] = field(default_factory=list)

    def to_line(self) -> str:
        """Return the options as one line of JSON. The line has secrets: use it for a pipe only."""
        own: dict[str, Any] = {"data": str(self.data), "token": self.token, "links": self.links}
        return json.dumps({"deployment": self.deployment.to_json()} | own)

    @classmethod
    def from_line(cls, text: str | bytes) -> Self:
        """Parse the output of `to_line`."""
        said = json.loads(text)
        deployment = Deployment.from_json(said["deployment"])
        return cls(deployment, Path(said["data"]), said["token"], said["links"])


@asynccontextmanager
async def serve_admin_page(
    data: Path, deployment: Deployment, port: int | None
) -> AsyncIterator[PageAddress]:
    """Serve the page of a folder, on this machine only, for the duration of the block.

    Raises:
        mnemon.admin.launcher.PagePortTaken: another process has the chosen port.
        OSError: the token can be neither read nor written.
    """
    kept = deployment.admin_token
    order = LaunchOptions(
        deployment, data, kept.get_secret_value() if kept else load_token(data), [create_link_key()]
    )
    with open_page_socket(data, port) as listening:
        keeper = asyncio.create_task(_supervise(listening, order), name="admin")
        try:
            address = format_address(listening)
            yield PageAddress(address, f"{address}/login?key={order.links[0]}")
        finally:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper


async def _supervise(listening: socket.socket, order: LaunchOptions) -> None:
    while True:
        await _wait_for_connection(listening)
        code = await _run_process(listening, order)
        if code:
            log.error("admin process ended, restarting", exit_code=code)
            await asyncio.sleep(_PAUSE)


async def _wait_for_connection(listening: socket.socket) -> None:
    """Wait for a connection, and leave its acceptance to the process."""
    came = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(listening, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(listening)


async def _run_process(listening: socket.socket, order: LaunchOptions) -> int:
    """Start the process and wait for its end; return its exit code."""
    number = listening.fileno()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mnemon.admin", str(number)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        pass_fds=(number,),
        # A Ctrl-C in the terminal reaches only this process, which ends the new process.
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(order.to_line().encode() + b"\n")
        async for line in process.stdout:
            with suppress(ValueError):  # the next process must not accept a used link
                order.links.remove(line.decode().strip())
        return await process.wait()
    finally:
        await _end_process(process)


async def _end_process(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(END_TIMEOUT):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


_HOST: Final = "127.0.0.1"


class PagePortTaken(Exception):
    """Another process has the chosen port."""


def open_page_socket(data: Path, port: int | None) -> socket.socket:
    """Return a listening socket on this machine.

    Without a port, take the former port of the folder if it is free, else any free port.

    Raises:
        PagePortTaken: another process has the chosen port.
    """
    if port:
        try:
            return _save_port(data, open_listening_socket(_HOST, port))
        except OSError as error:
            raise PagePortTaken(f"the admin page cannot listen on port {port}: {error.strerror}") from error
    with suppress(OSError, ValueError):
        return open_listening_socket(_HOST, int((open_admin_folder(data) / "port").read_text("ascii")))
    return _save_port(data, open_listening_socket(_HOST, 0))


def _save_port(data: Path, listening: socket.socket) -> socket.socket:
    replace_file(open_admin_folder(data) / "port", str(listening.getsockname()[1]))
    return listening
