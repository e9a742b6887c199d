"""Deployment with `extract` and a local provider server, for tests of extraction."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

import psycopg
from nats.aio.client import Client
from pydantic import SecretStr

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_consumers.app import run_consumers
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.streams import DEAD, WORK
from mnemon_infra.broker.dead_letters.listing import LetterFilter, read_letters
from mnemon_infra.broker.dead_letters.redrive import RedrivenLetter, redrive_letter
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.config import Deployment
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import BATCHES
from mnemon_infra.settings.store import change_settings
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent
from tests.support.servers.provider_requests import wait_for_requests
from tests.support.settings_edit import setting
from tests.support.stock_client import Stock

TIMEOUT = 60.0
KEY = "sk-one-that-must-not-be-seen"
MODEL = "a-model-of-our-own"
WAITING = "SELECT count(*) FROM windows WHERE NOT is_answered AND batch_id IS NULL"


@dataclass(frozen=True)
class ExtractionHarness:
    """A deployment that uses the models of a local provider server, with helpers for tests of `extract`."""

    stock: Stock
    deployment: Deployment
    server: ProviderServer

    @classmethod
    def on(cls, stock: Stock, deployment: Deployment, server: ProviderServer) -> Self:
        located = {
            "model_url": server.openai_url,
            "model_api_key": SecretStr(KEY),
            "extract_seconds": 1,
            "extract_resume_seconds": 1,
        }
        return cls(stock, deployment.model_copy(update=located), server)

    @property
    def connection(self) -> Client:
        return self.stock.connection

    async def set(self, tenant: str | None = None, **values: Any) -> None:
        """Change settings of extraction by name, and others by full name, such as `limits__per_user`."""
        named = {name if "__" in name else f"extraction__{name}": value for name, value in values.items()}
        await change_settings(self.connection, setting(**named), tenant)

    @asynccontextmanager
    async def running(self, *consumers: str) -> AsyncIterator[None]:
        async with run_consumers(consumers or ("persist", "extract"), self.deployment):
            yield

    async def cut_of(self, users: int) -> None:
        """Publish a message of each of `users` users; let batches be submitted once each has a window."""
        await self.set(pool_seconds=3600)
        said = (
            ChatEvent(f"u{number}", MessageV1(role="user", content=f"I like thing {number}"))
            for number in range(users)
        )
        await MemoryClient(self.connection, tenant="acme").publish_many(said)
        await self.becomes(WAITING, (users,))
        await self.set(pool_seconds=0)

    async def log_of(self, event: str, tenant: str = "*", user: str = "*") -> list[dict[str, Any]]:
        """Return the bodies of the events `event`, in log order, with the further field `owner`."""
        found = []
        async for page in read_event_pages(self.connection, f"memory.{tenant}.{user}.{event}.v1", 0):
            for delivery in page:
                owner = tuple(delivery.subject.split(".")[1:3])
                found.append({**json.loads(delivery.body), "owner": owner})
        return found

    async def texts(self, **whose: str) -> list[str]:
        """Return the texts of the proposed facts, in log order."""
        return [event["text"] for event in await self.log_of("fact.proposed", **whose)]

    async def has(self, number: int, event: str, **whose: str) -> list[dict[str, Any]]:
        """Wait until the log has exactly `number` events of a name; return them."""
        async with asyncio.timeout(TIMEOUT):
            while len(found := await self.log_of(event, **whose)) < number:
                await asyncio.sleep(0.05)
        assert len(found) == number
        return found

    async def becomes(self, query: str, *rows: tuple[Any, ...]) -> None:
        """Wait until a query of the database returns exactly these rows."""
        found: list[tuple[Any, ...]] = []
        try:
            async with asyncio.timeout(TIMEOUT), await self._connect_database() as database:
                while (found := await _fetch_rows(database, query)) != list(rows):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            assert found == list(rows)

    async def sql(self, query: str) -> list[tuple[Any, ...]]:
        async with await self._connect_database() as database:
            return await _fetch_rows(database, query)

    async def is_asked(self) -> None:
        """Wait until the model is answering a request."""
        await wait_for_requests(self.server.state)

    async def time_passes(self) -> None:
        """Make failed windows due now, and run a scan."""
        await self.sql("UPDATE windows SET due_at = now() WHERE NOT is_answered")
        await self.tick()

    async def tick(self) -> None:
        await self.connection.jetstream().publish(f"{BATCHES}.tick", b"", stream=WORK)

    async def is_projected(self) -> None:
        """Wait until `persist` has handled the whole log."""
        stream_context = self.connection.jetstream()
        end = (await stream_context.stream_info("LOG")).state.last_seq
        assert await AppliedPosition().wait_for(stream_context, end, TIMEOUT) >= end

    async def redrive_all(self) -> None:
        """Wait for dead letters, and redrive all of them; assert that none is left."""
        stream_context = self.connection.jetstream()
        async with asyncio.timeout(TIMEOUT):
            while not (found := [each async for each in read_letters(self.connection, LetterFilter())]):
                await asyncio.sleep(0.05)
        for each in found:
            assert isinstance(await redrive_letter(self.connection, each, _never_applied), RedrivenLetter)
        assert (await stream_context.stream_info(DEAD)).state.messages == 0

    async def letters(self) -> list[tuple[dict[str, str], dict[str, Any]]]:
        """Return the headers and the body of each dead letter, in the order of `DEAD`."""
        stream_context = self.connection.jetstream()
        stored = (await stream_context.stream_info(DEAD)).state.messages
        found = [await stream_context.get_msg(DEAD, seq=seq) for seq in range(1, stored + 1)]
        return [(letter.headers or {}, json.loads(letter.data or b"{}")) for letter in found]

    async def _connect_database(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        url = self.deployment.database_url
        assert url is not None
        address = url.set(drivername="postgresql").render_as_string(hide_password=False)
        options = f"-csearch_path={self.deployment.database_schema}"
        return await psycopg.AsyncConnection.connect(address, options=options, autocommit=True)


async def _fetch_rows(
    database: psycopg.AsyncConnection[tuple[Any, ...]], query: str
) -> list[tuple[Any, ...]]:
    cursor = await database.execute(query)
    return await cursor.fetchall() if cursor.description else []


async def _never_applied(_: Delivery) -> bool:
    return False
