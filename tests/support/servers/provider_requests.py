"""Waits for requests at a local provider server."""

import asyncio
from typing import Final

from mnemon_bench.provider_server.state import ProviderState

TIMEOUT: Final = 60.0


async def wait_for_requests(state: ProviderState, number: int = 1) -> None:
    """Wait until the server is answering this number of requests at the same time, or more.

    Raises:
        TimeoutError: the server had fewer requests in flight for a minute.
    """
    async with asyncio.timeout(TIMEOUT):
        while len(state.in_flight) < number:
            await asyncio.sleep(0.01)
