"""Erasure while models read messages of the user: other users get their answers, the erased one none."""

import asyncio
from typing import Any, Literal

import pytest
from nats.aio.client import Client

from mnemon_consumers.extract import windowing
from mnemon_consumers.extract.answers import publication
from mnemon_consumers.persist import erasure
from mnemon_infra.broker.dead_letters.writer import store_letter
from mnemon_infra.broker.erasure.purge import purge_messages
from mnemon_infra.broker.erasure.scope import ErasureScope
from mnemon_infra.broker.streams.triggers import list_trigger_subjects
from mnemon_infra.database.engine import Database
from mnemon_infra.database.windows.window_repository import insert_windows
from mnemon_infra.settings.store import LiveSettings
from tests.integration.consumers.delivery.test_redelivery import swept
from tests.integration.consumers.erasure.test_user_erasure import positions
from tests.support.pipelines.extraction import ExtractionHarness
from tests.support.stock_client import Stock, handled, persisted


@pytest.mark.long
async def test_erased_user_of_a_running_batch_stays_gone_and_others_are_answered(
    batch_extraction: ExtractionHarness, stock: Stock, connection: Client
) -> None:
    batch_extraction.server.state.polls = 1_000_000
    async with batch_extraction.running("persist", "extract", "retrieve"):
        await batch_extraction.cut_of(3)
        await batch_extraction.becomes("SELECT state FROM batches", ("submitted",))
        (batch,) = batch_extraction.server.state.list_batches("openai")

        receipt = await stock.ask("erase")

        assert receipt["provider_batches"] == [batch.id]
        assert receipt["removed"]["model_batches"] == 1
        assert set(receipt["pending"]) == {"vectors"}, "nobody indexes"
        batch.polls = 0
        await batch_extraction.tick()
        await batch_extraction.becomes("SELECT state FROM batches", ("completed",))
        assert sorted(await batch_extraction.texts()) == ["User likes thing 0", "User likes thing 2"]
        assert await positions(connection, "u1") == [receipt["seen_seq"]]
        assert set((await stock.ask("erase", verify=True))["left"].values()) == {0}


@pytest.mark.long
async def test_batch_of_only_erased_users_is_cancelled(
    batch_extraction: ExtractionHarness, stock: Stock, connection: Client
) -> None:
    batch_extraction.server.state.polls = 1_000_000
    async with batch_extraction.running("persist", "extract", "retrieve"):
        await batch_extraction.cut_of(1)
        await batch_extraction.becomes("SELECT state FROM batches", ("submitted",))
        receipt = await stock.ask("erase", "acme.u0")
        await batch_extraction.tick()
        await batch_extraction.becomes("SELECT state FROM batches", ("failed",))
        assert batch_extraction.server.state.requests[-1].endswith("/cancel")
        assert await positions(connection, "u0") == [receipt["seen_seq"]]


@pytest.mark.long
async def test_answer_arriving_during_the_erasure_is_dropped(
    batch_extraction: ExtractionHarness, stock: Stock, connection: Client
) -> None:
    await batch_extraction.set(mode="online")
    released = batch_extraction.server.state.hold_answers()
    async with batch_extraction.running("persist", "extract", "retrieve"):
        await stock.say("I like tea")
        await batch_extraction.becomes("SELECT count(*) FROM windows", (1,))
        await batch_extraction.is_asked()
        receipt = await stock.ask("erase")
        released.set()
        await batch_extraction.becomes("SELECT is_settled FROM erasures", (True,))
        assert await batch_extraction.sql("SELECT * FROM windows") == []
        await batch_extraction.tick()
        await handled(connection, "persist")
        assert await positions(connection, "u1") == [receipt["seen_seq"]]


async def test_answer_published_during_the_erasure_is_purged(
    batch_extraction: ExtractionHarness, stock: Stock, connection: Client
) -> None:
    said = await stock.say("I like tea")
    erased = await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 2**53 - 1})
    stretch = {"conversation": "c", "from_seq": said, "to_seq": said}
    await stock.publish("memory.acme.u1.window.answered.v1", {**stretch, "outcome": "proposed"})
    learned = {"text": "Likes tea", "lineage": {"sources": [said]}}
    await stock.publish("memory.acme.u1.fact.proposed.v1", learned)
    await stock.publish("memory.acme.u1.summary.written.v1", {**stretch, "summary_id": "s", "text": "Tea."})
    new = await stock.say("good morning")
    async with batch_extraction.running("persist", "retrieve"):
        await handled(connection, "persist")
        await swept(connection)
        assert await stock.contents() == ["good morning"]
    assert sorted(await positions(connection, "u1")) == [erased, new]


