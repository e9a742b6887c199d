"""Deployment with `compact` and a local provider server, for tests of summaries."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from nats.aio.client import Client
from pydantic import SecretStr

from mnemon_bench.provider_server.answers import ReceivedRequest
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_consumers.app import run_consumers
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.streams import DEAD, WORK
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.config import Deployment
from mnemon_infra.settings.store import change_settings
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent
from tests.support.servers.provider_requests import wait_for_requests
from tests.support.settings_edit import setting
from tests.support.stock_client import Stock

TIMEOUT = 60.0
KEY = "sk-one-that-must-not-be-seen"
MODEL = "a-model-of-our-own"

Summary = dict[str, Any]


@dataclass
class GatedModel:
    """Model whose answers wait until `opened` is set; `asked` is set when a request arrives."""

    answering: Callable[[ReceivedRequest], str]
    asked: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def __call__(self, question: ReceivedRequest) -> str:
        self.asked.set()
        self.opened.wait(TIMEOUT)
        return self.answering(question)

    async def is_asked(self) -> None:
        assert await asyncio.to_thread(self.asked.wait, TIMEOUT)


@dataclass(frozen=True)
class CompactionHarness:
    """A deployment that uses the models of a local provider server, with helpers for tests of `compact`."""

    stock: Stock
    deployment: Deployment
    server: ProviderServer

    @classmethod
    async def on(cls, stock: Stock, deployment: Deployment, server: ProviderServer) -> Self:
        located = {"model_url": server.openai_url, "model_api_key": SecretStr(KEY)}
        located |= {"anthropic_url": server.url, "anthropic_api_key": SecretStr(KEY)}
        compacting = cls(stock, deployment.model_copy(update=located), server)
        await compacting.set(provider="openai", model=MODEL)
        return compacting

    @property
    def connection(self) -> Client:
        return self.stock.connection

    async def set(self, tenant: str | None = None, **values: Any) -> None:
        """Change settings of compaction by name, and others by full name, such as `limits__per_user`."""
        named = {name if "__" in name else f"compaction__{name}": value for name, value in values.items()}
        await change_settings(self.connection, setting(**named), tenant)

    @asynccontextmanager
    async def running(self, *consumers: str) -> AsyncIterator[None]:
        async with run_consumers(consumers or ("persist", "compact"), self.deployment):
            yield

    def gate(self) -> GatedModel:
        """Make the answers of the model wait from now on; return the gate that lets them pass."""
        gate = GatedModel(self.server.state.answering)
        self.server.state.answering = gate
        return gate

    async def talk(
        self,
        messages: int,
        users: Iterable[str] = ("u1",),
        conversation: str | None = "talk",
        text: str = "{user} says number {number}",
        first: int = 0,
    ) -> int:
        """Publish `messages` messages of each user, the users in turn; return the last log position.

        `first` is the number of the first message of each user; odd numbers are of the role `assistant`.
        """
        said = (
            ChatEvent(
                user,
                MessageV1(
                    role="assistant" if number % 2 else "user", content=text.format(user=user, number=number)
                ),
                conversation,
            )
            for number in range(first, first + messages)
            for user in users
        )
        return (await MemoryClient(self.connection, tenant="acme").publish_many(said)).last_seq

    async def settled(self) -> None:
        """Wait until `persist` has handled the whole log, and no trigger of `compact` is left."""
        stream_context = self.connection.jetstream()
        async with asyncio.timeout(TIMEOUT * 2):
            while True:
                end = (await stream_context.stream_info("LOG")).state.last_seq
                assert await AppliedPosition().wait_for(stream_context, end, TIMEOUT) >= end
                left = (await stream_context.stream_info(WORK, subjects_filter="work.compact.>")).state
                if not left.subjects and (await stream_context.stream_info("LOG")).state.last_seq == end:
                    return
                await asyncio.sleep(0.02)

    async def log_of(self, event: str, user: str = "*", tenant: str = "acme") -> list[dict[str, Any]]:
        """Return the bodies of the events `event`, in log order.

        Each has the further fields `seq`, its log position, and `name` and `user` of its subject.
        """
        found = []
        async for page in read_event_pages(self.connection, f"memory.{tenant}.{user}.{event}.v1", 0):
            for delivery in page:
                _, _, user_of_it, *name, _ = delivery.subject.split(".")
                origin = {"seq": delivery.sequence, "name": ".".join(name), "user": user_of_it}
                found.append(json.loads(delivery.body) | origin)
        return found

    async def summaries(self, user: str = "u1", conversation: str = "talk") -> list[Summary]:
        """Return the events of all summaries of a conversation, merged ones included, in log order."""
        found = await self.log_of("summary.*", user)
        return [each for each in found if each["conversation"] == conversation]

    async def has(self, number: int, event: str, user: str = "*") -> list[dict[str, Any]]:
        """Wait until the log has exactly `number` events of a name, and return them."""
        async with asyncio.timeout(TIMEOUT):
            while len(found := await self.log_of(event, user)) < number:
                await asyncio.sleep(0.05)
        assert len(found) == number
        return found

    async def has_more(self, number: int, event: str) -> None:
        """Wait until the log has more than `number` events of a name."""
        async with asyncio.timeout(TIMEOUT):
            while len(await self.log_of(event)) <= number:
                await asyncio.sleep(0.02)

    async def is_asked(self, number: int) -> None:
        """Wait until the model is answering at least `number` requests at the same time."""
        await wait_for_requests(self.server.state, number)

    async def waits(self, number: int) -> bool:
        """Return whether `compact` holds exactly `number` unacknowledged triggers, and no others wait."""
        stream_context = self.connection.jetstream()
        info = await stream_context.consumer_info(WORK, "compact")
        left = (await stream_context.stream_info(WORK, subjects_filter="work.compact.*.*.*")).state.subjects
        return len(left or ()) == info.num_ack_pending == number and not info.num_pending

    async def said(self, user: str = "u1", conversation: str = "talk") -> list[int]:
        """Return the log positions of the messages whose subjects name the conversation."""
        found = read_event_pages(self.connection, f"chat.acme.{user}.{conversation}.message.v1", 0)
        return [delivery.sequence async for page in found for delivery in page]

    async def letters(self) -> list[str]:
        """Return the reasons of the dead letters."""
        stream_context = self.connection.jetstream()
        stored = (await stream_context.stream_info(DEAD)).state.messages
        letters = [await stream_context.get_msg(DEAD, seq) for seq in range(1, stored + 1)]
        return [(letter.headers or {})["Mnemon-Error"] for letter in letters]


def live(summaries: Iterable[Summary]) -> list[Summary]:
    """Return the summaries that no merged summary replaces."""
    summaries = list(summaries)
    merged = {each for summary in summaries for each in summary.get("merged", ())}
    return [summary for summary in summaries if summary["summary_id"] not in merged]


def covers_once(summaries: Iterable[Summary], said: list[int], messages: int) -> list[int]:
    """Assert that consecutive summaries cover `messages` messages each, from the first message on.

    `said` has the log positions of the messages. Return the positions that no summary covers.
    """
    written = [each for each in summaries if each["name"] == "summary.written"]
    for place, each in enumerate(written):
        stretch = said[place * messages : (place + 1) * messages]
        assert [each["from_seq"], each["to_seq"]] == [stretch[0], stretch[-1]]
        assert each["lineage"]["sources"] == stretch
    return said[len(written) * messages :]
