"""HTTP server in this process, and its listening socket."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import uvicorn
from starlette.types import ASGIApp

_GRACE = 5
"""Seconds for open requests to finish when the server stops."""


class _UvicornServer(uvicorn.Server):
    """Uvicorn server that leaves the handling of signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serve_http(application: ASGIApp, listening: socket.socket) -> AsyncIterator[None]:
    """Answer requests on a socket for the duration of the block; then give open requests `_GRACE` seconds."""
    # Connections inherit it. asyncio sets it only on sockets that name their protocol, which those of
    # `socket.create_server` do not: a body then waits up to 40 ms for the acknowledgement of its headers.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = _UvicornServer(
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
    task = asyncio.create_task(server.serve([listening]), name="http")
    try:
        yield
    finally:
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await task


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that accepts connections.

    Raises:
        OSError: another process has the port, or the host is not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def format_address(listening: socket.socket) -> str:
    """Return the address of the socket for a browser on this machine."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - to be opened, not listened on
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
