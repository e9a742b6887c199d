"""Latency of `search` among few and many facts, compared with a bare NATS echo."""

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple
from uuid import uuid4

import psutil
from nats.aio.client import Client

from mnemon_bench.baselines.echo import SUBJECT
from mnemon_bench.measures.percentiles import compute_median_percentiles, compute_percentiles
from mnemon_bench.workers.processes import spawn_consumers, spawn_server
from mnemon_bench.workloads.conversations import wait_for_index
from mnemon_bench.workloads.sentences import make_fact, make_question
from mnemon_contracts.events.memory import Decision, Fact, FactSavedV1
from mnemon_contracts.subjects import build_ask_subject, build_memory_subject
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.config import Deployment
from mnemon_infra.vectors.edge.shard import IDLE_AFTER, OPTIMISE_AFTER

TARGETS = {"search_10000_to_400": 1.5}

OPTIMISATION_SECONDS = 600.0
"""Maximum time of the embedded engine to optimise the vectors of a stage, in seconds."""


class MemorySize(NamedTuple):
    """Size of a tenant's memory; `each` is the number of facts of each user."""

    users: int
    each: int

    @property
    def name(self) -> str:
        """Name of the tenant: `10000` for one user with 10,000 facts, `1000x100` for 1,000 users."""
        return f"{self.each}" if self.users == 1 else f"{self.users}x{self.each}"


STAGES = (
    (MemorySize(1, 400), MemorySize(1, 1_000), MemorySize(1, 10_000)),
    (MemorySize(1, 100_000), MemorySize(1_000, 100)),
)
"""Tenants by stage. A stage is measured before the next is loaded, so the store of the first is small."""


async def run(
    deployment: Deployment,
    *,
    stages: Sequence[Sequence[MemorySize]] = STAGES,
    rounds: int = 5,
    requests: int = 200,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Load facts in stages, and measure searches after each stage, with one caller.

    A stage is a group of tenants with memories of different sizes. A stage with `OPTIMISE_AFTER` facts or
    more is measured once the embedded engine has optimised their vectors. Within a stage, the measurements of
    its tenants and of the echo are interleaved. Each request has a random query.

    Returns:
        `ratios` of the medians: `search_10000_to_400` and `search_<name>_to_echo`. `targets`: the limit of
        the first. `milliseconds` by the name of the tenant. `load_seconds`: from the first publish until all
        facts can be found. `consumers_resident_bytes`: memory of the consumers after the searches.

    Raises:
        RuntimeError: a search fails, or finds nothing.
        TimeoutError: the embedded engine did not become idle within `OPTIMISATION_SECONDS` after a stage.
    """
    times: dict[str, dict[str, float]] = {}
    ratios: dict[str, float] = {}
    loaded: dict[str, float] = {}
    async with AsyncExitStack() as ends:
        connection = await ends.enter_async_context(await connect_deployment(deployment, name="bench"))
        await ends.enter_async_context(spawn_server("mnemon_bench.baselines.echo", str(deployment.nats_url)))
        consumers = await ends.enter_async_context(
            spawn_consumers(["persist", "index", "retrieve"], deployment)
        )
        for stage in stages:
            for memories in stage:
                loaded[memories.name] = round(await _load_facts(connection, memories), 2)
                report(f"{memories.name}: loaded in {loaded[memories.name]} s")
            if sum(memories.users * memories.each for memories in stage) >= OPTIMISE_AFTER:
                await _wait_until_optimised(consumers)
            measured = await _measure_rounds(connection, stage, rounds, requests)
            echo = measured.pop("echo")["p50"]
            times |= measured
            ratios |= {
                f"search_{name}_to_echo": round(each["p50"] / echo, 2) for name, each in measured.items()
            }
            report(f"echo {echo} ms; {measured}")
        resident_bytes = consumers.memory_info().rss
    return {
        "ratios": {"search_10000_to_400": round(times["10000"]["p50"] / times["400"]["p50"], 2)} | ratios,
        "targets": {"at_most": TARGETS},
        "milliseconds": times,
        "load_seconds": loaded,
        "consumers_resident_bytes": resident_bytes,
    }


async def _load_facts(connection: Client, memories: MemorySize) -> float:
    """Load facts, and return the seconds until they can be found."""
    begun = time.perf_counter()
    last_seq = (await append_events(connection, list(_make_facts(memories))))[-1].seq
    await wait_for_index(connection, last_seq)
    return time.perf_counter() - begun


async def _wait_until_optimised(consumers: psutil.Process) -> None:
    """Wait until the embedded engine is idle: its optimisations run in child processes of the consumers.

    Raises:
        TimeoutError: the engine was not idle within `OPTIMISATION_SECONDS`.
    """
    async with asyncio.timeout(OPTIMISATION_SECONDS):
        idle_since = time.monotonic()
        while time.monotonic() - idle_since <= IDLE_AFTER + 1:
            if consumers.children():
                idle_since = time.monotonic()
            await asyncio.sleep(0.1)


def _make_facts(memories: MemorySize) -> Iterator[LogEvent]:
    for user in range(memories.users):
        subject = build_memory_subject(memories.name, f"u{user}", "fact.saved")
        for number in range(memories.each):
            event = FactSavedV1(
                fact_id=f"ar_{number + 1:03}",
                fact=Fact(text=make_fact(user * memories.each + number)),
                decision=Decision(proposal_id=uuid4().hex),
            )
            yield LogEvent(subject, event.encode_body(), uuid4().hex)


async def _measure_rounds(
    connection: Client, stage: Sequence[MemorySize], rounds: int, requests: int
) -> dict[str, dict[str, float]]:
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in ("echo", *(m.name for m in stage))}
    for number in range(rounds):
        measured["echo"].append(await _measure_requests(connection, [(SUBJECT, b"{}")] * requests))
        for memories in stage:
            asked = list(_make_requests(memories, requests, random.Random(number)))
            measured[memories.name].append(await _measure_requests(connection, asked))
    return compute_median_percentiles(measured)


def _make_requests(memories: MemorySize, requests: int, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    for _ in range(requests):
        user, number = chance.randrange(memories.users), chance.randrange(memories.each)
        query = make_question(user * memories.each + number)
        yield build_ask_subject(memories.name, f"u{user}", "search"), json.dumps({"query": query}).encode()


async def _measure_requests(connection: Client, requests: Sequence[tuple[str, bytes]]) -> tuple[float, float]:
    """Return the median and the 99th percentile of the round trip, in ms.

    `requests` has the subject and the body of each request.

    Raises:
        RuntimeError: a search fails, or finds nothing.
    """
    taken = []
    for subject, body in requests:
        begun = time.perf_counter()
        reply = await connection.request(subject, body, timeout=30)
        taken.append((time.perf_counter() - begun) * 1000)
        if subject != SUBJECT and not _has_hits(json.loads(reply.data)):
            raise RuntimeError(
                f"the search {body.decode()} on {subject} failed or found nothing: {reply.data.decode()}; "
                "correct the cause if the reply names an error, otherwise report the reply"
            )
    return compute_percentiles(taken)


def _has_hits(reply: dict[str, Any]) -> bool:
    return not reply.get("error") and not reply.get("degraded") and bool(reply.get("hits"))
