"""Answers `context`, `history`, `profile` and `status`; the other verbs say that they are not there yet."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final, TypeVar
from uuid import uuid4

import nats.errors
from faststream.nats import NatsBroker

from consumers.retrieve import decide
from consumers.retrieve.fast_history import FastHistory
from consumers.retrieve.memory import Memory, Seen
from contracts.ask import (
    ContextReplyV1,
    ContextV1,
    HistoryV1,
    ProfileReplyV1,
    ProfileV1,
    Reply,
    StatusReplyV1,
    StatusV1,
)
from contracts.memory import ProfileSetV1
from contracts.registry import VERBS
from contracts.streams import LOG
from contracts.subjects import Address, memory_subject
from infra.broker.lifetime import build_broker, connected, started
from infra.broker.position import log_end
from infra.broker.service import AskService, Refusal
from infra.config import Deployment
from infra.database.engine import Database, DatabaseRefused, DatabaseUnavailable
from infra.database.reading import ConversationView
from infra.settings.store import LiveSettings

NAME: Final = "mnemon"

Answered = TypeVar("Answered")


@asynccontextmanager
async def consuming(database: Database, deployment: Deployment) -> AsyncIterator[None]:
    """Answer requests as long as the block lasts."""
    settings = LiveSettings()
    memory = Memory(database, settings, deployment.cached_users)
    broker = build_broker(deployment, "retrieve", on_gap=memory.forget)
    retrieve = Retrieve(broker, memory, settings)
    async with connected(broker) as connection, settings.watched(connection):
        # Nothing is answered before changes are heard of.
        await memory.follow(connection)
        async with retrieve.service.completed(), started(broker), retrieve.service.listed():
            yield


class Retrieve:
    """The verbs. Each answers at once from what is at hand, or gives a coroutine that reads it."""

    def __init__(self, broker: NatsBroker, memory: Memory, settings: LiveSettings) -> None:
        self._broker = broker
        self._memory = memory
        self._settings = settings
        self.service = AskService(broker, NAME, version("mnemon"))
        answers = {
            "context": self.context,
            "history": self.history,
            "profile": self.profile,
            "status": self.status,
        }
        for verb in VERBS:
            self.service.endpoint(verb, answers.get(verb, _not_there_yet))

    def history(self, address: Address, body: bytes) -> bytes | Coroutine[Any, Any, bytes]:
        request = HistoryV1.read(body or b"{}")
        owner = address.tenant, address.user
        wanted = request.conversation, request.limit, request.min_seq

        def reply(seen: Seen[ConversationView]) -> bytes:
            shown = decide.history(seen.value.messages, request.limit)
            return FastHistory(seen.seq, seen.value.conversation, shown).body()

        async def read() -> bytes:
            return reply(await self._memory.messages(owner, *wanted))

        at_hand = self._memory.messages_at_hand(owner, *wanted)
        return reply(at_hand) if at_hand is not None else _available(read())

    def context(self, address: Address, body: bytes) -> Reply | Coroutine[Any, Any, Reply]:
        request = ContextV1.read(body or b"{}")
        if request.format != "messages":
            raise Refusal("not_implemented", f"format: {request.format!r} is not there yet, 'messages' is")
        if request.as_of is not None:
            raise Refusal("not_implemented", "as_of: memory of another moment is not there yet")
        owner = address.tenant, address.user
        settings = self._settings.of(address.tenant)
        wanted = request.conversation, settings.recent_messages, request.min_seq

        def reply(messages: Seen[ConversationView], profile: Seen[dict[str, Any]]) -> ContextReplyV1:
            return ContextReplyV1.model_construct(
                seen_seq=min(messages.seq, profile.seq),
                conversation=messages.value.conversation,
                messages=decide.context(
                    messages.value.messages, profile.value, settings.recent_messages, settings.time_stamps
                ),
                profile=profile.value,
                degraded=("budget",) if request.budget is not None else (),
            )

        async def read() -> Reply:
            return reply(
                *await asyncio.gather(
                    self._memory.messages(owner, *wanted), self._memory.profile(owner, request.min_seq)
                )
            )

        messages = self._memory.messages_at_hand(owner, *wanted)
        profile = self._memory.profile_at_hand(owner, request.min_seq)
        if messages is not None and profile is not None:
            return reply(messages, profile)
        return _available(read())

    def profile(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = ProfileV1.read(body or b"{}")
        owner = address.tenant, address.user

        async def read_or_set() -> Reply:
            min_seq = request.min_seq
            if request.fields:
                min_seq = await self._publish(address, ProfileSetV1(fields=request.fields))
            seen = await self._memory.profile(owner, min_seq)
            return ProfileReplyV1.model_construct(seen_seq=seen.seq, profile=seen.value)

        return _available(read_or_set())

    def status(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = StatusV1.read(body or b"{}")

        async def read() -> Reply:
            end = await log_end(self._broker.config.connection_state.stream)
            seen = await self._memory.counts((address.tenant, address.user), request.min_seq)
            counts = seen.value
            return StatusReplyV1(
                seen_seq=seen.seq,
                conversation=counts.conversation,
                conversations=counts.conversations,
                messages=counts.messages,
                first_at=counts.first_at,
                last_at=counts.last_at,
                log_seq=end,
            )

        return _available(read())

    async def _publish(self, address: Address, event: ProfileSetV1) -> int:
        acknowledgement = await self._broker.config.connection_state.stream.publish(
            memory_subject(address.tenant, address.user, "profile.set"),
            event.body(),
            stream=LOG,
            headers={"Nats-Msg-Id": str(uuid4())},
        )
        return int(acknowledgement.seq)


async def _available(reply: Coroutine[Any, Any, Answered]) -> Answered:
    """Say of what cannot be reached now that it may be reached later."""
    try:
        return await reply
    except DatabaseUnavailable as error:
        raise Refusal("unavailable", f"the database does not answer: {error}", retryable=True) from error
    except nats.errors.Error as error:
        raise Refusal("unavailable", f"the log does not answer: {error!r}", retryable=True) from error
    except DatabaseRefused as error:
        raise Refusal("refused", f"the database does not take it: {error}") from error


def _not_there_yet(address: Address, body: bytes) -> Reply:
    raise Refusal("not_implemented", f"{address.name} is part of the contract, and not there yet")
