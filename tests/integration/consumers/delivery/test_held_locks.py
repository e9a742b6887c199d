"""Locks: work that one process may do at a time waits for the other process, or is left to it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from nats.aio.client import Client

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_consumers.app import run_consumers
from mnemon_consumers.compact.compaction import BUSY_DELAY, Compactor
from mnemon_consumers.domain.spending.budget import Budgets
from mnemon_consumers.extract.pipeline import ExtractionPipeline
from mnemon_consumers.maintain.handler import EXPIRE
from mnemon_contracts.streams import WORK
from mnemon_infra.broker.outcomes import ACK, Retry
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.locks import _hash_name, hold_lock
from mnemon_infra.models.language.circuit_breaker import CircuitBreaker
from mnemon_infra.models.language.registry import LanguageModels
from mnemon_infra.settings.store import LiveSettings, change_settings
from tests.support.pipelines.extraction import MODEL, WAITING, ExtractionHarness
from tests.support.settings_edit import setting
from tests.support.stock_client import Stock, handled

OWNER = "acme", "u1"
TIMEOUT = 60.0
SUMMARIES = "memory.acme.u1.summary.written.v1"


async def waiters(database: Database, *of: str) -> int:
    """Return the number of sessions that wait for a lock."""
    key = _hash_name(of)
    async with database.transaction() as connection:
        cursor = await connection.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            " AND classid = %s::bigint::oid AND objid = %s::bigint::oid",
            (key >> 32 & 0xFFFFFFFF, key & 0xFFFFFFFF),
        )
        ((count,),) = await cursor.fetchall()
    return int(count)


async def is_waited_for(database: Database, *of: str) -> None:
    """Wait until a session waits for the lock."""
    async with asyncio.timeout(TIMEOUT):
        while not await waiters(database, *of):
            await asyncio.sleep(0.01)


async def ask_update_by_query(stock: Stock) -> dict[str, Any]:
    request = json.dumps({"query": "likes otters", "text": "Likes beavers very much"}).encode()
    answer = await stock.connection.request("ask.acme.u1.update.v2", request, timeout=60)
    reply: dict[str, Any] = json.loads(answer.data)
    return reply


REQUESTS: dict[str, Callable[[Stock, str], Awaitable[dict[str, Any]]]] = {
    "save": lambda stock, _: stock.ask("save", text="Plays the piano on Sundays"),
    "update": lambda stock, fact: stock.ask("update", id=fact, text="Likes beavers very much"),
    "update by query": lambda stock, _: ask_update_by_query(stock),
    "forget": lambda stock, fact: stock.ask("forget", id=fact),
    "forget by query": lambda stock, _: stock.ask("forget", query="likes otters"),
    "erase": lambda stock, _: stock.ask("erase"),
    "erase a conversation": lambda stock, _: stock.ask("erase", conversation="home"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=() if each in ("save", "forget by query") else pytest.mark.long)
        for each in REQUESTS
    ],
)
async def test_fact_change_waits_for_the_lock_of_its_user(
    stock: Stock, mnemon_with_vectors: Deployment, name: str
) -> None:
    saved = await stock.ask("save", text="Likes otters")
    assert saved["decision"] == "saved"
    await handled(stock.connection, "persist")
    before = await facts(stock)
    async with Database(mnemon_with_vectors) as database:
        async with hold_lock(database, *OWNER):
            asked = asyncio.ensure_future(REQUESTS[name](stock, saved["id"]))
            await is_waited_for(database, *OWNER)
            assert not asked.done()
            assert await facts(stock) == before
        reply = await asked
    assert "error" not in reply


async def test_fact_change_ignores_locks_of_other_users(
    stock: Stock, mnemon_with_vectors: Deployment
) -> None:
    async with Database(mnemon_with_vectors) as database, hold_lock(database, *OWNER):
        saved = await stock.ask("save", "acme.u2", text="Likes otters")
        assert (await stock.ask("forget", "acme.u2", id=saved["id"])).get("error") is None
        assert await waiters(database, *OWNER) == 0


async def facts(stock: Stock) -> list[str]:
    return [each["text"] for each in (await stock.ask("read"))["facts"]]


async def test_facts_expire_under_the_user_s_lock(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    expired = {"text": "Is in Riga", "expires_at": "2020-01-01T00:00:00Z"}
    body = {"fact_id": "pf_001", "fact": expired, "decision": {"proposal_id": "p"}}
    async with run_consumers(("persist", "maintain"), deployment), Database(deployment) as database:
        async with hold_lock(database, *OWNER):
            await stock.publish("memory.acme.u1.fact.saved.v1", body)
            await handled(connection, "persist")
            await connection.jetstream().publish(EXPIRE, b"", stream=WORK)
            await is_waited_for(database, *OWNER)
            assert not await read_last_position(connection, "memory.acme.u1.fact.expired.v1")
        async with asyncio.timeout(TIMEOUT):
            while not await read_last_position(connection, "memory.acme.u1.fact.expired.v1"):
                await asyncio.sleep(0.02)


@pytest.mark.long
async def test_conversation_locked_by_another_process_is_not_compacted(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    await change_settings(connection, setting(compaction__provider="offline"))
    for number in range(60):
        await stock.say(f"I like thing {number}, and I say so at some length.", "acme.u1.talk")
    async with run_consumers(("persist",), deployment):
        await handled(connection, "persist")
    settings = LiveSettings()
    place = (*OWNER, "talk")
    async with (
        AsyncExitStack() as opened,
        Database(deployment) as database,
        settings.watch_bucket(connection),
    ):
        patience = CircuitBreaker(LanguageModels(deployment, opened))
        compacting = Compactor(database, settings, patience, Budgets(database, settings))
        async with hold_lock(database, *place, "compact"):
            assert await compacting.compact_conversation(connection, place) == Retry(BUSY_DELAY)
            assert not await read_last_position(connection, SUMMARIES)
        ended = await compacting.compact_conversation(connection, place)
        assert ended == ACK or isinstance(ended, Retry), "the next step waits for what it has written"
        assert await read_last_position(connection, SUMMARIES)


@pytest.mark.long
async def test_batches_claimed_by_another_process_are_skipped(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    with ProviderServer() as server:
        extracting = ExtractionHarness.on(stock, deployment, server)
        await extracting.set(provider="openai", model=MODEL, mode="batch", pool_seconds=0)
        owners = [("acme", f"u{number}") for number in range(3)]
        for _, user in owners:
            await stock.say("I like tea", f"acme.{user}.-")
        async with extracting.running("persist"):
            await handled(connection, "persist")
        settings = LiveSettings()
        async with (
            AsyncExitStack() as opened,
            Database(extracting.deployment) as database,
            settings.watch_bucket(connection),
        ):
            models = LanguageModels(extracting.deployment, opened)
            extraction = ExtractionPipeline(database, settings, models, extracting.deployment)
            await extraction._cutter.cut_messages(connection, owners, all_due=True)
            assert await extracting.sql(WAITING) == [(3,)]
            async with hold_lock(database, "extract", "pool"):
                await extraction.run_tick(connection)
                assert await extracting.sql("SELECT * FROM batches") == []
            await extraction._batches._assembler.claim_batches()
            ((batch_id, state),) = await extracting.sql("SELECT batch_id, state FROM batches")
            assert state == "claimed"
            async with hold_lock(database, "batch", batch_id):
                await extraction.run_tick(connection)
                assert await extracting.sql("SELECT state FROM batches") == [("claimed",)]
                assert server.state.requests == []
            await extraction.run_tick(connection)
            assert await extracting.sql("SELECT state FROM batches") == [("submitted",)]
