"""Facts whose sources are discarded messages: they stay, or are removed if a setting says so."""

import asyncio

import pytest
from nats.aio.client import Client

from mnemon_contracts.streams import WORK
from mnemon_infra.settings.store import change_settings
from mnemon_producers.client import MemoryClient
from tests.support.settings_edit import setting
from tests.support.stock_client import Stock, handled, indexed

pytestmark = pytest.mark.usefixtures("mnemon_with_vectors")

DRAWN, SAVED, CHANGED, CONFIRMED = (
    "Anna lives in Perm with a cat",
    "Anna is allergic to penicillin",
    "Anna works at the railway station",
    "Anna has a brother called Boris",
)


async def propose(stock: Stock, text: str, *sources: int, user: str = "u1") -> int:
    lineage = {"sources": sources, "extractor": "offline"}
    return await stock.publish(f"memory.acme.{user}.fact.proposed.v1", {"text": text, "lineage": lineage})


async def settled(stock: Stock, seq: int) -> None:
    """Wait until the log is applied up to a position, and `dedupe` has handled its triggers."""
    await indexed(stock, seq)
    await handled(stock.connection, "dedupe")
    stream_context = stock.connection.jetstream()
    async with asyncio.timeout(60):
        while (await stream_context.stream_info(WORK, subjects_filter="work.dedupe.>")).state.subjects:
            await asyncio.sleep(0.02)
    await indexed(stock, (await stock.ask("status"))["log_seq"])


async def facts(stock: Stock, owner: str = "acme.u1") -> set[str]:
    end = (await stock.ask("status"))["log_seq"]
    return {fact["text"] for fact in (await stock.ask("read", owner, min_seq=end))["facts"]}


async def learned(stock: Stock) -> None:
    """Create three facts from a message, change one of them, and save a fourth one by a tool."""
    said = await stock.say("I live in Perm with a cat")
    for text in (DRAWN, CHANGED, CONFIRMED):
        seq = await propose(stock, text, said)
    seq = (await stock.ask("save", text=SAVED))["seen_seq"]
    async with asyncio.timeout(60):
        while len(kept := (await stock.ask("read", min_seq=seq))["facts"]) < 4:
            await asyncio.sleep(0.02)
    (changed,) = [fact for fact in kept if fact["text"] == CHANGED]
    seq = (await stock.ask("update", id=changed["id"], importance=9))["seen_seq"]
    await settled(stock, seq)
    assert await facts(stock) == {DRAWN, SAVED, CHANGED, CONFIRMED}


async def turn_on(connection: Client) -> None:
    await change_settings(connection, setting(discard_facts=True))


@pytest.mark.long
async def test_facts_of_discarded_messages_stay_by_default(stock: Stock, connection: Client) -> None:
    await learned(stock)
    seq = await MemoryClient(connection, tenant="acme").start("u1", discard_previous=True)
    await settled(stock, seq)
    assert await facts(stock) == {DRAWN, SAVED, CHANGED, CONFIRMED}


async def test_facts_only_from_discarded_messages_are_removed_on_setting(
    stock: Stock, connection: Client
) -> None:
    await turn_on(connection)
    await learned(stock)
    said = await stock.say("I live in Omsk now", "acme.u2.-")
    await settled(stock, await propose(stock, "Anna lives in Omsk with a dog", said, user="u2"))
    other = await facts(stock, "acme.u2")
    seq = await MemoryClient(connection, tenant="acme").start("u1", discard_previous=True)
    await settled(stock, seq)
    assert await facts(stock) == {SAVED, CHANGED}
    assert await facts(stock, "acme.u2") == other, "another user's stay"
    found = await stock.ask("search", query=DRAWN, min_seq=seq)
    assert DRAWN not in {hit["text"] for hit in found["hits"]}

    said = await stock.say("I live in Perm with a cat again")
    await settled(stock, await propose(stock, DRAWN, said))
    assert DRAWN in await facts(stock), "it may be learned again"


@pytest.mark.long
async def test_a_conversation_that_discards_nothing_leaves_facts(stock: Stock, connection: Client) -> None:
    await turn_on(connection)
    await learned(stock)
    seq = await MemoryClient(connection, tenant="acme").start("u1")
    await stock.publish("work.dedupe.acme.u1", b"")
    await settled(stock, seq)
    assert await facts(stock) == {DRAWN, SAVED, CHANGED, CONFIRMED}


@pytest.mark.long
async def test_later_setting_removes_no_fact(stock: Stock, connection: Client) -> None:
    await learned(stock)
    await settled(stock, await stock.publish("chat.acme.u1.-.started.v1", {"discard_previous": True}))
    await turn_on(connection)
    await stock.publish("work.dedupe.acme.u1", b"")  # the trigger that a lowered limit also publishes
    await settled(stock, await stock.say("I am back"))
    assert await facts(stock) == {DRAWN, SAVED, CHANGED, CONFIRMED}
    await settled(stock, await stock.publish("chat.acme.u1.-.started.v1", {"discard_previous": True}))
    assert await facts(stock) == {SAVED, CHANGED}


@pytest.mark.long
async def test_a_tenant_has_its_own_setting(stock: Stock, connection: Client) -> None:
    await change_settings(connection, setting(discard_facts=True), "other")
    await learned(stock)
    await settled(stock, await stock.publish("chat.acme.u1.-.started.v1", {"discard_previous": True}))
    assert await facts(stock) == {DRAWN, SAVED, CHANGED, CONFIRMED}
    await change_settings(connection, setting(discard_facts=True), "acme")
    await settled(stock, await stock.publish("chat.acme.u1.-.started.v1", {"discard_previous": True}))
    assert await facts(stock) == {SAVED, CHANGED}


@pytest.mark.long
async def test_fact_confirmed_in_the_new_conversation_stays(stock: Stock, connection: Client) -> None:
    await learned(stock)
    await turn_on(connection)
    stream_context = connection.jetstream()
    await stream_context.pause_consumer(WORK, "dedupe-limits", "2200-01-01T00:00:00Z")
    seq = await stock.publish("chat.acme.u1.-.started.v1", {"discard_previous": True})
    said = await stock.say("My brother Boris has come")
    await indexed(stock, max(seq, await propose(stock, CONFIRMED, said)))
    await stream_context.resume_consumer(WORK, "dedupe-limits")
    await settled(stock, seq)
    assert await facts(stock) == {SAVED, CHANGED, CONFIRMED}
