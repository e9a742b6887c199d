"""The process of an HTTP service that its first client starts."""

import asyncio
import sys

import pytest
from structlog.testing import capture_logs

from mnemon.http import lazy_process
from mnemon.http.lazy_process import LazyProcess, start_on_demand
from mnemon.http.server import open_listening_socket


async def test_process_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_process, "_PAUSE", 0.0)
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    process = LazyProcess("mnemon.gateway", lambda: "{}", lambda _: None)
    with open_listening_socket("127.0.0.1", 0) as listening, capture_logs() as said:
        async with start_on_demand(process, listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            async with asyncio.timeout(30):
                while len(said) < 3:
                    await asyncio.sleep(0)
            writer.close()
    assert {(each["event"], each["error"]) for each in said} == {
        ("HTTP process start failed, retrying", "FileNotFoundError")
    }
