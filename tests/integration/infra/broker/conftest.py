"""Fixtures of tests with a server of their own, or in which the process under test is told to end."""

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
    """Set when this process is told to end; faults of earlier tests in the process are discarded."""
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
