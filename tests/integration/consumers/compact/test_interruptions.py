"""Summaries during interruptions: a clear, an outage of the log or the database, a model that fails."""

import asyncio
from collections.abc import Sequence
from typing import Any

import nats.errors
import pytest
from nats.aio.client import Client

from mnemon_bench.provider_server.faults import HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_consumers.compact import compaction as module
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.broker.streams.log_writer import AppendedEvent, LogEvent, append_events
from mnemon_infra.database.engine import DatabaseUnavailable, Query
from mnemon_infra.database.messages.uncovered_messages import (
    CoveredBy,
    UncoveredMessages,
    UncoveredQuery,
    load_uncovered_messages,
)
from mnemon_producers.client import MemoryClient
from tests.support.pipelines.compaction import KEY, TIMEOUT, CompactionHarness
from tests.support.stock_client import Stock


@pytest.mark.parametrize(
    ("event", "body"),
    [("cleared", {}), ("started", {"discard_previous": True})],
    ids=["cleared", "discarded"],
)
async def test_conversation_cleared_during_the_call_gets_no_summary(
    compaction: CompactionHarness, stock: Stock, event: str, body: dict[str, Any]
) -> None:
    gate = compaction.gate()
    async with compaction.running():
        await compaction.talk(17)
        await gate.is_asked()
        await stock.publish(f"chat.acme.u1.talk.{event}.v1", body)
        gate.opened.set()
        await compaction.settled()
        assert not await compaction.summaries()
        assert len(await compaction.log_of("model.called")) == 1, "it is paid for all the same"

        await compaction.talk(17, first=17)
        await compaction.settled()
    (summary,) = await compaction.summaries()
    assert summary["from_seq"] == (await compaction.said())[17]


