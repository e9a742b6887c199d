"""Summaries when something comes in between: a clear, a log that is away, a model that does not answer."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import nats.errors
import pytest
import pytest_asyncio
from nats.aio.client import Client

from mnemon_bench.provider_server.faults import HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_consumers.compact import compaction as module
from mnemon_infra.broker.streams.log_writer import Appended, LogEvent, append
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import DatabaseUnavailable, Query
from mnemon_infra.database.messages.unsummarised import (
    CoveredBy,
    UnsummarisedMessages,
    UnsummarisedQuery,
    uncovered,
)
from mnemon_producers.client import MemoryClient
from tests.integration.conftest import Stock
from tests.support.pipelines.compaction import KEY, PATIENCE, Compacting


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest_asyncio.fixture
async def compacting(
    stock: Stock, deployment: Deployment, server: ProviderServer
) -> AsyncIterator[Compacting]:
    yield await Compacting.on(stock, deployment, server)


@pytest.mark.parametrize(
    ("event", "body"),
    [("cleared", {}), ("started", {"discard_previous": True})],
    ids=["cleared", "discarded"],
)
async def test_what_is_cleared_while_the_model_is_asked_gives_no_summary(
    compacting: Compacting, stock: Stock, event: str, body: dict[str, Any]
) -> None:
    gate = compacting.gate()
    async with compacting.running():
        await compacting.talk(17)
        await gate.is_asked()
        await stock.publish(f"chat.acme.u1.talk.{event}.v1", body)
        gate.opened.set()
        await compacting.settled()
        assert not await compacting.summaries()
        assert len(await compacting.log_of("model.called")) == 1, "it is paid for all the same"

        await compacting.talk(17, first=17)
        await compacting.settled()
    (summary,) = await compacting.summaries()
    assert summary["from_seq"] == (await compacting.said())[17]


async def test_what_is_cleared_in_the_last_moment_is_shown_nowhere(
    compacting: Compacting, stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clears: list[int] = []

    async def appended(connection: Client, events: Sequence[LogEvent]) -> list[Appended]:
        if not clears:
            clears.append(await stock.publish("chat.acme.u1.talk.cleared.v1"))
        return await append(connection, events)

    monkeypatch.setattr(module, "append", appended)
    async with compacting.running("persist", "compact", "retrieve"):
        await compacting.talk(17)
        await compacting.settled()
        (slipped,) = await compacting.summaries()
        assert slipped["from_seq"] < clears[0] < slipped["seq"]
        context = await stock.ask("context", format="xml", conversation="talk", min_seq=slipped["seq"])
        assert "summaries" not in context["sections"]

        await compacting.talk(17, first=17)
        await compacting.settled()
        _, new = await compacting.summaries()
        context = await stock.ask("context", format="xml", conversation="talk", min_seq=new["seq"])
        assert context["sections"]["summaries"]["shown"] == 1
    said = await compacting.said()
    assert (new["from_seq"], new["to_seq"]) == (said[17], said[22])


async def test_an_answer_is_not_lost_while_the_log_is_away(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    async def appended(connection: Client, events: Sequence[LogEvent]) -> list[Appended]:
        tries.append(len(events))
        # The second time the events are there, and nobody hears of it.
        if len(tries) > 1:
            await append(connection, events)
        if len(tries) < 3:
            raise nats.errors.TimeoutError
        return await append(connection, events)

    monkeypatch.setattr(module, "append", appended)
    monkeypatch.setattr(module, "PAUSE", 0.05)
    async with compacting.running():
        await compacting.talk(17)
        await compacting.settled()
    assert tries == [2, 2, 2]
    assert len(await compacting.summaries()) == 1
    assert len(await compacting.log_of("model.called")) == 1
    assert set(compacting.server.state.asked.values()) == {1}


async def test_an_answer_is_counted_though_the_database_is_away_when_it_comes(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Sequence[UnsummarisedQuery]] = []

    def looking(
        wanted: Sequence[UnsummarisedQuery], covered_by: CoveredBy
    ) -> Query[list[list[UnsummarisedMessages]]]:
        looked.append(wanted)
        if len(looked) == 2:
            raise DatabaseUnavailable("it restarts")
        return uncovered(wanted, covered_by)

    monkeypatch.setattr(module, "uncovered", looking)
    async with compacting.running():
        await compacting.talk(17)
        await compacting.settled()
    assert len(await compacting.summaries()) == 1
    assert len(await compacting.log_of("model.called")) == len(compacting.server.state.questions) == 2


async def test_a_model_that_thinks_long_keeps_no_other_conversation_waiting(compacting: Compacting) -> None:
    late = compacting.server.state.faults.requests
    late.append(HttpFault(seconds=6))
    async with compacting.running():
        await compacting.talk(17, ["u1"])
        async with asyncio.timeout(PATIENCE):
            while late:
                await asyncio.sleep(0.02)
        await compacting.talk(30, ["u2", "u3"])
        for first in range(17, 25):  # each of them triggers the one that waits
            await compacting.talk(1, ["u1"], first=first)
        others = await compacting.has(6, "summary.written")
        assert {each["user"] for each in others} == {"u2", "u3"}
        await compacting.settled()
    assert [len(await compacting.summaries(user)) for user in ("u1", "u2", "u3")] == [2, 3, 3]
    assert set(compacting.server.state.asked.values()) == {1}


async def test_what_a_provider_refuses_is_not_tried_with_each_message(compacting: Compacting) -> None:
    usual = compacting.server.state.longest
    compacting.server.state.longest = 3000
    long_ones = "{user} says {number} " + "and so on " * 100
    async with compacting.running():
        await compacting.talk(17, text=long_ones)
        await compacting.settled()
        (letter,) = await compacting.letters()
        first, *_, last = (await compacting.said())[:6]
        assert f"log positions {first} to {last}" in letter

        await compacting.talk(3, first=17, text=long_ones)
        await compacting.settled()
        assert len(await compacting.letters()) == 1
        compacting.server.state.longest = usual
        await compacting.set(instructions="Mention boats.")
        await compacting.talk(1, first=20)
        await compacting.has(1, "summary.written", "u1")


async def test_what_a_model_will_never_take_becomes_a_dead_letter(compacting: Compacting) -> None:
    compacting.server.state.longest = 3000
    async with compacting.running():
        await compacting.talk(17, text="{user} says {number} " + "and so on " * 100)
        await compacting.talk(17, ["u2"])
        await compacting.settled()
    (letter,) = await compacting.letters()
    assert "conversation talk" in letter
    assert "and so on" not in letter
    assert len(await compacting.summaries("u2")) == 1


async def test_a_model_that_does_not_answer_is_asked_again(compacting: Compacting) -> None:
    failing = [HttpFault(status=500)] * 6 + [HttpFault(status=429, retry_after=0.2)] * 3
    compacting.server.state.faults.requests.extend(failing)
    async with compacting.running():
        await compacting.talk(17)
        await compacting.has(1, "summary.written")
    assert not await compacting.letters()
    assert len(await compacting.log_of("model.called")) == 1


async def test_a_model_that_refuses_the_key_is_left_alone_until_that_is_mended(
    compacting: Compacting, server: ProviderServer
) -> None:
    server.state.key = "another"
    async with compacting.running():
        await compacting.talk(17, ["u1", "u2", "u3"])
        await compacting.talk(1, ["u1", "u2", "u3"], first=17)
        async with asyncio.timeout(PATIENCE):
            while not await compacting.waits(3):
                await asyncio.sleep(0.05)
        server.state.key = KEY
        # The mended model has another name here: the refusing one is left alone for a minute.
        await compacting.set(model="another")
        await compacting.talk(1, ["u1", "u2", "u3"], first=18)
        await compacting.has(3, "summary.written")
    assert not await compacting.letters()


async def test_a_tenant_without_budget_waits(compacting: Compacting) -> None:
    price = [{"model": "a-model-of-our-own", "input": 1.0, "output": 1.0}]
    await compacting.set(spending__prices=price, spending__usd_per_day=0.0)
    async with compacting.running():
        await compacting.talk(17)
        async with asyncio.timeout(PATIENCE):
            while not await compacting.waits(1):
                await asyncio.sleep(0.05)
        assert not compacting.server.state.questions
        await compacting.set(spending__usd_per_day=1.0)
        await compacting.talk(1, first=17)
        await compacting.has(1, "summary.written")
    (call,) = await compacting.log_of("model.called")
    assert call["usd"] > 0


async def test_however_many_wait_others_have_their_turn(compacting: Compacting) -> None:
    # More than a server hands out by itself before the first of them are acknowledged.
    many = [f"w{number}" for number in range(1100)]
    await compacting.set(after_messages=2, messages=1)
    await compacting.set(tenant="acme", spending__usd_per_day=0.0)
    async with compacting.running():
        await compacting.talk(3, many)
        async with asyncio.timeout(PATIENCE):
            while not await compacting.waits(len(many)):
                await asyncio.sleep(0.1)
        globex = MemoryClient(compacting.connection, tenant="globex")
        for number in range(3):
            await globex.publish("u1", "user", f"number {number}", conversation="talk")
        async with asyncio.timeout(PATIENCE):
            while not await compacting.log_of("summary.written", tenant="globex"):
                await asyncio.sleep(0.05)
