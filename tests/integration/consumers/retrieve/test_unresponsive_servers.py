"""Replies arrive in time while a server hangs, and name the missing parts."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_consumers.retrieve.search.query import query_embedder
from mnemon_contracts.settings.groups import Embedding, SettingsV1
from mnemon_infra.config import Deployment
from mnemon_infra.database import engine, query_batcher
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.durables import CONSUMERS
from mnemon_infra.embedded.postgres import Postgres
from mnemon_infra.settings.store import write_settings
from tests.support.servers.embedding_server import Endpoint
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed

TIMEOUT = 60.0

SAVED = {
    "fact_id": "ar_001",
    "fact": {"text": "Anna plays the violin"},
    "decision": {"proposal_id": "p1"},
}
REPLY_TO = "What does Anna play, the violin?"


@contextmanager
def stopped(server: Postgres) -> Iterator[None]:
    """Suspend a server for the duration of the block: its connections stay open, but it does not answer."""
    processes = [each for own in server.list_orphans() for each in (own, *own.children(recursive=True))]
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            process.resume()


@pytest_asyncio.fixture
async def own_database(tmp_path: Path) -> AsyncIterator[Postgres]:
    (tmp_path / "own").mkdir()
    server = Postgres(tmp_path / "own", None)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def deployed(own_database: Postgres, connection: Client, nats_url: str, tmp_path: Path) -> Deployment:
    deployment = Deployment(
        nats_url=nats_url, database_dsn=own_database.url, vectors_folder=tmp_path / "vectors"
    )
    assert deployment.database_url is not None
    migrate_schema(deployment.database_url, deployment.database_schema)
    return deployment


@pytest.mark.long
async def test_context_does_not_wait_for_a_hanging_database(
    own_database: Postgres, deployed: Deployment, stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_consumers(CONSUMERS, deployed):
        await stock.publish("memory.acme.u1.fact.saved.v1", SAVED)
        seq = await stock.say("I heard a violin", id="heard")
        await indexed(stock, seq)
        before = await stock.ask("context", query=REPLY_TO, min_seq=seq)
        assert before["degraded"] == []

        for module in (engine, query_batcher):
            monkeypatch.setattr(module, "ANSWER_WAIT", 2.0)
        with stopped(own_database):
            verbs = ("history", "context", "profile", "status", "read", "tasks")
            asked = [stock.ask(verb, "acme.u2") for verb in verbs]
            asked.append(stock.ask("history", "acme.u2", min_seq=seq + 1000))
            asked.append(stock.ask("get", id="ar_001"))
            replies = await asyncio.gather(*asked)
            known = await stock.ask("context", query=REPLY_TO)
            found = await stock.ask("search", query=REPLY_TO, scope=["messages"])
            unheld = await stock.ask("search", "acme.u3", query="a harp", scope=["messages"])

        for reply in replies:
            assert (reply["error"]["code"], reply["error"]["retryable"]) == ("unavailable", True)
            assert "no answer within 2 s" in reply["error"]["message"]
        assert known["degraded"] == []  # its rows are cached
        assert known["messages"] == before["messages"]
        assert (found["degraded"], [hit["id"] for hit in found["hits"]]) == ([], ["heard"])
        assert (unheld["degraded"], unheld["hits"]) == (["messages"], [])

        async with asyncio.timeout(TIMEOUT):
            while (await stock.ask("context", query=REPLY_TO)).get("degraded") != []:
                await asyncio.sleep(0.05)


async def test_search_without_embedding_uses_words(
    embedding_endpoint: Endpoint,
    deployment: Deployment,
    stock: Stock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(query_embedder, "EMBEDDING_PAUSE", 600.0)
    await write_settings(stock.connection, SettingsV1(embedding=Embedding(provider="openai", model="ours")))
    ours = embedding_endpoint.deployment
    deployed = locate_vectors(deployment, tmp_path / "vectors").model_copy(
        update={
            "embedding_url": ours.embedding_url,
            "embedding_api_key": ours.embedding_api_key,
        }
    )
    async with run_consumers(CONSUMERS, deployed):
        await stock.publish("memory.acme.u1.fact.saved.v1", SAVED)
        seq = await stock.say("I heard a violin", "acme.u1.past", id="heard")
        await indexed(stock, seq)
        await stock.ask("context", conversation="new")

        monkeypatch.setattr(query_embedder, "EMBEDDING_WAIT", 0.5)
        embedding_endpoint.released.clear()
        context = await stock.ask("context", conversation="new", query="violin")
        asked = len(embedding_endpoint.requests)
        again = await stock.ask("context", conversation="new", query="violin")
        found = await stock.ask("search", query="violin")
        forgotten = await stock.ask("forget", query="violin")

        assert len(embedding_endpoint.requests) == asked, "it is left alone for a while"
        for reply in (context, again):
            assert reply["degraded"] == ["embedding"]
            shown = [each["content"] for each in reply["messages"]]
            assert shown[0] == "Relevant memory:\n- [user_fact] Anna plays the violin"
            assert shown[1].startswith("Relevant conversation memory: User: [")
        assert found["degraded"] == ["embedding"]
        assert [hit["id"] for hit in found["hits"]] == ["ar_001"]
        assert forgotten["id"] == "ar_001"


async def test_context_embeds_its_query_while_the_database_reads(
    embedding_endpoint: Endpoint, deployment: Deployment, stock: Stock, database_url: str, tmp_path: Path
) -> None:
    await write_settings(stock.connection, SettingsV1(embedding=Embedding(provider="openai", model="ours")))
    ours = embedding_endpoint.deployment
    deployed = locate_vectors(deployment, tmp_path / "vectors").model_copy(
        update={"embedding_url": ours.embedding_url, "embedding_api_key": ours.embedding_api_key}
    )
    async with run_consumers(CONSUMERS, deployed):
        await indexed(stock, await stock.publish("memory.acme.u1.fact.saved.v1", SAVED))
        async with await psycopg.AsyncConnection.connect(database_url) as holder:
            await holder.execute(
                f"LOCK TABLE {deployed.database_schema}.memory_events IN ACCESS EXCLUSIVE MODE"
            )
            context = asyncio.create_task(stock.ask("context", query=REPLY_TO))
            async with asyncio.timeout(TIMEOUT):
                while [REPLY_TO] not in [each["input"] for each in embedding_endpoint.requests]:
                    assert not context.done(), "the context gave up its facts before its query was embedded"
                    await asyncio.sleep(0.01)
            await holder.rollback()
        assert (await context)["degraded"] == []
