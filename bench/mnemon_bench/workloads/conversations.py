"""Conversations for benchmarks, and functions that wait for `extract`, `compact` and `index`."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from nats.aio.client import Client

from mnemon_bench.workloads.sentences import make_fact, make_question
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.events.memory import WindowAnsweredV1
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import build_event_filter
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.log_reader import read_events
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent
from mnemon_producers.publisher import Events, Published

TENANT = "bench"

FACT_INTERVAL = 10
"""Distance, in messages, between two messages with a fact that the provider server's model finds."""


def name_user(number: int) -> str:
    return f"u{number}"


def make_message(speaker: int, number: int) -> MessageV1:
    """Return a message of a user's conversation, of about 100 characters."""
    about = speaker * 1000 + number * 2
    text = f"{make_fact(about)}. {make_question(about + 1)}"
    if number % FACT_INTERVAL == 0:
        text += f" I like tea number {speaker}-{number}"
    return MessageV1(role="assistant" if number % 2 else "user", content=text)


def generate_conversations(users: Sequence[int], messages: int, first: int = 0) -> Iterator[ChatEvent]:
    """Yield `messages` messages of each user, the users in turn.

    The message number `first` of each user comes first, then the next message of each.
    """
    for number in range(first, first + messages):
        for speaker in users:
            yield ChatEvent(name_user(speaker), make_message(speaker, number))


def generate_whole_conversations(users: Sequence[int], messages: int) -> Iterator[ChatEvent]:
    """Yield `messages` messages of each user, all of a user before those of the next."""
    for speaker in users:
        yield from generate_conversations([speaker], messages)


async def publish_events(connection: Client, talk: Iterator[ChatEvent]) -> Mapping[str, int]:
    """Publish events; return the log position of the last message of each user."""
    sent = list(talk)
    positions = await publish_messages(connection, sent)
    return {event.user: position for event, position in zip(sent, positions, strict=True)}


async def publish_messages(connection: Client, talk: Events) -> list[int]:
    """Publish events, and return their log positions. Other events may lie between two batches."""
    positions: list[int] = []

    def add_batch(published: Published) -> None:
        batch = published.count - len(positions)
        positions.extend(range(published.last_seq - batch + 1, published.last_seq + 1))

    await MemoryClient(connection, tenant=TENANT).publish_many(talk, progress=add_batch)
    return positions


async def wait_for_windows(connection: Client, last: Mapping[str, int]) -> None:
    """Wait until `extract` has read every user's conversation, to its last message.

    `last` has the log position of the last message of each user.
    """
    furthest = dict.fromkeys(last, 0)
    position = 0
    while any(furthest[name] < seq for name, seq in last.items()):
        await asyncio.sleep(0.02)
        async for seq, name, event in _read_answered_windows(connection, position):
            position = seq
            if name in furthest:
                furthest[name] = max(furthest[name], event.to_seq)


async def count_windows(connection: Client) -> int:
    """Return the number of windows that were answered."""
    return sum([1 async for _ in _read_answered_windows(connection, 0)])


async def _read_answered_windows(
    connection: Client, after: int
) -> AsyncIterator[tuple[int, str, WindowAnsweredV1]]:
    """Yield each `window.answered` after the log position `after`, as log position, user and event."""
    async for delivery, address, event in read_events(
        connection, build_event_filter("window.answered"), after
    ):
        assert isinstance(event, WindowAnsweredV1)
        yield delivery.sequence, address.user, event


async def wait_for_summaries(connection: Client, seq: int) -> None:
    """Wait until `persist` has written the log up to position `seq`, and no trigger of `compact` waits."""
    stream_context = connection.jetstream()
    while await read_applied_position(stream_context) < seq:
        await asyncio.sleep(0.01)
    while (await stream_context.stream_info(WORK, subjects_filter="work.compact.>")).state.subjects:
        await asyncio.sleep(0.01)


async def wait_for_index(connection: Client, seq: int) -> None:
    """Wait until `persist` and `index` have reached position `seq`, and no work of `index` is left."""
    stream_context = connection.jetstream()
    for consumer in "persist", "index":
        while await read_applied_position(stream_context, consumer) < seq:
            await asyncio.sleep(0.02)
    # `index` leaves a trigger for work that it could not do at once; no trigger means that all is done.
    while (await stream_context.stream_info(WORK, subjects_filter="work.index.>")).state.subjects:
        await asyncio.sleep(0.02)
