"""Redecide on a running mnemon: preview of the changes, their publication, and their reversal."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from mnemon.operations.rebuild.redecide import RedecideOutcome, Redecision
from mnemon_consumers.dedupe.handler import DedupeConsumer
from mnemon_consumers.index.handler import IndexConsumer
from mnemon_consumers.persist.handler import PersistConsumer
from mnemon_consumers.retrieve.handler import RetrieveConsumer
from mnemon_contracts.settings.document import Document, set_value
from mnemon_contracts.subjects import build_thing_filter
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.broker.streams.log_reader import read_events
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Connection, Database
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.rebuild.generations import open_exclusive_site
from mnemon_infra.settings.store import change_settings
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.port import Collection, VectorStore
from mnemon_infra.vectors.vector_index import VectorIndex
from tests.support.facts.preset_embedder import PresetEmbedder
from tests.support.log.audited_log import AuditedLog
from tests.support.pipelines.rebuild import RebuildReport, verdict_on
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed

TEA, SENCHA = "User likes green tea", "They are fond of sencha"


def updates_above(threshold: float) -> Callable[[Document], Document]:
    return lambda document: set_value(document, "dedupe.update_threshold", threshold)


APART, TOGETHER = updates_above(0.95), updates_above(0.8)


@dataclass(frozen=True)
class Decided:
    """A running mnemon whose settings kept two similar facts apart, and methods that redecide."""

    stock: Stock
    deployment: Deployment
    database: Database
    vectors: VectorStore
    model: PresetEmbedder

    def by(self, edit: Callable[[Document], Document]) -> Redecision:
        return Redecision(self.stock.connection, self.database, self.model, edit)

    async def make(self, edit: Callable[[Document], Document]) -> RedecideOutcome:
        await change_settings(self.stock.connection, edit)
        outcome = await self.by(edit).make_corrections(lambda *_: None)
        end = (await self.stock.connection.jetstream().stream_info("LOG")).state.last_seq
        await indexed(self.stock, end)
        return outcome

    async def said(self, user: str = "u1") -> dict[str, str]:
        end = await read_log_end(self.stock.connection.jetstream())
        facts = (await self.stock.ask("read", f"acme.{user}", min_seq=end))["facts"]
        return {each["id"]: each["text"] for each in facts}

    async def points(self) -> set[str]:
        pages = [page async for page in self.vectors.scroll(Collection.MEMORIES, ("acme", "u1"))]
        return {str(stored.payload["fact_id"]) for page in pages for stored in page}

    async def made(self) -> list[str]:
        """Return the types of the events that redecide has published, in log order."""
        found = read_events(self.stock.connection, build_thing_filter("acme", "u1", "fact"), 0)
        return [type(each).__name__ async for _, _, each in found if getattr(each, "by", None) == "redecide"]


@pytest_asyncio.fixture
async def decided(stock: Stock, deployment: Deployment, tmp_path: Path) -> AsyncIterator[Decided]:
    located = locate_vectors(deployment, tmp_path / "vectors")
    await change_settings(stock.connection, APART)
    model = PresetEmbedder(similar=[(TEA, SENCHA, 0.9)])
    async with AsyncExitStack() as ends:
        opened = open_vectors(located, model=model.model, dimension=model.dimension)
        vector_index = VectorIndex(await ends.enter_async_context(opened), model)
        database = await ends.enter_async_context(Database(located))
        await ends.enter_async_context(PersistConsumer(database, located).run())
        await ends.enter_async_context(IndexConsumer(database, vector_index, located).run())
        await ends.enter_async_context(DedupeConsumer(database, vector_index, located).run())
        await ends.enter_async_context(RetrieveConsumer(database, vector_index, located).run())
        yield Decided(stock, located, database, vector_index.vectors, model)


@pytest.mark.long
async def test_redecide_previews_merges_and_reverts(decided: Decided) -> None:
    for user in ("u1", "erased"):
        for text in (TEA, SENCHA):
            assert (await decided.stock.ask("save", f"acme.{user}", text=text))["decision"] == "saved"
    apart = await decided.said()
    erased = await decided.stock.ask("erase", "acme.erased")
    await indexed(decided.stock, erased["seen_seq"])

    shown = await decided.by(TOGETHER).preview_corrections(lambda *_: None)
    assert (shown.users, shown.changed, dict(shown.counts)) == (1, 1, {"merged": 1, "rewritten": 1})
    assert [(each.owner, each.change.text) for each in shown.first] == [
        (("acme", "u1"), TEA),
        (("acme", "u1"), SENCHA),
    ]
    assert (await decided.said(), await decided.made()) == (apart, [])

    together = await decided.make(TOGETHER)
    assert together == shown
    ((kept, text),) = (await decided.said()).items()
    assert (text, await decided.points()) == (SENCHA, {kept})
    assert await decided.made() == ["FactConfirmedV1", "FactUpdatedV1", "FactForgottenV1"]
    assert (await decided.make(TOGETHER)).changed == 0
    again = await decided.stock.ask("save", text="Somebody walks to the office")
    await decided.stock.ask("forget", id=again["id"])

    await change_settings(decided.stock.connection, APART)
    both = (decided.by(APART).make_corrections(lambda *_: None) for _ in range(2))
    assert sorted(each.changed for each in await asyncio.gather(*both)) in ([0, 1], [1, 1])
    await decided.make(APART)
    assert await decided.made() == [
        *("FactConfirmedV1", "FactUpdatedV1", "FactForgottenV1"),
        *("FactSavedV1", "FactUpdatedV1"),
    ]
    assert sorted((await decided.said()).values()) == sorted(apart.values())
    assert await decided.points() == set(await decided.said())

    audited = AuditedLog(decided.stock, decided.deployment, decided.database)
    await audited.settled()
    assert await audited.faults() == []
    async with open_exclusive_site(decided.deployment) as place:
        verdict = await verdict_on(place, RebuildReport())
    assert verdict.is_settled
    assert [each for each in verdict.first if each.table == "memory_events"] == []


async def test_redecide_waits_for_running_decisions(decided: Decided) -> None:
    for text in (TEA, SENCHA):
        saved = await decided.stock.ask("save", "acme.u1", text=text)
    await indexed(decided.stock, saved["seen_seq"])
    async with hold_lock(decided.database, "acme", "u1"):
        making = asyncio.create_task(decided.make(TOGETHER))
        # Wait until redecide waits for the user's lock.
        while not await waits_for_lock(decided.database):
            assert not making.done()
        assert await decided.made() == []
    assert (await making).changed == 1


async def waits_for_lock(database: Database) -> bool:
    async def query(connection: Connection) -> bool:
        cursor = await connection.execute(
            "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
            " WHERE locktype = 'advisory' AND NOT granted AND datname = current_database())"
        )
        return await cursor.fetchone() == (True,)

    return await database.run_query(query)
