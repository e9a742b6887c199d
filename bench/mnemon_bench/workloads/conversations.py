"""Conversations for the benchmarks of language models, and waiting until they have been read."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager

from nats.aio.client import Client

from mnemon_bench.workloads.sentences import fact, question
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.events.memory import WindowAnsweredV1
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import event_filter
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.streams.applied_position import applied_position
from mnemon_infra.broker.streams.log_reader import events
from mnemon_infra.config import Deployment
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent

TENANT = "bench"

TELLING = 10
"""One message in so many tells something to be kept."""


def user(number: int) -> str:
    """The user of this number."""
    return f"u{number}"


def said(speaker: int, number: int) -> MessageV1:
    """What is said in a user's conversation: about a hundred and fifty characters each time."""
    about = speaker * 1000 + number * 2
    text = f"{fact(about)}. {question(about + 1)}"
    if number % TELLING == 0:
        text += f" I like tea number {speaker}-{number}"
    return MessageV1(role="assistant" if number % 2 else "user", content=text)


def conversations(users: Sequence[int], messages: int, first: int = 0) -> Iterator[ChatEvent]:
    """Everybody's messages, as they come in: one of each user, then the next of each."""
    for number in range(first, first + messages):
        for speaker in users:
            yield ChatEvent(user(speaker), said(speaker, number))


@asynccontextmanager
async def connected(deployment: Deployment) -> AsyncIterator[Client]:
    """A connection as long as the block lasts."""
    connection = await connect(str(deployment.nats_url), name="bench")
    try:
        yield connection
    finally:
        await connection.close()


async def publish(connection: Client, talk: Iterator[ChatEvent]) -> Mapping[str, int]:
    """Publish; returns the log position of each user's last message, or one beyond it."""
    said = list(talk)
    published = await MemoryClient(connection, tenant=TENANT).publish_many(said)
    first = published.last_seq - len(said) + 1
    return {event.user: first + place for place, event in enumerate(said)}


async def read(connection: Client, last: Mapping[str, int]) -> None:
    """Return when every user's conversation was read for facts, to its last message."""
    furthest = dict.fromkeys(last, 0)
    position = 0
    while any(furthest[name] < seq for name, seq in last.items()):
        await asyncio.sleep(0.02)
        async for seq, name, event in _answered(connection, position):
            position = seq
            if name in furthest:
                furthest[name] = max(furthest[name], event.to_seq)


async def answered_windows(connection: Client) -> int:
    """How many stretches of conversations were read for facts."""
    return sum([1 async for _ in _answered(connection, 0)])


async def _answered(connection: Client, after: int) -> AsyncIterator[tuple[int, str, WindowAnsweredV1]]:
    """What was read beyond a log position: the position, the user and the event."""
    async for delivery, address, event in events(connection, event_filter("window.answered"), after):
        assert isinstance(event, WindowAnsweredV1)
        yield delivery.sequence, address.user, event


async def compacted(connection: Client, seq: int) -> None:
    """Return when nothing up to a log position is left to be put into summaries."""
    stream_context = connection.jetstream()
    while await applied_position(stream_context) < seq:
        await asyncio.sleep(0.01)
    while (await stream_context.stream_info(WORK, subjects_filter="work.compact.>")).state.subjects:
        await asyncio.sleep(0.01)
