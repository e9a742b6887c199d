"""The Edge owner pauses its writers for other processes."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from nats.aio.client import Client

from mnemon_infra.process.gate import Gate
from mnemon_infra.vectors.edge import owner as edge_owner
from mnemon_infra.vectors.edge.owner import EdgeOwner, serve_requests
from mnemon_infra.vectors.port import VectorsUnavailable

LEASE = 0.5


async def test_second_pause_keeps_writers_paused_beyond_the_lease_of_the_first(
    connection: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_owner, "LEASE", LEASE)
    gate, loop = Gate(), asyncio.get_running_loop()
    async with serve_requests(connection, cast("Any", None), tmp_path, gate):
        owner = EdgeOwner(connection)
        await owner.pause_writers()
        await asyncio.sleep(LEASE / 2)
        second = loop.time()
        await owner.pause_writers()
        async with asyncio.timeout(60):
            async with gate.enter():
                opened = loop.time()
    assert opened - second >= LEASE


async def test_writers_resume_when_a_pause_exceeds_its_lease(
    connection: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_owner, "_TIMEOUT", 0.2)
    gate = Gate()
    async with serve_requests(connection, cast("Any", None), tmp_path, gate), gate.enter():
        with pytest.raises(VectorsUnavailable, match="did not end within"):
            await EdgeOwner(connection).pause_writers()
        assert gate.is_open
