"""What users say becomes proposed facts: the real consumers, and a local server in place of a provider."""

import asyncio
from collections.abc import Iterator

import pytest

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_contracts.streams import LOG, WORK
from mnemon_infra.config import Deployment
from tests.integration.conftest import Stock
from tests.support.pipelines.extraction import MODEL, Extracting

DAY = 86_400.0


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
async def extracting(stock: Stock, deployment: Deployment, server: ProviderServer) -> Extracting:
    extracting = Extracting.on(stock, deployment, server)
    await extracting.set(provider="openai", model=MODEL, mode="online", idle_seconds=1.0, pool_seconds=0)
    return extracting


@pytest.mark.parametrize("mode", ["online", "batch"])
async def test_a_conversation_that_rests_is_read(extracting: Extracting, mode: str) -> None:
    await extracting.set(mode=mode, time_stamps__zone="Europe/Moscow")
    async with extracting.running():
        first = await extracting.stock.say("hello, I like tea", "acme.u1.-", sent_at="2026-03-01T22:30:00Z")
        await extracting.stock.say("Я люблю чай", "acme.u2.talk")
        answers = await extracting.has(2, "window.answered")
        calls = await extracting.has(2, "model.called")

    assert sorted((each["owner"], each["outcome"], each["proposed"]) for each in answers) == [
        (("acme", "u1"), "proposed", 1),
        (("acme", "u2"), "proposed", 1),
    ]
    assert await extracting.texts(user="u2") == ["Пользователь любит чай"]
    (fact,) = await extracting.log_of("fact.proposed", user="u1")
    lineage = fact["lineage"]
    assert fact["text"] == "User likes tea"
    assert lineage["sources"] == [first]
    assert (lineage["extractor"], lineage["model"]) == ("extract", f"openai/{MODEL}")
    assert lineage["prompt_version"]
    assert set(extracting.server.state.asked.values()) == {1}
    assert any("2026-03-02 01:30 Monday" in text for text in extracting.server.state.asked)
    batches = {each["batch_id"] for each in await extracting.log_of("batch.intended")}
    assert {each.get("batch_id") for each in [*answers, *calls]} == (batches or {None})
    assert bool(batches) == (mode == "batch")


async def test_whoever_rests_not_yet_is_looked_at_again(extracting: Extracting) -> None:
    await extracting.set(idle_seconds=2.0)
    async with extracting.running():
        for number in range(6):
            last = await extracting.stock.say(f"I like thing {number}")
            await asyncio.sleep(0.6)
        (answer,) = await extracting.has(1, "window.answered")
    assert answer["to_seq"] == last
    assert len(await extracting.texts()) == 6


async def test_a_conversation_that_has_grown_long_is_read_before_it_rests(extracting: Extracting) -> None:
    await extracting.set(idle_seconds=DAY, after_messages=5, window_messages=5)
    async with extracting.running():
        seqs = [await extracting.stock.say(f"I like thing {number}") for number in range(5)]
        await extracting.has(1, "window.answered")
        # Nobody looks at a user more often than every few seconds.
        await asyncio.sleep(5)
        seqs += [await extracting.stock.say(f"I like thing {number}") for number in range(5, 12)]
        answers = await extracting.has(2, "window.answered")
    assert [(each["from_seq"], each["to_seq"]) for each in answers] == [
        (seqs[0], seqs[4]),
        (seqs[5], seqs[9]),
    ]


async def test_now_and_then_everybody_is_read_rested_or_not(extracting: Extracting) -> None:
    await extracting.set(idle_seconds=DAY, interval_hours=0.0005)
    async with extracting.running("persist"):
        for number in range(45):
            await extracting.stock.say(f"I like thing {number}", f"acme.u{number}.-")
        await extracting.stock.say("I like tea", "globex.u1.-")
        await extracting.is_projected()
    # Whoever would have heard of it was not there.
    await extracting.connection.jetstream().purge_stream("WORK", subject="work.extract.>")
    async with extracting.running():
        await extracting.has(46, "window.answered")
    assert sorted(await extracting.sql("SELECT tenant, reached FROM rounds")) == [
        ("acme", None),
        ("globex", None),
    ]


