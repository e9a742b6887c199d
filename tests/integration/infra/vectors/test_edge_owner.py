"""The Edge owner pauses its writers on request of other processes, and sends them its points."""

import asyncio
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from nats.aio.client import Client

from mnemon_infra.models.embedding import Sparse
from mnemon_infra.process.gate import Gate
from mnemon_infra.vectors.edge import owner as edge_owner
from mnemon_infra.vectors.edge.engine import open_edge
from mnemon_infra.vectors.edge.owner import MOST, EdgeOwner, serve_requests
from mnemon_infra.vectors.edge.shard import Shard
from mnemon_infra.vectors.embedding_metadata import EmbeddingMetadata
from mnemon_infra.vectors.port import Collection, Point, PointPage, VectorsUnavailable

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


@pytest.mark.long
async def test_writers_stay_paused_during_a_swap_that_exceeds_the_lease(
    connection: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_owner, "LEASE", LEASE)
    gate, stop_work, was_open = Gate(), Shard.stop_background_work, list[bool]()

    async def stop_slowly(shard: Shard) -> None:
        await asyncio.sleep(2 * LEASE)
        was_open.append(gate.is_open)
        await stop_work(shard)

    monkeypatch.setattr(Shard, "stop_background_work", stop_slowly)
    live, to = tmp_path / "vectors", tmp_path / "vectors_next"
    model = EmbeddingMetadata(model="none", dimension=None)
    async with open_edge(to, model):
        pass
    async with open_edge(live, model) as vectors, serve_requests(connection, vectors, live, gate):
        await EdgeOwner(connection).pause_writers()
        await EdgeOwner(connection).swap_folder(to)
        assert gate.is_open
    assert was_open == [False] * len(Collection)


class LargeVectors:
    """Points of 160 KB each; `read` counts the points of all pages."""

    def __init__(self, count: int) -> None:
        self.ids = sorted(uuid4() for _ in range(count))
        self.read = 0

    async def read_page(self, _: Collection, begin: UUID | None, most: int) -> PointPage:
        start = self.ids.index(begin) if begin else 0
        page = self.ids[start : start + most]
        self.read += len(page)
        words = Sparse(list(range(20_000)), [1.0] * 20_000)
        points = [Point(each, ("acme", "anna"), {}, words) for each in page]
        return PointPage(points, self.ids[start + most] if start + most < len(self.ids) else None)


async def test_owner_reads_few_large_points_beyond_the_limit_of_its_reply(
    connection: Client, tmp_path: Path
) -> None:
    vectors = LargeVectors(MOST)
    seen: list[UUID] = []
    async with serve_requests(connection, cast("Any", vectors), tmp_path, Gate()):
        owner, begin = EdgeOwner(connection), None
        while True:
            page = await owner.read_page(Collection.MESSAGES, begin)
            seen += [each.id for each in page.points]
            begin = page.following
            if begin is None:
                break
    assert seen == vectors.ids
    assert vectors.read <= 4 * MOST
