"""Lists of the streams and consumers of an account, which the server sends page by page."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo, StreamInfo

PAGE: Final = 256
"""Number of streams or consumers on one page of the server."""

Info = TypeVar("Info")


async def list_streams(stream_context: JetStreamContext) -> list[StreamInfo]:
    """Return all streams of the account, those of other programs included.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    return await _read_pages(lambda offset: stream_context.streams_info(offset=offset))


async def list_consumers(stream_context: JetStreamContext, stream: str) -> list[ConsumerInfo]:
    """Return all consumers of a stream: besides mnemon's durables, one for each client that follows the log.

    Raises:
        nats.errors.Error: the server does not answer, or the stream is absent.
    """
    return await _read_pages(lambda offset: stream_context.consumers_info(stream, offset=offset))


async def _read_pages(read_page: Callable[[int], Awaitable[list[Info]]]) -> list[Info]:
    """Return the entries of all pages; `read_page` returns the page that begins at an offset."""
    found: list[Info] = []
    while True:
        page = await read_page(len(found))
        found += page
        if len(page) < PAGE:
            return found