@pytest.mark.long
async def test_erased_conversation_of_a_batch_stays_gone_and_others_are_answered(
    batch_extraction: ExtractionHarness, stock: Stock, connection: Client
) -> None:
    batch_extraction.server.state.polls = 1_000_000
    async with batch_extraction.running("persist", "extract", "retrieve"):
        for place in ("home", "trip"):
            await stock.say(f"I like {place}", f"acme.u1.{place}")
        await batch_extraction.becomes("SELECT count(*) FROM windows WHERE batch_id IS NOT NULL", (2,))
        await batch_extraction.becomes("SELECT DISTINCT state FROM batches", ("submitted",))
        receipt = await stock.ask("erase", conversation="trip")
        assert receipt["removed"]["model_batches"] == 1
        assert len(receipt["provider_batches"]) == 1
        for batch in batch_extraction.server.state.list_batches("openai"):
            batch.polls = 0
        await batch_extraction.tick()
        await batch_extraction.becomes("SELECT count(*) FROM batches WHERE state = 'submitted'", (0,))
        await batch_extraction.is_projected()
        assert await batch_extraction.texts() == ["User likes home"]
        left = await stock.ask("erase", verify=True, conversation="trip")
        assert set(left["left"].values()) == {0}


@pytest.mark.long
@pytest.mark.parametrize("mode", ["online", "batch"])
async def test_letter_of_an_answer_stored_during_the_erasure_is_removed(
    batch_extraction: ExtractionHarness,
    stock: Stock,
    monkeypatch: pytest.MonkeyPatch,
    mode: Literal["online", "batch"],
) -> None:
    judged, purged = asyncio.Event(), asyncio.Event()

    async def store(*letter: Any) -> None:
        judged.set()
        await purged.wait()
        await store_letter(*letter)

    async def purge(connection: Client, erased: ErasureScope) -> bool:
        is_done = await purge_messages(connection, erased)
        purged.set()
        await batch_extraction.becomes("SELECT count(*) FROM windows WHERE NOT is_answered", (0,))
        return is_done

    monkeypatch.setattr(publication, "store_letter", store)
    monkeypatch.setattr(erasure, "purge_messages", purge)
    batch_extraction.server.state.answering = lambda _: "Sorry, I would rather not talk about tea."
    await batch_extraction.set(mode=mode, attempts=1)
    async with batch_extraction.running("persist", "extract"):
        await stock.say("I like tea")
        await judged.wait()
        await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 2**53 - 1})
        await batch_extraction.becomes("SELECT is_settled FROM erasures", (True,))
    assert await batch_extraction.letters() == []


@pytest.mark.long
async def test_window_that_is_cut_during_the_erasure_is_removed(
    batch_extraction: ExtractionHarness,
    stock: Stock,
    connection: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cutting, settled = asyncio.Event(), asyncio.Event()

    async def insert(*arguments: Any, **options: Any) -> None:
        cutting.set()
        await settled.wait()
        await insert_windows(*arguments, **options)

    monkeypatch.setattr(windowing, "insert_windows", insert)
    await batch_extraction.set(mode="online")
    settings = LiveSettings()
    async with (
        batch_extraction.running("persist"),
        settings.watch_bucket(connection),
        Database(batch_extraction.deployment) as database,
    ):
        await persisted(connection, await stock.say("I like tea"))
        cut = asyncio.create_task(
            windowing.WindowCutter(database, settings).cut_messages(
                connection, [("acme", "u1")], all_due=True
            )
        )
        await cutting.wait()
        await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 2**53 - 1})
        await batch_extraction.becomes("SELECT is_settled FROM erasures", (True,))
        settled.set()
        await cut
    assert await batch_extraction.sql("SELECT count(*) FROM windows") == [(1,)]
    async with batch_extraction.running():
        await batch_extraction.becomes("SELECT count(*) FROM windows", (0,))
    assert await batch_extraction.log_of("window.answered") == []


@pytest.mark.long
async def test_message_sent_soon_after_the_erasure_is_read_once_its_conversation_is_idle(
    batch_extraction: ExtractionHarness, stock: Stock, connection: Client
) -> None:
    await batch_extraction.set(mode="online", idle_seconds=10.0)
    async with batch_extraction.running():
        await stock.say("I like tea")
        while not await list_trigger_subjects(connection, "schedule.extract.>"):
            await asyncio.sleep(0.02)
        await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 2**53 - 1})
        await batch_extraction.becomes("SELECT is_settled FROM erasures", (True,))
        await stock.say("I like coffee")
        await batch_extraction.has(1, "window.answered")
    assert await batch_extraction.texts() == ["User likes coffee"]
