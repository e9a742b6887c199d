"""`update` by id: the new text is found at once, duplicates and full tiers are refused."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from mnemon_consumers.dedupe.handler import DedupeConsumer
from mnemon_consumers.persist.handler import PersistConsumer
from mnemon_consumers.retrieve.handler import RetrieveConsumer
from mnemon_consumers.retrieve.verbs.facts import points
from mnemon_contracts.settings.groups import FactLimits, SettingsV1
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.settings.store import write_settings
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.port import Collection, VectorStore
from mnemon_infra.vectors.vector_index import VectorIndex
from tests.support.facts.preset_embedder import PresetEmbedder
from tests.support.log.unconfirmed_events import refuse_events, store_without_confirmation
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed, persisted


class Stuck(PresetEmbedder):
    """An embedder that does not return for texts with the word "comet"."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any("comet" in text for text in texts):
            await asyncio.Event().wait()
        return await super().embed(texts)


@dataclass(frozen=True)
class Unindexed:
    """Consumers without `index`: `dedupe` and `retrieve` write the points. The limit is one profile fact."""

    stock: Stock
    vectors: VectorStore

    async def found(self, query: str) -> list[str]:
        return [hit["id"] for hit in (await self.stock.ask("search", query=query))["hits"]]

    async def points(self) -> set[str]:
        """Return the ids of the facts that have a point."""
        pages = [page async for page in self.vectors.scroll(Collection.MEMORIES, ("acme", "u1"))]
        return {str(stored.payload["fact_id"]) for page in pages for stored in page}

    async def refused(self, fact_id: str, **changes: str) -> str:
        error = (await self.stock.ask("update", id=fact_id, **changes))["error"]
        assert error["code"] == "refused"
        return str(error["message"])


@pytest_asyncio.fixture
async def unindexed(stock: Stock, deployment: Deployment, tmp_path: Path) -> AsyncIterator[Unindexed]:
    located = locate_vectors(deployment, tmp_path / "vectors")
    await write_settings(stock.connection, SettingsV1(limits=FactLimits(profile=1, working_days=3)))
    model = Stuck()
    async with AsyncExitStack() as ends:
        opened = open_vectors(located, model=model.model, dimension=model.dimension)
        vector_index = VectorIndex(await ends.enter_async_context(opened), model)
        database = Database(located)
        await database.open()
        ends.push_async_callback(database.close)
        await ends.enter_async_context(PersistConsumer(database, located).run())
        await ends.enter_async_context(DedupeConsumer(database, vector_index, located).run())
        await ends.enter_async_context(RetrieveConsumer(database, vector_index, located).run())
        yield Unindexed(stock, vector_index.vectors)


async def test_an_updated_fact_is_found_by_its_new_words_at_once(unindexed: Unindexed) -> None:
    saved = await unindexed.stock.ask("save", text="Anna plays the violin")
    await persisted(unindexed.stock.connection, saved["seen_seq"])
    assert await unindexed.found("violin") == [saved["id"]]
    await unindexed.stock.ask("update", id=saved["id"], text="Anna breeds alpacas")
    assert await unindexed.found("alpacas") == [saved["id"]]
    assert await unindexed.found("violin") == []
    again = await unindexed.stock.ask("save", text="Anna breeds alpacas")
    assert (again["decision"], again["id"]) == ("confirmed", saved["id"])


async def test_refused_update_leaves_the_former_words_searchable(unindexed: Unindexed) -> None:
    saved = await unindexed.stock.ask("save", text="Anna plays the violin")
    await persisted(unindexed.stock.connection, saved["seen_seq"])
    async with refuse_events(unindexed.stock.connection):
        refused = await unindexed.stock.ask("update", id=saved["id"], text="Anna breeds alpacas")
    assert refused["error"]["code"] == "unavailable"
    assert await unindexed.found("violin") == [saved["id"]]
    assert await unindexed.found("alpacas") == []


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_unconfirmed_update_is_found_by_its_new_words_once_it_is_indexed(stock: Stock) -> None:
    saved = await stock.ask("save", text="Anna plays the violin")
    async with store_without_confirmation(stock.connection):
        unconfirmed = await stock.ask("update", id=saved["id"], text="Anna breeds alpacas")
    assert unconfirmed["error"]["retryable"]
    await indexed(stock, await read_log_end(stock.connection.jetstream()))
    (hit,) = (await stock.ask("search", query="alpacas"))["hits"]
    assert (hit["id"], hit["text"]) == (saved["id"], "Anna breeds alpacas")
    assert (await stock.ask("search", query="violin"))["hits"] == []


async def test_a_forgotten_fact_has_no_point(unindexed: Unindexed) -> None:
    violin = await unindexed.stock.ask("save", text="Anna plays the violin")
    alpacas = await unindexed.stock.ask("save", text="Anna breeds alpacas")
    assert await unindexed.points() == {violin["id"], alpacas["id"]}
    await unindexed.stock.ask("forget", id=violin["id"])
    assert await unindexed.points() == {alpacas["id"]}


async def test_unanswered_embedding_delays_no_update(
    unindexed: Unindexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(points, "EMBEDDING_TIMEOUT", 0.1)
    saved = await unindexed.stock.ask("save", text="Anna plays the violin")
    reply = await unindexed.stock.ask("update", id=saved["id"], text="Anna has seen a comet")
    assert reply["fact"]["text"] == "Anna has seen a comet"


async def test_update_refuses_a_duplicate_text(unindexed: Unindexed) -> None:
    violin = await unindexed.stock.ask("save", text="Anna plays the violin")
    alpacas = await unindexed.stock.ask("save", text="Anna breeds alpacas")
    assert violin["id"] in await unindexed.refused(alpacas["id"], text="anna plays the violin.")
    await unindexed.stock.ask("forget", id=violin["id"])
    reply = await unindexed.stock.ask("update", id=alpacas["id"], text="anna plays the violin.")
    assert reply["fact"]["text"] == "anna plays the violin."


async def test_an_update_moves_no_fact_into_a_full_tier(unindexed: Unindexed) -> None:
    full = await unindexed.stock.ask("save", text="Anna plays the violin", tier="profile")
    other = await unindexed.stock.ask("save", text="Anna breeds alpacas", tier="archive")
    assert "profile is full" in await unindexed.refused(other["id"], tier="profile")
    moved = await unindexed.stock.ask("update", id=full["id"], tier="working")
    in_three_days = datetime.now(UTC) + timedelta(days=3)
    assert abs(datetime.fromisoformat(moved["fact"]["expires_at"]) - in_three_days) < timedelta(minutes=1)
    reply = await unindexed.stock.ask("update", id=other["id"], tier="profile")
    assert reply["fact"]["tier"] == "profile"
    kept = await unindexed.stock.ask("update", id=full["id"], tier="archive")
    assert kept["fact"].get("expires_at") is None
