"""A running mnemon, and a stock NATS client that talks to it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest_asyncio
from nats.aio.client import Client

from mnemon_consumers.app import CONSUMERS, run_consumers
from mnemon_contracts.streams import WORK
from mnemon_infra.broker.streams.applied_position import applied_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.migration import migrate


@dataclass(frozen=True)
class Stock:
    """A client that knows subjects and JSON only."""

    connection: Client

    async def publish(self, subject: str, body: Any = None, **headers: str) -> int:
        """Publish to the log; returns the position."""
        data = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        acknowledgement = await self.connection.jetstream().publish(
            subject, data, headers={name.replace("_", "-"): value for name, value in headers.items()} or None
        )
        return acknowledgement.seq

    async def say(self, content: str, place: str = "acme.u1.-", **fields: Any) -> int:
        return await self.publish(f"chat.{place}.message.v1", {"role": "user", "content": content, **fields})

    async def ask(self, verb: str, owner: str = "acme.u1", **request: Any) -> dict[str, Any]:
        message = await self.connection.request(
            f"ask.{owner}.{verb}.v1", json.dumps(request).encode(), timeout=10
        )
        reply: dict[str, Any] = json.loads(message.data)
        return reply

    async def contents(self, owner: str = "acme.u1", **request: Any) -> list[str]:
        """What `history` gives, texts only."""
        return [message["content"] for message in (await self.ask("history", owner, **request))["messages"]]


async def indexed(stock: Stock, seq: int) -> int:
    """Wait until the log up to there can be found; returns the position."""
    stream_context = stock.connection.jetstream()
    async with asyncio.timeout(20):
        for consumer in ("persist", "index"):
            while await applied_position(stream_context, consumer) < seq:
                await asyncio.sleep(0.02)
        while (await stream_context.stream_info(WORK, subjects_filter="work.index.>")).state.subjects:
            await asyncio.sleep(0.02)
    return seq


@pytest_asyncio.fixture
async def stock(connection: Client) -> Stock:
    return Stock(connection)


@pytest_asyncio.fixture
async def mnemon(deployment: Deployment) -> AsyncIterator[Deployment]:
    """All consumers, in this process."""
    async with run_consumers(("persist", "retrieve"), deployment):
        yield deployment


@pytest_asyncio.fixture
async def deciding(deployment: Deployment, tmp_path: Path) -> AsyncIterator[Deployment]:
    """All consumers, with vectors."""
    with_vectors = deployment.model_copy(update={"vectors_folder": tmp_path / "vectors"})
    async with run_consumers(CONSUMERS, with_vectors):
        yield with_vectors


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """Tables of the test's own."""
    deployment = Deployment(database_dsn=database_url, database_schema=f"test_{uuid4().hex[:12]}")
    assert deployment.database_url is not None
    migrate(deployment.database_url, deployment.database_schema)
    database = Database(deployment)
    await database.open()
    yield database
    await database.close()


@pytest_asyncio.fixture
async def beside(database_url: str) -> AsyncIterator[Database]:
    """A generation beside."""
    deployment = Deployment(database_dsn=database_url, database_schema=f"beside_{os.getpid()}")
    assert deployment.database_url is not None
    migrate(deployment.database_url, deployment.database_schema)
    async with Database(deployment) as database:
        yield database
