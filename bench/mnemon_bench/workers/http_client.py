"""HTTP client that costs little compared with the measured server: plain requests on one connection."""

import asyncio
import json
import time
from typing import Any, Final, NamedTuple

IDLE_SECONDS: Final = 2.0
"""Seconds without a request after which to open a new connection: servers close idle ones after 5 s."""


class TimedAnswer(NamedTuple):
    """An answer, with the time in ms from the request to its first chunk.

    An answer with a `Content-Length` counts as one chunk.
    """

    status: int
    body: bytes
    first: float


class HttpConnection:
    """A connection to a server on this machine, for one request at a time.

    Args:
        port: port of the server.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0

    async def close(self) -> None:
        if self._streams:
            self._streams[1].close()
            await self._streams[1].wait_closed()
            self._streams = None

    async def post(self, path: str, body: Any, key: str | None = None) -> TimedAnswer:
        """Send a request with a JSON body, and return the answer with its times.

        The times do not include the opening of the connection. `key` is the API key; None for a request
        without a key.
        """
        reader, writer = await self._connect()
        content = json.dumps(body).encode()
        authorization = f"Authorization: Bearer {key}\r\n" if key else ""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n{authorization}"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        begun = time.perf_counter()
        writer.write(head.encode() + content)
        status, headers = _parse_head(await reader.readuntil(b"\r\n\r\n"))
        if "content-length" in headers:
            answer = await reader.readexactly(int(headers["content-length"]))
            first = time.perf_counter()
        else:
            answer = await _read_chunk(reader)
            first = time.perf_counter()
            while chunk := await _read_chunk(reader):
                answer += chunk
        self._used = time.perf_counter()
        return TimedAnswer(status, answer, (first - begun) * 1000)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None or time.perf_counter() - self._used > IDLE_SECONDS:
            await self.close()
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        return self._streams


async def _read_chunk(reader: asyncio.StreamReader) -> bytes:
    size = int(await reader.readuntil(b"\r\n"), 16)
    return (await reader.readexactly(size + 2))[:-2]


def _parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}
