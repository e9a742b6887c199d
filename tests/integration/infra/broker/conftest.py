"""Fixtures of tests in which the process under test is told to end."""

import asyncio
import signal
from collections.abc import AsyncIterator

import pytest

from mnemon_infra.process.fault import take_fault


@pytest.fixture
async def terminated() -> AsyncIterator[asyncio.Event]:
    """Set when this process is told to end; faults of earlier tests in the process are discarded."""
    take_fault()
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, event.set)
    yield event
    loop.remove_signal_handler(signal.SIGTERM)
