"""Announcements of swaps on a Qdrant server, whose collections all processes use."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon_infra.process.gate import Gate

_EXCHANGED: Final = "changed.vectors.all.exchanged"


@asynccontextmanager
async def watch_swaps(connection: Client, gate: Gate) -> AsyncIterator[None]:
    """Count each swap or recreation of a Qdrant server's collections in the gate, while the block runs."""

    async def count_swap(message: Msg) -> None:
        gate.count_exchange()

    subscription = await connection.subscribe(_EXCHANGED, cb=count_swap)
    try:
        yield
    finally:
        await subscription.unsubscribe()


async def announce_swap(connection: Client) -> None:
    """Tell all processes that the collections of a Qdrant server were swapped or created again.

    Raises:
        nats.errors.Error: the NATS server does not answer.
    """
    await connection.publish(_EXCHANGED)
    await connection.flush()
