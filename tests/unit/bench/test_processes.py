"""Processes of the benches: output that the bench does not read never blocks a process."""

import asyncio
from pathlib import Path

import pytest

from mnemon_bench.workers.processes import spawn_server

MODULE = """
import sys
from pathlib import Path
print("ready", flush=True)
for _ in range(1_000):
    print("x" * 1_000, flush=True)
Path(sys.argv[1]).touch()
"""
"""A program that writes more bytes than a pipe and the reader's buffer can hold, then creates a file."""


async def test_a_process_that_logs_much_does_not_wait_for_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "talkative.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = tmp_path / "done"

    async with spawn_server("talkative", str(done)):
        async with asyncio.timeout(30):
            while not done.exists():
                await asyncio.sleep(0.02)
