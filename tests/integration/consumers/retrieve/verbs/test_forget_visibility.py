"""A forgotten fact is in no reply of any process after `forget` is answered, even without `persist`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.facts.fact_repository import FactEventRecord, load_fact_events
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.durables import CONSUMERS
from mnemon_infra.embedded.postgres import Postgres
from mnemon_infra.settings.store import write_settings
from tests.integration.consumers.retrieve.test_read_your_writes import crash, persist
from tests.integration.consumers.retrieve.verbs.test_tools import code, ids, saved
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed

ASKED = 24
"""Requests of each kind, so many that each of the two processes in the queue group receives some."""

SECRETIVE = "Anna is allergic to penicillin"


@pytest_asyncio.fixture
async def two_services(deployment: Deployment, stock: Stock, connection: Client) -> AsyncIterator[int]:
    """Project two facts, run two `retrieve` consumers without `persist`, and yield the last position."""
    # short, since waits for `persist` are in vain
    await write_settings(connection, SettingsV1(wait_for_log_ms=20))
    await saved(stock, "ar_001", SECRETIVE, tier="profile")
    seq = await saved(stock, "ar_002", "Anna plays the cello", tier="profile")
    await persist(connection, deployment, seq)
    async with AsyncExitStack() as services:
        for _ in range(2):
            await services.enter_async_context(run_consumers(("retrieve",), deployment))
        yield seq


async def replies(stock: Stock, verb: str, **request: Any) -> list[dict[str, Any]]:
    """Send the same request many times, so that each consumer answers some; return the replies."""
    return [await stock.ask(verb, **request) for _ in range(ASKED)]


@pytest.mark.long
@pytest.mark.usefixtures("two_services")
async def test_a_forgotten_fact_is_in_no_reply_while_persist_is_down(stock: Stock) -> None:
    for verb in ("read", "context"):
        assert all(SECRETIVE in str(reply) for reply in await replies(stock, verb)), "it is in every cache"

    forgotten = await stock.ask("forget", id="ar_001")
    assert forgotten["id"] == "ar_001"

    for verb in ("read", "context"):
        shown = await replies(stock, verb)
        assert [reply for reply in shown if SECRETIVE in str(reply)] == []
        assert all("cello" in str(reply) for reply in shown), "the other fact is still there"
    assert {code(reply) for reply in await replies(stock, "get", id="ar_001")} == {"not_found"}
    assert {code(reply) for reply in await replies(stock, "forget", id="ar_001")} == {"not_found"}


@pytest.mark.long
@pytest.mark.usefixtures("two_services")
async def test_forget_hides_fact_from_next_reply(stock: Stock) -> None:
    """The notice of a change arrives before any request that is sent after the reply."""
    for number in range(20):
        fact_id = f"wk_{number:03}"
        seq = await saved(stock, fact_id, f"Anna has errand {number}", tier="profile")
        await asyncio.gather(*(stock.ask("read", min_seq=seq) for _ in range(6)))
        await asyncio.gather(*(stock.ask("read") for _ in range(6)))
        await stock.ask("forget", id=fact_id)
        shown = await asyncio.gather(*(stock.ask("read") for _ in range(12)))
        assert [reply for reply in shown if f"errand {number}" in str(reply)] == []


@pytest.mark.usefixtures("two_services")
async def test_an_updated_fact_is_shown_as_it_is_while_persist_is_down(stock: Stock) -> None:
    assert all(SECRETIVE in str(reply) for reply in await replies(stock, "read"))
    await stock.ask("update", id="ar_001", text="Anna can take penicillin")
    shown = await replies(stock, "read")
    assert all("can take penicillin" in str(reply) and SECRETIVE not in str(reply) for reply in shown)


async def test_persist_applies_forget_to_the_existing_row(
    stock: Stock, deployment: Deployment, connection: Client, two_services: int
) -> None:
    forgotten = await stock.ask("forget", id="ar_001")
    assert forgotten["seen_seq"] > two_services
    written = await memory_rows(deployment)
    await persist(connection, deployment, forgotten["seen_seq"])
    assert await ids(stock, min_seq=forgotten["seen_seq"]) == ["ar_002"]
    assert await memory_rows(deployment) == written, "persist would have written the same"


async def memory_rows(deployment: Deployment) -> list[FactEventRecord]:
    """Return the rows of the user's fact events, without texts, which a sweep may remove."""
    async with Database(deployment) as database:
        (events,) = await database.run_query(load_fact_events([("acme", "u1")]))
    return [each._replace(body=None) for each in events]


async def test_search_hides_a_forgotten_fact(stock: Stock, deployment: Deployment, tmp_path: Path) -> None:
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(CONSUMERS, with_vectors):
        fact = await stock.ask("save", text=SECRETIVE, tier="profile")
        await indexed(stock, fact["seen_seq"])
    async with run_consumers([each for each in CONSUMERS if each != "persist"], with_vectors):
        assert SECRETIVE in str(await stock.ask("search", query="penicillin"))
        await stock.ask("forget", id=fact["id"])
        for verb in ("search", "context"):
            reply = await stock.ask(verb, query="penicillin")
            assert SECRETIVE not in str(reply)
            assert not reply.get("degraded")


@pytest.mark.long
async def test_forget_without_database_fails(connection: Client, nats_url: str, tmp_path: Path) -> None:
    server = Postgres(tmp_path / "own", None)
    (tmp_path / "own").mkdir()
    await server.start()
    deployment = Deployment(nats_url=nats_url, database_dsn=server.url)
    assert deployment.database_url is not None
    migrate_schema(deployment.database_url, deployment.database_schema)
    stock = Stock(connection)
    try:
        async with run_consumers(("persist", "retrieve"), deployment):
            seq = await saved(stock, "ar_001", SECRETIVE)
            assert await AppliedPosition().wait_for(connection.jetstream(), seq, 60) >= seq
            await crash(server)
            reply = await stock.ask("forget", id="ar_001")
            assert (code(reply), reply["error"]["retryable"]) == ("unavailable", True)
            await server.start()
            async with asyncio.timeout(60):
                while code(reply := await stock.ask("forget", id="ar_001")) == "unavailable":
                    await asyncio.sleep(0.05)
            assert reply["id"] == "ar_001"
            assert await ids(stock) == []
    finally:
        await server.stop()
