"""Process of the admin page: `python -m mnemon.admin DESCRIPTOR`, started by `mnemon.admin.launcher`.

DESCRIPTOR is the number of the file descriptor of a listening socket, which the process inherits.
"""

import asyncio
import os
import signal
import socket
import sys
import time

from starlette.types import ASGIApp, Receive, Scope, Send

from mnemon.admin.application import create_application
from mnemon.admin.connections import ServerConnections
from mnemon.admin.launcher import LaunchOptions
from mnemon.admin.session.access import Access
from mnemon.admin.session.ended_sessions import read_ended_sessions
from mnemon.http.server import serve_http
from mnemon_infra.process.cancellation import patch_wait_for
from mnemon_infra.process.child_process import open_parent_pipe
from mnemon_infra.telemetry.logging import configure_logging

NICENESS = 10
"""Niceness of the process, which gives it a tenth of the weight of the process that answers bots."""

IDLE_SECONDS = 15 * 60.0
"""Seconds without a request after which the process ends."""


class _ActivityTracker:
    """ASGI middleware that records the time of the last request."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application
        self._requested_at = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._requested_at = time.monotonic()
        await self._application(scope, receive, send)

    async def wait_until_idle(self) -> None:
        """Wait until no request has come for `IDLE_SECONDS` seconds."""
        # Poll instead of waiting for an event: each request would have to reset a timer.
        while (left := self._requested_at + IDLE_SECONDS - time.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)


async def _serve_page(descriptor: int) -> None:
    """Serve the page until it is idle, until SIGTERM, or until the parent closes standard input or dies."""
    os.nice(NICENESS)
    parent = await open_parent_pipe()
    order = LaunchOptions.from_line(await parent.readline())
    access = Access(
        order.token, order.links, lambda link: print(link, flush=True), read_ended_sessions(order.data)
    )
    page = _ActivityTracker(create_application(ServerConnections(order.deployment, order.data), access))
    async with serve_http(page, socket.socket(fileno=descriptor)):
        ends = [asyncio.create_task(parent.read()), asyncio.create_task(page.wait_until_idle())]
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ends[1].cancel)
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()


if __name__ == "__main__":
    configure_logging()
    patch_wait_for()
    asyncio.run(_serve_page(int(sys.argv[1])))
