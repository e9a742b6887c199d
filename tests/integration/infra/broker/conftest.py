"""Fixtures of tests that start their own NATS server or in which the process receives SIGTERM."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from mnemon_infra.process.fault import take_fault
from tests.support.servers.log_server import LogServer


@pytest.fixture
async def terminated() -> AsyncIterator[asyncio.Event]:
    """Event that is set when this process receives SIGTERM; a fault of an earlier test is discarded."""
    take_fault()
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, event.set)
    yield event
    loop.remove_signal_handler(signal.SIGTERM)


@pytest_asyncio.fixture
async def log_server(tmp_path: Path) -> AsyncIterator[LogServer]:
    log_server = LogServer(tmp_path)
    await log_server.server.start()
    yield log_server
    await log_server.server.stop()
