"""The page beside a stack: a process of its own, which begins when somebody looks, and ends when nobody does.

What bots wait for runs in the process that starts it, so no page is made there; and where nobody looks, a
page costs neither time nor memory. The socket is open all the time: who comes first waits for the process.
"""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import structlog

from mnemon.admin.page_port import listening_for
from mnemon.admin.session.tokens import new_link, token_of
from mnemon.http.socket_binding import shown
from mnemon_infra.config import Deployment

log = structlog.get_logger("admin")

END_TIMEOUT = 10.0
"""Seconds for the process to end once it is told."""

_PAUSE = 5.0
"""Seconds before it is started again after a failure."""


class PageAddress(NamedTuple):
    """Where the page is, and a link to it that logs in once."""

    address: str
    login: str


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """What the process is told: which servers, and who may look."""

    deployment: Deployment
    data: Path
    token: str
    links: list[str] = field(default_factory=list)

    def spelled(self) -> str:
        """As JSON on one line, with secrets in it: for a pipe, and for nothing else."""
        own: dict[str, Any] = {"data": str(self.data), "token": self.token, "links": self.links}
        return json.dumps({"deployment": self.deployment.spelled()} | own)

    @classmethod
    def read(cls, text: str | bytes) -> Self:
        """What `spelled` gave."""
        said = json.loads(text)
        deployment = Deployment.read(said["deployment"])
        return cls(deployment, Path(said["data"]), said["token"], said["links"])


@asynccontextmanager
async def served_beside(data: Path, deployment: Deployment, port: int | None) -> AsyncIterator[PageAddress]:
    """Have the page of a folder served, on this machine only, as long as the block lasts.

    Raises:
        mnemon.admin.page_port.PortTaken: somebody else has the port that was chosen.
        OSError: the token can be neither read nor written.
    """
    kept = deployment.admin_token
    order = LaunchOptions(deployment, data, kept.get_secret_value() if kept else token_of(data), [new_link()])
    with listening_for(data, port) as listening:
        keeper = asyncio.create_task(_keep(listening, order), name="admin")
        try:
            address = shown(listening)
            yield PageAddress(address, f"{address}/login?key={order.links[0]}")
        finally:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper


async def _keep(listening: socket.socket, order: LaunchOptions) -> None:
    while True:
        await _somebody(listening)
        code = await _served(listening, order)
        if code:
            log.error("admin process ended, restarting", exit_code=code)
            await asyncio.sleep(_PAUSE)


async def _somebody(listening: socket.socket) -> None:
    """Wait until a connection is to be taken; it is left for the process to take."""
    came = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(listening, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(listening)


async def _served(listening: socket.socket, order: LaunchOptions) -> int:
    """Start the process, and wait for its end."""
    number = listening.fileno()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mnemon.admin", str(number)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        pass_fds=(number,),
        # A Ctrl-C in the terminal is for us: this one is told to end.
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(order.spelled().encode() + b"\n")
        async for line in process.stdout:
            with suppress(ValueError):  # a link that was used is not one for the next process
                order.links.remove(line.decode().strip())
        return await process.wait()
    finally:
        await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(END_TIMEOUT):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
