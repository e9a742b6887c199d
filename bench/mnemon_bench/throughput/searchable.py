"""Messages per second from publish until `search` finds them, with the two processes of `mnemon up`."""

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from statistics import median
from typing import Any

from nats.aio.client import Client

from mnemon_bench.measures.percentiles import compute_median_ratio
from mnemon_bench.workers.processes import MemoryPeak, open_empty_vectors, run_module, spawn_all_consumers
from mnemon_bench.workloads.messages import USERS
from mnemon_bench.workloads.sentences import make_fact
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.streams import LOG, WORK
from mnemon_contracts.subjects import build_ask_subject
from mnemon_contracts.verbs.tools import SearchReplyV1
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.config import Deployment
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent

TENANT = "bench"
MIN_RATE = 2_000

SAMPLE = 50
HIT_LIMIT = 100
"""Limit of hits of a search; the benchmark checks that a message is found, not that it ranks first."""

SEARCH_TIMEOUT = 60.0
"""Maximum duration of a measurement, from the first publish until the last message is found, in seconds."""

IDLE_TIMEOUT = 120.0
"""Maximum wait before a round until no consumer has deliveries left, in seconds."""


async def run(
    deployment: Deployment,
    *,
    messages: int = 10_000,
    rounds: int = 5,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure mnemon and a bare loop, interleaved.

    `messages` is the number of messages in each round. They belong to a thousand users, and each has a unique
    word. The messages of earlier rounds stay.

    Returns:
        `messages_per_second`: from the first publish until all messages are indexed and the last is found.
        `targets`: the limit of this rate. `ratios`: `searchable_to_bare` is the rate over that of a loop that
        embeds and upserts the same texts. `searchable_per_second` and `bare_per_second`: both rates in each
        round. `peak_resident_bytes`: peak memory of the process that runs `index`, by number of messages.
        `bytes_per_message`: growth of this memory, which includes the vectors of the embedded engine, for
        each message.

    Raises:
        RuntimeError: a search fails, or does not find a message by its unique word.
        TimeoutError: the last message was not found within `SEARCH_TIMEOUT`, or consumers still had
            deliveries after `IDLE_TIMEOUT`.
        BackgroundFailed: the consumers of the second process did not start.
    """
    mnemon, bare, peaks = [], [], []
    async with AsyncExitStack() as ends:
        connection = await ends.enter_async_context(await connect_deployment(deployment, name="bench"))
        peak = MemoryPeak(await ends.enter_async_context(spawn_all_consumers(deployment)))
        await ends.enter_async_context(peak.watch_memory())
        for number in range(rounds):
            numbers = range(number * messages, (number + 1) * messages)
            await _wait_until_idle(connection)
            bare.append(messages / await _measure_bare_loop(deployment, numbers))
            mnemon.append(messages / await _measure_mnemon(connection, numbers))
            peaks.append(peak.resident_bytes)
            await _check_sample(connection, numbers)
            report(f"round {number + 1} of {rounds}: bare {bare[-1]:,.0f}/s, searchable {mnemon[-1]:,.0f}/s")
    return {
        "ratios": {
            "searchable_to_bare": compute_median_ratio(mnemon, bare),
        },
        "targets": {"at_least": {"messages_per_second": MIN_RATE}},
        "messages_per_second": round(median(mnemon)),
        "searchable_per_second": [round(rate) for rate in mnemon],
        "bare_per_second": [round(rate) for rate in bare],
        "peak_resident_bytes": {str((n + 1) * messages): size for n, size in enumerate(peaks)},
        "bytes_per_message": round((peaks[-1] - peaks[0]) / (messages * max(1, rounds - 1))),
    }


def make_text(number: int) -> str:
    """Return a text with a unique word; `TOPICS` consecutive messages of a user have different topics."""
    return f"{make_fact(number + number // USERS)}, {_make_word(number)}"


def name_user(number: int) -> str:
    """Return the name of the user who sends a message."""
    return f"u{number * 7919 % USERS}"


def _make_word(number: int) -> str:
    return f"zq{number:06}"


async def _measure_mnemon(connection: Client, numbers: Sequence[int]) -> float:
    """Return the seconds from the first publish until the last message is found."""

    def generate_events() -> Iterator[ChatEvent]:
        for number in numbers:
            yield ChatEvent(name_user(number), MessageV1(role="user", content=make_text(number)))

    stream_context = connection.jetstream()
    async with asyncio.timeout(SEARCH_TIMEOUT):
        begun = time.perf_counter()
        published = await MemoryClient(connection, tenant=TENANT).publish_many(generate_events())
        while await read_applied_position(stream_context, "index") < published.last_seq:
            await asyncio.sleep(0.01)
        while not await _is_found(connection, numbers[-1]):
            await asyncio.sleep(0.01)
        return time.perf_counter() - begun


async def _wait_until_idle(connection: Client) -> None:
    """Wait until no consumer has deliveries left.

    After the end of a round, `compact` still works on the conversations of that round.

    Raises:
        TimeoutError: a consumer still has deliveries after `IDLE_TIMEOUT` seconds.
    """
    stream_context = connection.jetstream()
    idle_readings = 0
    async with asyncio.timeout(IDLE_TIMEOUT):
        # One reading of two streams can miss a delivery that leads from one to the other.
        while idle_readings < 2:
            infos = [*await stream_context.consumers_info(LOG), *await stream_context.consumers_info(WORK)]
            is_idle = not any(info.num_pending or info.num_ack_pending for info in infos)
            idle_readings = idle_readings + 1 if is_idle else 0
            await asyncio.sleep(0.1)


async def _check_sample(connection: Client, numbers: Sequence[int]) -> None:
    for number in random.Random(numbers[0]).sample(numbers, SAMPLE):
        if not await _is_found(connection, number):
            raise RuntimeError(
                f"search for {_make_word(number)!r} does not find message {number} of {name_user(number)}, "
                "the only message with this word; report this as a bug"
            )


async def _is_found(connection: Client, number: int) -> bool:
    request = json.dumps({"query": _make_word(number), "scope": ["messages"], "limit": HIT_LIMIT}).encode()
    answer = await connection.request(
        build_ask_subject(TENANT, name_user(number), "search"), request, timeout=30
    )
    reply = SearchReplyV1.model_validate_json(answer.data)
    if reply.error or reply.degraded:
        raise RuntimeError(
            f"search for {_make_word(number)!r} failed: {answer.data.decode()}; correct the cause that the "
            "reply names, then run the bench again"
        )
    return any(_make_word(number) in hit.text for hit in reply.hits)


async def _measure_bare_loop(deployment: Deployment, numbers: range) -> float:
    async with open_empty_vectors(deployment) as own:
        arguments = own.to_json(), str(numbers.start), str(numbers.stop)
        return (await run_module("mnemon_bench.baselines.index_loop", *arguments))["seconds"]
