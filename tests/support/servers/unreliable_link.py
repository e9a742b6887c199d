"""Proxy to a NATS server that cuts connections at a chosen byte sequence."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Link:
    """Proxy that forwards bytes both ways. It cuts all connections once when a chosen byte sequence passes.

    `cuts` counts these cuts; after a cut, the sequence is None again.
    """

    def __init__(self, upstream: str) -> None:
        target = urlsplit(upstream)
        self._host, self._port = target.hostname, target.port
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.lose_sent: bytes | None = None
        """Bytes from a client at which to cut; these and later bytes are lost. None: no cut."""
        self.lose_answer: bytes | None = None
        """Bytes from the server at which to cut; these and later bytes are lost. None: no cut."""
        self.cuts = 0

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self._cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(self._host, self._port)
        self._writers += [writer, server_writer]
        for coroutine in (
            self._pass(reader, server_writer, "lose_sent"),
            self._pass(server_reader, writer, "lose_answer"),
        ):
            task = asyncio.create_task(coroutine)
            self._tasks.add(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, trap: str) -> None:
        try:
            while data := await reader.read(65_536):
                before, sprung, _ = data.partition(getattr(self, trap) or b"\0 never")
                writer.write(before)
                await writer.drain()
                if sprung:
                    setattr(self, trap, None)
                    self.cuts += 1
                    self._cut()
                    return
        except ConnectionError:
            pass
        finally:
            writer.close()

    def _cut(self) -> None:
        for writer in self._writers:
            writer.close()
        self._writers.clear()


@asynccontextmanager
async def link_to(upstream: str) -> AsyncIterator[Link]:
    """Run a proxy to the server at the address `upstream` for the duration of the block."""
    link = Link(upstream)
    await link.open()
    try:
        yield link
    finally:
        await link.close()
