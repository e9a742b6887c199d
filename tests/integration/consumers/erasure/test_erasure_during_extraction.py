"""A user is forgotten while models have what was said: nothing comes back, and the others are answered."""

import asyncio
from collections.abc import Iterator

import pytest
from nats.aio.client import Client

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_infra.config import Deployment
from tests.integration.conftest import Stock
from tests.integration.consumers.delivery.test_redelivery import persisted, swept
from tests.integration.consumers.erasure.test_user_erasure import positions
from tests.support.pipelines.extraction import MODEL, Extracting


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
async def extracting(stock: Stock, deployment: Deployment, server: ProviderServer) -> Extracting:
    extracting = Extracting.on(stock, deployment, server)
    await extracting.set(provider="openai", model=MODEL, idle_seconds=1.0, pool_seconds=0)
    return extracting


async def test_of_a_batch_in_flight_nothing_comes_back_and_the_others_are_answered(
    extracting: Extracting, stock: Stock, connection: Client
) -> None:
    extracting.server.state.polls = 1_000_000
    async with extracting.running("persist", "extract", "retrieve"):
        await extracting.cut_of(3)
        await extracting.becomes("SELECT state FROM batches", ("submitted",))
        (batch,) = extracting.server.state.batches("openai")

        receipt = await stock.ask("erase")

        assert receipt["provider_batches"] == [batch.id]
        assert receipt["removed"]["model_batches"] == 1
        assert set(receipt["pending"]) == {"vectors"}, "nobody indexes"
        batch.polls = 0
        await extracting.tick()
        await extracting.becomes("SELECT state FROM batches", ("completed",))
        assert sorted(await extracting.texts()) == ["User likes thing 0", "User likes thing 2"]
        assert await positions(connection, "u1") == [receipt["seen_seq"]]
        assert set((await stock.ask("erase", verify=True))["left"].values()) == {0}


async def test_a_batch_that_is_about_nobody_any_more_is_cancelled(
    extracting: Extracting, stock: Stock, connection: Client
) -> None:
    extracting.server.state.polls = 1_000_000
    async with extracting.running("persist", "extract", "retrieve"):
        await extracting.cut_of(1)
        await extracting.becomes("SELECT state FROM batches", ("submitted",))
        receipt = await stock.ask("erase", "acme.u0")
        await extracting.tick()
        await extracting.becomes("SELECT state FROM batches", ("failed",))
        assert extracting.server.state.requests[-1].endswith("/cancel")
        assert await positions(connection, "u0") == [receipt["seen_seq"]]


async def test_an_answer_that_a_model_gives_meanwhile_is_dropped(
    extracting: Extracting, stock: Stock, connection: Client
) -> None:
    await extracting.set(mode="online")
    extracting.server.state.seconds = 2.0
    async with extracting.running("persist", "extract", "retrieve"):
        await stock.say("I like tea")
        await extracting.becomes("SELECT count(*) FROM windows", (1,))
        async with asyncio.timeout(30):
            while not extracting.server.state.requests:
                await asyncio.sleep(0.02)
        receipt = await stock.ask("erase")
        await extracting.becomes("SELECT is_settled FROM erasures", (True,))
        assert await extracting.sql("SELECT * FROM windows") == []
        await extracting.tick()
        await persisted(connection)
        assert await positions(connection, "u1") == [receipt["seen_seq"]]


async def test_what_was_answered_at_that_very_moment_is_taken_out_of_the_log(
    extracting: Extracting, stock: Stock, connection: Client
) -> None:
    said = await stock.say("I like tea")
    erased = await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 2**53 - 1})
    stretch = {"conversation": "c", "from_seq": said, "to_seq": said}
    await stock.publish("memory.acme.u1.window.answered.v1", {**stretch, "outcome": "proposed"})
    learned = {"text": "Likes tea", "lineage": {"sources": [said]}}
    await stock.publish("memory.acme.u1.fact.proposed.v1", learned)
    await stock.publish("memory.acme.u1.summary.written.v1", {**stretch, "summary_id": "s", "text": "Tea."})
    new = await stock.say("good morning")
    async with extracting.running("persist", "retrieve"):
        await persisted(connection)
        await swept(connection)
        assert await stock.contents() == ["good morning"]
    assert sorted(await positions(connection, "u1")) == [erased, new]


async def test_of_a_conversation_in_a_batch_nothing_comes_back_and_the_rest_of_the_user_is_answered(
    extracting: Extracting, stock: Stock, connection: Client
) -> None:
    extracting.server.state.polls = 1_000_000
    async with extracting.running("persist", "extract", "retrieve"):
        for place in ("home", "trip"):
            await stock.say(f"I like {place}", f"acme.u1.{place}")
        await extracting.becomes("SELECT count(*) FROM windows WHERE batch_id IS NOT NULL", (2,))
        await extracting.becomes("SELECT DISTINCT state FROM batches", ("submitted",))
        receipt = await stock.ask("erase", conversation="trip")
        assert receipt["removed"]["model_batches"] == 1
        assert len(receipt["provider_batches"]) == 1
        for batch in extracting.server.state.batches("openai"):
            batch.polls = 0
        await extracting.tick()
        await extracting.becomes("SELECT count(*) FROM batches WHERE state = 'submitted'", (0,))
        await extracting.is_projected()
        assert await extracting.texts() == ["User likes home"]
        left = await stock.ask("erase", verify=True, conversation="trip")
        assert set(left["left"].values()) == {0}
