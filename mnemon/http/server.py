"""HTTP server in this process."""

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
    """Answer requests on a socket for the duration of the block; let open requests finish at its end."""
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
