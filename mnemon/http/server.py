"""HTTP server in this process, and its listening socket."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

_GRACE = 5
"""Seconds for open requests to finish when the server stops."""

READ_SECONDS = 30.0
"""Seconds for a client to read `MIN_READ_BYTES` of a waiting answer; else its connection ends."""

MIN_READ_BYTES = 64 * 1024
"""Bytes that a client has to read in `READ_SECONDS`: 2 KiB/s."""

IDLE_SECONDS = 30.0
"""Seconds between two checks of a connection, which ends if it had no request and no read between them."""


class SlowClientProtocol(H11Protocol):
    """HTTP protocol that ends a connection whose client reads too slowly or is idle.

    uvicorn waits for a slow reader, and for the first request of a connection, without a limit: a client that
    does not read would keep its request open, even after its key was revoked.
    """

    _unread: asyncio.TimerHandle | None = None
    _unused: asyncio.TimerHandle | None = None

    # As in `H11Protocol`, the transport's type is narrower than in asyncio's protocol.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_use()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._unread, self._unused):
            if timer:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread:
            self._unread.cancel()

    def _watch_reading(self) -> None:
        size = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(READ_SECONDS, self._end_slow_reader, size - MIN_READ_BYTES)

    def _end_slow_reader(self, limit: int) -> None:
        """End the connection if more than `limit` bytes wait for its client; else check again later."""
        if self.transport.get_write_buffer_size() > limit:
            self.transport.abort()
        else:
            self._watch_reading()

    def _watch_use(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            waiting = self.transport.get_write_buffer_size()
            self._unused = self.loop.call_later(IDLE_SECONDS, self._end_idle_connection, self.cycle, waiting)
        else:
            self._unused = self.loop.call_later(IDLE_SECONDS, self._watch_use)

    def _end_idle_connection(self, answered: RequestResponseCycle | None, waiting: int) -> None:
        """End the connection if it is idle: no request since `answered`, and no read. Else check again later.

        The write buffer may still have the last answer: it had `waiting` bytes at the last check. The client
        reads if it has since taken at least `MIN_READ_BYTES` of these bytes, or all of them.
        """
        is_read = waiting > 0 and self.transport.get_write_buffer_size() <= max(waiting - MIN_READ_BYTES, 0)
        if self.cycle is answered and not is_read:
            self.transport.abort()
        else:
            self._watch_use()


class _UvicornServer(uvicorn.Server):
    """Uvicorn server that leaves the handling of signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serve_http(application: ASGIApp, listening: socket.socket) -> AsyncIterator[None]:
    """Answer requests on a socket for the duration of the block; then give open requests 5 seconds to end."""
    # Connections inherit this option. asyncio sets it only on sockets that name their protocol, which those
    # of `socket.create_server` do not: a body then waits up to 40 ms for the acknowledgement of its headers.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = _UvicornServer(
        uvicorn.Config(
            application,
            http=SlowClientProtocol,
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
        OSError: the port is in use or may not be used, or the host is not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        # The standard library adds the address, which callers name in their own words.
        reason = (error.strerror or "").partition(" (while attempting")[0]
        raise OSError(error.errno, reason) from error


def format_address(listening: socket.socket) -> str:
    """Return the address of the socket for a browser on this machine."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - to be opened, not listened on
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
