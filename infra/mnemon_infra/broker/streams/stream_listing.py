"""Lists of the streams and consumers of an account, which the server sends page by page."""

from typing import Final

from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo, StreamInfo

PAGE: Final = 256
"""Number of streams or consumers on one page of the server."""


async def list_streams(stream_context: JetStreamContext) -> list[StreamInfo]:
    """Return all streams of the account, those of other programs included.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    found: list[StreamInfo] = []
    while True:
        page = await stream_context.streams_info(offset=len(found))
        found += page
        if len(page) < PAGE:
            return found


async def list_consumers(stream_context: JetStreamContext, stream: str) -> list[ConsumerInfo]:
    """Return all consumers of a stream: besides mnemon's durables, one for each client that follows the log.

    Raises:
        nats.errors.Error: the server does not answer, or the stream is absent.
    """
    found: list[ConsumerInfo] = []
    while True:
        page = await stream_context.consumers_info(stream, offset=len(found))
        found += page
        if len(page) < PAGE:
            return found
