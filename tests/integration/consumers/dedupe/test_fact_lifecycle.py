"""The life of a fact from its proposal to its end, with an embedder whose similarities are preset."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nats.errors
import psycopg
import pytest
import pytest_asyncio

from mnemon_consumers.app import run_consumers
from mnemon_consumers.dedupe.handler import DedupeConsumer
from mnemon_consumers.index.handler import IndexConsumer
from mnemon_consumers.maintain.handler import LIMITS, MaintainConsumer
from mnemon_consumers.persist.handler import PersistConsumer
from mnemon_consumers.retrieve.handler import RetrieveConsumer
from mnemon_contracts.settings.groups import FactLimits, SettingsV1
from mnemon_contracts.streams import WORK
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.delivery import Delivery
from mnemon_infra.settings.store import change_settings, write_settings
from mnemon_infra.vectors.engines import open_vectors, reset_vectors
from mnemon_infra.vectors.port import Collection, VectorStore
from mnemon_infra.vectors.vector_index import VectorIndex
from tests.support.facts.preset_embedder import PresetEmbedder
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock

TIMEOUT = 60.0
SIMILAR = (
    ("Живу в Москве", "Переехал в Санкт-Петербург", 0.7),
    ("Работаю программистом", "Работаю Python разработчиком", 0.9),
    ("Пользователь любит Python", "Питон — любимый язык пользователя", 0.97),
    ("The user drinks green tea", "Tea that is green is what they have", 0.96),
)


@dataclass(frozen=True)
class Remembering:
    """All consumers in operation, with the requests, events, rows and points of the tests."""

    stock: Stock
    deployment: Deployment
    vectors: VectorStore

    async def save(self, text: str, **fact: Any) -> dict[str, Any]:
        return await self.stock.ask("save", text=text, **fact)

    async def facts(self, **request: Any) -> dict[str, str]:
        return {each["id"]: each["text"] for each in (await self.stock.ask("read", **request))["facts"]}

    async def found(self, query: str, **request: Any) -> list[str]:
        reply = await self.stock.ask("search", query=query, limit=50, **request)
        return [hit["id"] for hit in reply["hits"]]

    async def log_of(self, event: str) -> list[dict[str, Any]]:
        """Return the bodies of the events of a name, in log order."""
        return [json.loads(delivery.body) for delivery in await self._deliveries(event)]

    async def positions(self, event: str) -> list[int]:
        """Return the log positions of the events of a name."""
        return [delivery.sequence for delivery in await self._deliveries(event)]

    async def _deliveries(self, event: str) -> list[Delivery]:
        found = [
            page async for page in read_event_pages(self.stock.connection, f"memory.acme.u1.{event}.v1", 0)
        ]
        return [delivery for page in found for delivery in page]

    async def is_settled(self) -> None:
        """Wait until every consumer has handled the log and its triggers."""
        stream_context = self.stock.connection.jetstream()
        async with asyncio.timeout(TIMEOUT):
            while True:
                end = (await stream_context.stream_info("LOG")).state.last_seq
                for consumer in ("persist", "index"):
                    assert await AppliedPosition(consumer).wait_for(stream_context, end, TIMEOUT) >= end
                waiting = (await stream_context.stream_info(WORK, subjects_filter="work.>")).state.subjects
                # No consumer of the fixture handles triggers of `compact` and `extract`.
                for_us = [each for each in waiting or () if not each.startswith(("work.comp", "work.extr"))]
                if not for_us and (await stream_context.stream_info("LOG")).state.last_seq == end:
                    return
                await asyncio.sleep(0.02)

    async def points(self) -> set[str]:
        """Return the ids of the facts that have a point."""
        pages = [page async for page in self.vectors.scroll(Collection.MEMORIES, ("acme", "u1"))]
        return {str(stored.payload["fact_id"]) for page in pages for stored in page}

    def rows_with(self, text: str) -> int:
        """Return the number of rows of `memory_events` that contain the text."""
        url = self.deployment.database_url
        assert url is not None
        address = url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(address) as connection:
            schema = self.deployment.database_schema
            statement = f"SELECT count(*) FROM {schema}.memory_events WHERE body::text LIKE %s"
            found = connection.execute(statement, (f"%{text}%",)).fetchone()
        assert found is not None
        return int(found[0])


@asynccontextmanager
async def remembering(stock: Stock, deployment: Deployment, folder: Path) -> AsyncIterator[Remembering]:
    located = locate_vectors(deployment, folder).model_copy(update={"maintain_seconds": 1})
    given = PresetEmbedder(SIMILAR)
    async with AsyncExitStack() as ends:
        opened = open_vectors(located, model=given.model, dimension=given.dimension)
        vector_index = VectorIndex(await ends.enter_async_context(opened), given)
        database = Database(located)
        await database.open()
        ends.push_async_callback(database.close)
        await ends.enter_async_context(PersistConsumer(database, located).run())
        await ends.enter_async_context(IndexConsumer(database, vector_index, located).run())
        await ends.enter_async_context(DedupeConsumer(database, vector_index, located).run())
        await ends.enter_async_context(MaintainConsumer(database, located).run())
        await ends.enter_async_context(RetrieveConsumer(database, vector_index, located).run())
        yield Remembering(stock, located, vector_index.vectors)


@pytest_asyncio.fixture
async def memory(stock: Stock, deployment: Deployment, tmp_path: Path) -> AsyncIterator[Remembering]:
    async with remembering(stock, deployment, tmp_path / "vectors") as memory:
        yield memory


async def test_changed_home_updates_the_fact_and_keeps_the_former_version(
    memory: Remembering,
) -> None:
    first = await memory.save("Живу в Москве")
    moved = await memory.save("Переехал в Санкт-Петербург")
    assert (moved["decision"], moved["id"]) == ("updated", first["id"])
    assert await memory.facts(min_seq=moved["seen_seq"]) == {first["id"]: "Переехал в Санкт-Петербург"}
    (updated,) = await memory.log_of("fact.updated")
    assert updated["decision"]["similarity"] == pytest.approx(0.7, abs=0.001)
    assert (updated["decision"]["relation"], updated["decision"]["evidence"]) == (
        "update",
        "a new value: residence",
    )
    reply = await memory.stock.ask("get", id=first["id"], min_seq=moved["seen_seq"])
    assert [version["text"] for version in reply["versions"]] == ["Живу в Москве"]


async def test_same_statement_about_another_person_is_a_separate_fact(memory: Remembering) -> None:
    for text in (
        "Живу в Москве",
        "Мама живёт в Москве",
        "Is allergic to nuts",
        "His sister is allergic to nuts",
    ):
        assert (await memory.save(text))["decision"] == "saved"


async def test_refined_statement_rewrites_the_fact(memory: Remembering) -> None:
    first = await memory.save("Работаю программистом", importance=7)
    second = await memory.save("Работаю Python разработчиком", importance=3)
    assert (second["decision"], second["id"]) == ("updated", first["id"])
    seq = second["seen_seq"]
    assert await memory.facts(min_seq=seq) == {first["id"]: "Работаю Python разработчиком"}
    (updated,) = await memory.log_of("fact.updated")
    assert updated["former"]["text"] == "Работаю программистом"
    assert updated["fact"]["importance"] == 7
    assert updated["decision"]["similarity"] == pytest.approx(0.9, abs=0.001)
    reply = await memory.stock.ask("get", id=first["id"], min_seq=seq)
    assert [version["text"] for version in reply["versions"]] == ["Работаю программистом"]


async def test_paraphrase_is_kept_once(memory: Remembering) -> None:
    for text in ("Пользователь любит Python", "Питон — любимый язык пользователя"):
        saved = await memory.save(text)
    facts = await memory.facts(min_seq=saved["seen_seq"])
    assert list(facts.values()) == ["Питон — любимый язык пользователя"]

    await write_settings(
        memory.stock.connection, SettingsV1.model_validate({"dedupe": {"on_duplicate": "confirm"}})
    )
    await memory.save("The user drinks green tea")
    async with asyncio.timeout(TIMEOUT):
        while (again := await memory.save("Tea that is green is what they have"))["decision"] != "confirmed":
            await memory.stock.ask("forget", id=again["id"])  # until `dedupe` has received the settings
            await memory.save("The user drinks green tea")
    facts = await memory.facts(min_seq=again["seen_seq"])
    assert "The user drinks green tea" in facts.values()


async def test_a_forgotten_fact_is_gone_from_both_stores(memory: Remembering) -> None:
    kept = await memory.save("The user keeps a thing-1 in the garden")
    gone = await memory.save("The user keeps a thing-2 in the cellar")
    forgotten = await memory.stock.ask("forget", id=gone["id"])

    seq = forgotten["seen_seq"]
    assert list(await memory.facts(min_seq=seq)) == [kept["id"]]
    assert gone["id"] not in await memory.found("thing-2 in the cellar", min_seq=seq)
    assert (await memory.stock.ask("get", id=gone["id"], min_seq=seq))["error"]["code"] == "not_found"
    context = await memory.stock.ask("context", query="thing-2 in the cellar", min_seq=seq)
    assert "thing-2" not in str(context["messages"])

    await memory.is_settled()
    assert await memory.points() == {kept["id"]}
    assert (memory.rows_with("thing-1"), memory.rows_with("thing-2")) == (1, 0)

    again = await memory.save("The user keeps a thing-2 in the cellar")
    assert again["decision"] == "saved"
    assert again["id"] not in (kept["id"], gone["id"])  # ids are not reused


@pytest.mark.long
async def test_fact_saved_while_its_duplicate_is_forgotten_is_kept(memory: Remembering) -> None:
    again: dict[str, Any]
    for number in range(12):
        first = await memory.save(f"The user keeps a thing-{number} in the garden")
        _, again = await asyncio.gather(
            memory.stock.ask("forget", id=first["id"]),
            memory.save(f"There is one thing-{number} that belongs to them"),
        )
        # If the proposal is decided first, its update ends with the fact; if later, it becomes a new fact.
        facts = await memory.facts(min_seq=again["seen_seq"])
        if again["decision"] == "updated":
            assert (await memory.positions("fact.updated"))[-1] < (await memory.positions("fact.forgotten"))[
                -1
            ]
        else:
            assert facts.keys() == {again["id"]}
            await memory.stock.ask("forget", id=again["id"])


@pytest.mark.long
async def test_an_expired_fact_is_hidden_at_once_and_then_removed(memory: Remembering) -> None:
    facts: dict[str, str] = {}
    patience = timedelta(seconds=0.75)
    while not facts:  # under load, the fact may expire before it is read
        patience *= 2
        soon = datetime.now(UTC) + patience
        saved = await memory.save("The user borrows a thing-3 for now", expires_at=soon.isoformat())
        facts = await memory.facts(min_seq=saved["seen_seq"])
        assert facts.keys() == {saved["id"]} or datetime.now(UTC) >= soon

    async with asyncio.timeout(TIMEOUT):
        while datetime.now(UTC) < soon:
            await asyncio.sleep(0.05)
    assert await memory.facts() == {}
    assert await memory.found("thing-3 for now") == []

    async with asyncio.timeout(TIMEOUT):
        while len(await memory.log_of("fact.expired")) < len(await memory.log_of("fact.saved")):
            await asyncio.sleep(0.05)
    await memory.is_settled()
    assert await memory.points() == set()
    assert memory.rows_with("thing-3") == 0


async def test_full_archive_evicts_the_least_important_oldest_fact(memory: Remembering) -> None:
    limits = FactLimits(per_user=3, profile=2, working=2)
    await write_settings(memory.stock.connection, SettingsV1(limits=limits))
    await memory.save("The user keeps a thing-1 somewhere", tier="archive", importance=5)
    await memory.save("The user keeps a thing-2 somewhere", tier="archive", importance=2)
    await memory.save("The user keeps a thing-3 somewhere", tier="profile", importance=5)
    await memory.save("The user keeps a thing-4 somewhere", tier="archive", importance=5)
    last = await memory.save("The user keeps a thing-5 somewhere", tier="archive", importance=5)

    kept = {text.split()[4] for text in (await memory.facts(min_seq=last["seen_seq"])).values()}
    assert kept == {"thing-3", "thing-4", "thing-5"}
    evicted = [each["fact_id"] for each in await memory.log_of("fact.evicted")]
    assert evicted == ["ar_002", "ar_001"]
    await memory.is_settled()
    assert await memory.points() == {"pf_001", "ar_003", "ar_004"}
    assert (memory.rows_with("thing-1"), memory.rows_with("thing-2")) == (0, 0)


@pytest.mark.long
async def test_lowered_limit_is_enforced_by_the_schedule(memory: Remembering) -> None:
    for number in range(1, 5):
        last = await memory.save(f"The user keeps a thing-{number} somewhere", tier="profile")
    connection = memory.stock.connection
    evicted = await connection.subscribe("memory.acme.u1.fact.evicted.v1")
    own = {"limits": {"profile": 2}}
    await change_settings(connection, lambda document: own, tenant="acme")
    has_begun = False
    while not has_begun:
        # The server's schedule publishes this trigger once an hour. The setting may not have arrived yet.
        await connection.jetstream().publish(LIMITS, b"", stream=WORK)
        with suppress(nats.errors.TimeoutError):
            await evicted.next_msg(1)
            has_begun = True
    await evicted.next_msg(TIMEOUT)
    await memory.is_settled()
    assert set((await memory.facts(min_seq=last["seen_seq"])).values()) == {
        "The user keeps a thing-3 somewhere",
        "The user keeps a thing-4 somewhere",
    }


async def test_undecidable_proposal_blocks_no_other(memory: Remembering) -> None:
    text = {"text": "The user keeps a thing-1 somewhere"}
    await memory.stock.publish("memory.acme.u1.fact.proposed.v1", text, Nats_Msg_Id="x" * 300)
    await memory.stock.publish(
        "memory.acme.u1.fact.proposed.v1", {**text, "expires_at": "9998-12-31T23:59:59-14:00"}
    )
    saved = await memory.save("The user keeps a thing-2 somewhere")
    assert saved["decision"] == "saved"
    assert list(await memory.facts(min_seq=saved["seen_seq"])) == [saved["id"]]


async def test_lost_vectors_are_rebuilt(stock: Stock, deployment: Deployment, tmp_path: Path) -> None:
    async with remembering(stock, deployment, tmp_path / "vectors") as memory:
        said = await stock.say("the lantern stands on the pier")
        saved = await memory.save("The user keeps a thing-1 in the garden")
        await memory.is_settled()
    located = locate_vectors(deployment, tmp_path / "others")
    if located.qdrant_url:
        await reset_vectors(located)
    async with run_consumers(("index", "persist", "retrieve"), located):
        reply: dict[str, Any] = {"hits": ()}
        async with asyncio.timeout(TIMEOUT):
            while {hit["id"] for hit in reply["hits"]} != {f"LOG:{said}", saved["id"]}:
                reply = await stock.ask(
                    "search", query="lantern thing-1 garden", scope=["memories", "messages"]
                )