async def test_it_reads_on_where_it_was(extracting: Extracting) -> None:
    async with extracting.running():
        for number in range(3):
            await extracting.stock.say(f"I like thing {number}")
            await extracting.has(number + 1, "window.answered")
    assert await extracting.texts() == [f"User likes thing {number}" for number in range(3)]
    assert set(extracting.server.state.asked.values()) == {1}
    assert all(text.count("I like") == 1 for text in extracting.server.state.asked)


async def test_what_came_from_memory_is_not_read(extracting: Extracting) -> None:
    async with extracting.running():
        await extracting.stock.say("I like tea", metadata={"from_memory": True})
        await extracting.stock.say("[id:pf_001] I like coffee")
        (answer,) = await extracting.has(1, "window.answered")
    assert answer["outcome"] == "nothing"
    assert extracting.server.state.questions == []


async def test_a_tenant_without_budget_waits_and_others_go_on(extracting: Extracting) -> None:
    price = [{"model": MODEL, "input": 1000.0, "output": 1000.0}]
    await extracting.set(spending__prices=price)
    await extracting.set("acme", spending__usd_per_day=0.0)
    async with extracting.running():
        await extracting.stock.say("I like tea", "acme.u1.-")
        await extracting.stock.say("I like tea", "globex.u1.-")
        await extracting.has(1, "window.answered", tenant="globex")
        await extracting.becomes("SELECT tenant, attempts FROM windows WHERE NOT is_answered", ("acme", 0))
        await extracting.set("acme", spending__usd_per_day=None)
        await extracting.has(1, "window.answered", tenant="acme")
    assert all(each["usd"] > 0 for each in await extracting.log_of("model.called"))


async def test_it_can_be_switched_off_and_on_for_a_tenant(extracting: Extracting) -> None:
    await extracting.set("acme", enabled=False)
    async with extracting.running():
        await extracting.stock.say("I like tea", "acme.u1.-")
        await extracting.stock.say("I like tea", "globex.u1.-")
        await extracting.has(1, "window.answered")
        await extracting.set("acme", enabled=True)
        await extracting.stock.say("I like coffee", "acme.u1.-")
        await extracting.has(2, "window.answered")
    assert sorted(await extracting.texts(tenant="acme")) == ["User likes coffee", "User likes tea"]


async def test_other_models_and_words_are_taken_up_at_once(extracting: Extracting) -> None:
    async with extracting.running():
        await extracting.stock.say("I like tea")
        await extracting.has(1, "window.answered")
        await extracting.set(model="another-model", instructions="Write down what they eat.")
        await extracting.stock.say("I like cake")
        await extracting.has(2, "window.answered")
        await extracting.set(mode="batch")
        await extracting.stock.say("I like bread")
        await extracting.has(3, "window.answered")
    first, second, third = extracting.server.state.questions
    assert [each.model for each in (first, second, third)] == [MODEL, "another-model", "another-model"]
    assert "what they eat" in second.instructions
    assert "what they eat" not in first.instructions
    assert len(await extracting.log_of("batch.intended")) == 1


async def test_two_processes_read_everything_once(extracting: Extracting) -> None:
    extracting.server.state.seconds = 0.2
    async with extracting.running(), extracting.running("extract"):
        for number in range(40):
            await extracting.stock.say(f"I like thing {number}", f"acme.u{number}.-")
        await extracting.has(40, "window.answered")
    assert set(extracting.server.state.asked.values()) == {1}
    assert len(await extracting.texts()) == 40


async def test_who_rests_before_all_is_settled_is_read_once_it_is(extracting: Extracting) -> None:
    stream_context = extracting.connection.jetstream()
    async with extracting.running("extract"):
        async with extracting.running("persist"):
            await extracting.stock.say("I like bread", "acme.u1.-")
            await extracting.has(1, "window.answered")
        await extracting.stock.say("I like coffee", "acme.u2.-")
        # Somebody has it who is in no hurry.
        held = await stream_context.pull_subscribe_bind("persist", LOG)
        (earlier,) = await held.fetch(1)
        triggered = (await stream_context.consumer_info(WORK, "extract")).delivered
        async with extracting.running("persist"):
            await extracting.stock.say("I like tea", "acme.u3.-")
            async with asyncio.timeout(30):
                while (await stream_context.consumer_info(WORK, "extract")).delivered == triggered:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(1)
            assert await extracting.texts() == ["User likes bread"]
            await earlier.nak()
            await extracting.has(3, "window.answered")
