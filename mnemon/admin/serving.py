"""Serving the page in this process."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import uvicorn
from starlette.types import ASGIApp

_GRACE = 5
"""Seconds for what is being answered when the process is to end."""


class _Server(uvicorn.Server):
    """One that leaves signals to the process it runs in."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(application: ASGIApp, listening: socket.socket) -> AsyncIterator[None]:
    """Answer requests on a socket as long as the block lasts; what has begun is ended."""
    server = _Server(
        uvicorn.Config(
            application,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE,
        )
    )
    task = asyncio.create_task(server.serve([listening]), name="admin")
    try:
        yield
    finally:
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await task


def listening_on(host: str, port: int) -> socket.socket:
    """A socket that takes connections already.

    Raises:
        OSError: the port is taken, or the host is not one of ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def shown(listening: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
