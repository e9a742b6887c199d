"""A point that is searchable before its row exists stays searchable during sweeps; a late point does not."""

import asyncio
from pathlib import Path

import pytest
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_consumers.index import handler
from mnemon_consumers.index.decide import IndexedDocument, IndexPlan
from mnemon_consumers.index.point_writer import build_document_items, write_batch
from mnemon_consumers.index.sweep import sweep_points
from mnemon_contracts.events.memory import DocumentAddedV1
from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.settings.store import read_settings
from mnemon_infra.vectors.port import Collection
from mnemon_infra.vectors.vector_index import VectorIndex, build_points, open_index
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed

OWNER = ("acme", "u1")


async def test_message_without_row_keeps_its_point(
    deployment: Deployment, stock: Stock, tmp_path: Path
) -> None:
    located = locate_vectors(deployment, tmp_path / "vectors")
    context = stock.connection.jetstream()
    async with run_consumers(("index",), located), Database(located) as database:
        async with run_consumers(("persist",), located):
            await stock.say("cleared")
            cleared = await indexed(stock, await stock.publish("chat.acme.u1.-.cleared.v1"))
        body = {"document_id": "d", "text": "A text.", "title": "A title"}
        await stock.say("said since")
        last = await stock.publish("memory.acme.u1.document.added.v1", body)
        async with asyncio.timeout(60):
            while await read_applied_position(context, "index") < last:
                await asyncio.sleep(0.02)
        async with open_index(located, (await read_settings(stock.connection)).embedding) as vector_index:
            assert not await sweep_points(stock.connection, database, vector_index, OWNER, cleared)
            for collection in Collection.MESSAGES, Collection.DOCUMENTS:
                assert await vector_index.vectors.count(collection) == 1
            async with run_consumers(("persist",), located):
                await indexed(stock, last)
            assert await sweep_points(stock.connection, database, vector_index, OWNER, cleared)
            for collection in Collection.MESSAGES, Collection.DOCUMENTS:
                assert await vector_index.vectors.count(collection) == 1


async def test_an_older_version_of_a_document_that_comes_later_leaves_the_newer_one(
    deployment: Deployment, stock: Stock, tmp_path: Path
) -> None:
    located = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(("index", "persist"), located), Database(located) as database:
        body = {"document_id": "d", "text": "One paragraph about a thing.\n\n" * 60}
        last = await indexed(stock, await stock.publish("memory.acme.u1.document.added.v1", body))
        async with open_index(located, (await read_settings(stock.connection)).embedding) as vector_index:
            vectors = vector_index.vectors
            before = [page async for page in vectors.scroll(Collection.DOCUMENTS, OWNER)]
            older = IndexedDocument(OWNER, "an older one", DocumentAddedV1(document_id="d", text="Short."))
            await vectors.upsert(
                Collection.DOCUMENTS, await build_points(vector_index, await build_document_items(older))
            )
            assert await sweep_points(stock.connection, database, vector_index, OWNER, last)
            assert [page async for page in vectors.scroll(Collection.DOCUMENTS, OWNER)] == before


async def test_point_of_a_cleared_message_that_is_written_late_is_removed(
    deployment: Deployment, stock: Stock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one = locate_vectors(deployment, tmp_path / "vectors").model_copy(
        update={"index_batch": 1, "index_writers": 2}
    )
    held, swept = asyncio.Event(), asyncio.Event()

    async def write(vector_index: VectorIndex, batch: IndexPlan) -> None:
        if batch.messages:
            held.set()
            await swept.wait()
        await write_batch(vector_index, batch)

    async def sweep(
        connection: Client, database: Database, vector_index: VectorIndex, owner: Owner, seq: int
    ) -> bool:
        is_done = await sweep_points(connection, database, vector_index, owner, seq)
        if await read_applied_position(connection.jetstream()) >= seq:
            swept.set()
        return is_done

    monkeypatch.setattr(handler, "write_batch", write)
    monkeypatch.setattr(handler, "sweep_points", sweep)
    async with run_consumers(("persist", "index"), one_by_one):
        await stock.say("I like tea")
        await held.wait()
        await indexed(stock, await stock.publish("chat.acme.u1.-.cleared.v1"))
        embedding = (await read_settings(stock.connection)).embedding
        async with open_index(one_by_one, embedding) as vector_index:
            assert await vector_index.vectors.count(Collection.MESSAGES) == 0
