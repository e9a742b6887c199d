"""A log that stores events without confirming them, or that refuses them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import patch

from nats.aio.client import Client

from mnemon_consumers.retrieve.verbs import user_log
from mnemon_contracts.streams import LOG


@asynccontextmanager
async def store_without_confirmation(connection: Client) -> AsyncIterator[None]:
    """In the block, the log stores events without a confirmation, so that senders do not learn the outcome.

    In the block, `retrieve` waits only 0.2 s for a confirmation, which never arrives.
    """
    with patch.object(user_log, "PUBLISH_TIMEOUT", 0.2):
        async with _change_log(connection, no_ack=True):
            yield


@asynccontextmanager
async def refuse_events(connection: Client) -> AsyncIterator[None]:
    """In the block, the log refuses events of more than one byte."""
    async with _change_log(connection, max_msg_size=1):
        yield


@asynccontextmanager
async def _change_log(connection: Client, **changes: bool | int) -> AsyncIterator[None]:
    stream_context = connection.jetstream()
    config = (await stream_context.stream_info(LOG)).config
    await stream_context.update_stream(config.evolve(**changes))
    yield
    await stream_context.update_stream(config)
