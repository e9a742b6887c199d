"""Messages per second that the client publishes, compared with plain nats-py in the same run."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from statistics import median
from typing import Any, TypeAlias
from uuid import uuid4

import nats
import psutil
from nats.aio.client import Client

from mnemon_bench.measures.percentiles import compute_median_ratio
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent
from mnemon_producers.publisher import BATCH_MESSAGES, Published

ROUNDS = 7
BATCHED = 20_000
SINGLE = 2_000
USERS = 1_000
TEXT = "A turn of a conversation is about as long as this one, give or take a few words more or less: "

PublishedRow: TypeAlias = tuple[str, str]
PublishMethod: TypeAlias = Callable[[list[PublishedRow]], Awaitable[object]]
MeasuredRates: TypeAlias = dict[str, list[float]]
"""Messages per second by the name of the method, one value for each round."""


async def run(nats_url: str) -> dict[str, Any]:
    """Measure against a NATS server that only this benchmark uses; the run fills its log.

    Returns:
        `ratios`: the client's messages per second over those of a bare loop, as medians of interleaved
        rounds: `publish_many` over bare atomic batches, and over batches with ids (which a retry needs);
        `publish` over bare `publish_async`; and memory at 100,000 messages over that at 10,000.
        `targets`: the limits of the first and of the last ratio. `messages_per_second` by method.
        `memory_mib`: peak memory in MiB by number of messages.
    """
    async with await nats.connect(nats_url) as connection:
        await provision(connection)
        memory = await _measure_memory(connection)
        batched = await _measure_rates(_build_batched_methods(connection), BATCHED)
        single = await _measure_rates(_build_single_methods(connection), SINGLE)
    return {
        "ratios": {
            "publish_many": _compute_ratio(batched, "publish_many", "atomic_batches"),
            "publish_many_same_headers": _compute_ratio(batched, "publish_many", "atomic_batches_with_ids"),
            "publish": _compute_ratio(single, "publish", "publish_async"),
            "memory": memory["100000"] / memory["10000"],
        },
        "targets": {"at_least": {"publish_many": 0.9}, "at_most": {"memory": 1.2}},
        "messages_per_second": {way: round(median(rates)) for way, rates in (batched | single).items()},
        "memory_mib": memory,
    }


def _compute_ratio(rates: MeasuredRates, way: str, beside: str) -> float:
    return compute_median_ratio(rates[way], rates[beside])


def _build_batched_methods(connection: Client) -> dict[str, PublishMethod]:
    client = MemoryClient(connection, tenant="bench")

    async def publish_many(rows: list[PublishedRow]) -> Published:
        return await client.publish_many(_make_events(rows))

    async def publish_atomic_batches(rows: list[PublishedRow]) -> None:
        await _publish_atomic_batches(connection, rows, ids=False)

    async def publish_atomic_batches_with_ids(rows: list[PublishedRow]) -> None:
        await _publish_atomic_batches(connection, rows, ids=True)

    return {
        "atomic_batches": publish_atomic_batches,
        "publish_many": publish_many,
        "atomic_batches_with_ids": publish_atomic_batches_with_ids,
    }


def _build_single_methods(connection: Client) -> dict[str, PublishMethod]:
    client = MemoryClient(connection, tenant="bench")
    jetstream = connection.jetstream()

    async def publish(rows: list[PublishedRow]) -> None:
        await asyncio.gather(*(client.publish(user, "user", content) for user, content in rows))

    async def publish_async(rows: list[PublishedRow]) -> None:
        futures = [
            await jetstream.publish_async(
                _make_subject(user), _make_body(content), headers={"Nats-Msg-Id": uuid4().hex}
            )
            for user, content in rows
        ]
        await asyncio.gather(*futures)

    return {"publish_async": publish_async, "publish": publish}


async def _publish_atomic_batches(connection: Client, rows: list[PublishedRow], *, ids: bool) -> None:
    jetstream = connection.jetstream()
    run_id = uuid4().hex
    for start in range(0, len(rows), BATCH_MESSAGES):
        batch = rows[start : start + BATCH_MESSAGES]
        batch_id = uuid4().hex
        for number, (user, content) in enumerate(batch, 1):
            headers = {"Nats-Batch-Id": batch_id, "Nats-Batch-Sequence": str(number)}
            if ids:
                headers["Nats-Msg-Id"] = f"{run_id}:{start + number}"
            if number < len(batch):
                await connection.publish(_make_subject(user), _make_body(content), headers=headers)
            else:
                headers["Nats-Batch-Commit"] = "1"
                await jetstream.publish(_make_subject(user), _make_body(content), stream=LOG, headers=headers)


async def _measure_rates(ways: dict[str, PublishMethod], size: int) -> MeasuredRates:
    rows = list(_generate_rows(size))
    rates: MeasuredRates = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.perf_counter()
            await way(rows)
            rates[name].append(size / (time.perf_counter() - began))
    return rates


async def _measure_memory(connection: Client) -> dict[str, float]:
    client = MemoryClient(connection, tenant="bench")
    process = psutil.Process()
    highest: dict[str, float] = {}
    for size in (10_000, 100_000):
        samples = [0.0]

        def sample_memory(_: Published, samples: list[float] = samples) -> None:
            samples.append(process.memory_info().rss / 2**20)

        await client.publish_many(_make_events(_generate_rows(size)), progress=sample_memory)
        highest[str(size)] = max(samples)
    return highest


def _generate_rows(size: int) -> Iterator[PublishedRow]:
    return ((f"u{number % USERS}", f"{TEXT}{number}") for number in range(size))


def _make_events(rows: Iterator[PublishedRow] | list[PublishedRow]) -> Iterator[ChatEvent]:
    return (ChatEvent(user, MessageV1(role="user", content=content)) for user, content in rows)


def _make_subject(user: str) -> str:
    return f"chat.bench.{user}.-.message.v1"


def _make_body(content: str) -> bytes:
    return json.dumps({"role": "user", "content": content}).encode()