async def test_summary_of_conversation_cleared_last_is_never_shown(
    compaction: CompactionHarness, stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clears: list[int] = []

    async def appended(connection: Client, events: Sequence[LogEvent]) -> list[AppendedEvent]:
        if not clears:
            clears.append(await stock.publish("chat.acme.u1.talk.cleared.v1"))
        return await append_events(connection, events)

    monkeypatch.setattr(module, "append_events", appended)
    async with compaction.running("persist", "compact", "retrieve"):
        await compaction.talk(17)
        await compaction.settled()
        (slipped,) = await compaction.summaries()
        assert slipped["from_seq"] < clears[0] < slipped["seq"]
        context = await stock.ask("context", format="xml", conversation="talk", min_seq=slipped["seq"])
        assert "summaries" not in context["sections"]

        await compaction.talk(17, first=17)
        await compaction.settled()
        _, new = await compaction.summaries()
        context = await stock.ask("context", format="xml", conversation="talk", min_seq=new["seq"])
        assert context["sections"]["summaries"]["shown"] == 1
    said = await compaction.said()
    assert (new["from_seq"], new["to_seq"]) == (said[17], said[22])


async def test_answer_survives_an_outage_of_the_log(
    compaction: CompactionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    async def appended(connection: Client, events: Sequence[LogEvent]) -> list[AppendedEvent]:
        tries.append(len(events))
        # From the second attempt on, the events are stored but the confirmation is lost.
        if len(tries) > 1:
            await append_events(connection, events)
        if len(tries) < 3:
            raise nats.errors.TimeoutError
        return await append_events(connection, events)

    monkeypatch.setattr(module, "append_events", appended)
    monkeypatch.setattr(module, "APPEND_PAUSE", 0.05)
    async with compaction.running():
        await compaction.talk(17)
        await compaction.settled()
    assert tries == [2, 2, 2]
    assert len(await compaction.summaries()) == 1
    assert len(await compaction.log_of("model.called")) == 1
    assert set(compaction.server.state.asked.values()) == {1}


async def test_answer_is_counted_during_an_outage_of_the_database(
    compaction: CompactionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Sequence[UncoveredQuery]] = []

    def looking(
        queries: Sequence[UncoveredQuery], covered_by: CoveredBy
    ) -> Query[list[list[UncoveredMessages]]]:
        looked.append(queries)
        if len(looked) == 2:
            raise DatabaseUnavailable("it restarts")
        return load_uncovered_messages(queries, covered_by)

    monkeypatch.setattr(module, "load_uncovered_messages", looking)
    async with compaction.running():
        await compaction.talk(17)
        await compaction.settled()
    assert len(await compaction.summaries()) == 1
    assert len(await compaction.log_of("model.called")) == len(compaction.server.state.questions) == 2


async def test_answer_is_counted_during_an_outage_of_the_log(
    compaction: CompactionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[str] = []

    async def read(connection: Client, *patterns: str) -> int:
        if compaction.server.state.questions and not failed:
            failed.extend(patterns)
            raise nats.errors.TimeoutError
        return await read_last_position(connection, *patterns)

    monkeypatch.setattr(module, "read_last_position", read)
    async with compaction.running():
        await compaction.talk(17)
        await compaction.settled()
    assert len(await compaction.summaries()) == 1
    assert len(await compaction.log_of("model.called")) == len(compaction.server.state.questions) == 2


@pytest.mark.long
async def test_answer_is_counted_if_the_process_stops_before_the_summary_is_stored(
    compaction: CompactionHarness, stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, is_answered = compaction.gate(), asyncio.Event()

    async def read(connection: Client, *patterns: str) -> int:
        if gate.opened.is_set():
            is_answered.set()
        return await read_last_position(connection, *patterns)

    monkeypatch.setattr(module, "read_last_position", read)
    async with compaction.running("compact"):
        async with compaction.running("persist"):
            await compaction.talk(17)
            await gate.is_asked()
        await stock.say("a message that is not projected", "acme.u1.talk")
        gate.opened.set()
        await is_answered.wait()
    assert not await compaction.summaries()
    assert len(await compaction.log_of("model.called")) == 1


@pytest.mark.long
async def test_slow_call_delays_no_other_conversation(
    compaction: CompactionHarness,
) -> None:
    released = compaction.server.state.hold_answers(lambda question: "u1 says" in question.text)
    async with compaction.running():
        await compaction.talk(17, ["u1"])
        await compaction.is_asked(1)
        await compaction.talk(30, ["u2", "u3"])
        for first in range(17, 25):  # each message triggers the conversation whose call is open
            await compaction.talk(1, ["u1"], first=first)
        others = await compaction.has(6, "summary.written")
        assert {each["user"] for each in others} == {"u2", "u3"}
        released.set()
        await compaction.settled()
    assert [len(await compaction.summaries(user)) for user in ("u1", "u2", "u3")] == [2, 3, 3]
    assert set(compaction.server.state.asked.values()) == {1}


async def test_refused_request_is_not_repeated_with_each_message(compaction: CompactionHarness) -> None:
    usual = compaction.server.state.longest
    compaction.server.state.longest = 3000
    long_ones = "{user} says {number} " + "and so on " * 100
    async with compaction.running():
        await compaction.talk(17, text=long_ones)
        await compaction.settled()
        (letter,) = await compaction.letters()
        first, *_, last = (await compaction.said())[:6]
        assert f"log positions {first} to {last}" in letter

        await compaction.talk(3, first=17, text=long_ones)
        await compaction.settled()
        assert len(await compaction.letters()) == 1
        compaction.server.state.longest = usual
        await compaction.set(instructions="Mention boats.")
        await compaction.talk(1, first=20)
        await compaction.has(1, "summary.written", "u1")


async def test_permanently_refused_request_becomes_a_dead_letter(compaction: CompactionHarness) -> None:
    compaction.server.state.longest = 3000
    async with compaction.running():
        await compaction.talk(17, text="{user} says {number} " + "and so on " * 100)
        await compaction.talk(17, ["u2"])
        await compaction.settled()
    (letter,) = await compaction.letters()
    assert "conversation talk" in letter
    assert "and so on" not in letter
    assert len(await compaction.summaries("u2")) == 1


@pytest.mark.long
async def test_unanswered_call_is_retried(compaction: CompactionHarness) -> None:
    failing = [HttpFault(status=500)] * 6 + [HttpFault(status=429, retry_after=0.2)] * 3
    compaction.server.state.faults.requests.extend(failing)
    async with compaction.running():
        await compaction.talk(17)
        await compaction.has(1, "summary.written")
    assert not await compaction.letters()
    assert len(await compaction.log_of("model.called")) == 1


async def test_refused_key_pauses_calls_until_it_is_replaced(
    compaction: CompactionHarness, provider: ProviderServer
) -> None:
    provider.state.key = "another"
    async with compaction.running():
        await compaction.talk(17, ["u1", "u2", "u3"])
        await compaction.talk(1, ["u1", "u2", "u3"], first=17)
        async with asyncio.timeout(TIMEOUT):
            while not await compaction.waits(3):
                await asyncio.sleep(0.05)
        provider.state.key = KEY
        # The name changes because the circuit breaker pauses the former model for a minute.
        await compaction.set(model="another")
        await compaction.talk(1, ["u1", "u2", "u3"], first=18)
        await compaction.has(3, "summary.written")
    assert not await compaction.letters()


async def test_compaction_waits_for_budget_of_the_tenant(compaction: CompactionHarness) -> None:
    price = [{"model": "a-model-of-our-own", "input": 1.0, "output": 1.0}]
    await compaction.set(spending__prices=price, spending__usd_per_day=0.0)
    async with compaction.running():
        await compaction.talk(17)
        async with asyncio.timeout(TIMEOUT):
            while not await compaction.waits(1):
                await asyncio.sleep(0.05)
        assert not compaction.server.state.questions
        await compaction.set(spending__usd_per_day=1.0)
        await compaction.talk(1, first=17)
        await compaction.has(1, "summary.written")
    (call,) = await compaction.log_of("model.called")
    assert call["usd"] > 0


@pytest.mark.long
async def test_waiting_conversations_block_no_other_user(compaction: CompactionHarness) -> None:
    # More deliveries than the server makes before the first ones are acknowledged.
    many = [f"w{number}" for number in range(1100)]
    await compaction.set(after_messages=2, messages=1)
    await compaction.set(tenant="acme", spending__usd_per_day=0.0)
    async with compaction.running():
        await compaction.talk(3, many)
        async with asyncio.timeout(TIMEOUT):
            while not await compaction.waits(len(many)):
                await asyncio.sleep(0.1)
        globex = MemoryClient(compaction.connection, tenant="globex")
        for number in range(3):
            await globex.publish("u1", "user", f"number {number}", conversation="talk")
        async with asyncio.timeout(TIMEOUT):
            while not await compaction.log_of("summary.written", tenant="globex"):
                await asyncio.sleep(0.05)
