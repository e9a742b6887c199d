"""Latency of `history` and `context`, compared with a bare NATS echo."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

from nats.aio.client import Client

from mnemon_bench.baselines.echo import SUBJECT
from mnemon_bench.measures.percentiles import compute_median_percentiles, compute_percentiles
from mnemon_bench.workers.processes import spawn_consumers, spawn_server
from mnemon_bench.workloads.messages import USERS, fill_log
from mnemon_consumers.app import run_consumers
from mnemon_contracts.subjects import build_ask_subject
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.config import Deployment

CALLERS = (1, 16, 64)
MESSAGES = 20_000
TARGETS = {
    "history_read_1_p50": 5.0,
    "history_read_64_p99": 10.0,
    "history_cached_1_p50": 3.0,
    "history_cached_64_p99": 10.0,
}


async def run(
    deployment: Deployment, *, rounds: int = 5, requests: int = 1500, report: Callable[[str], None] = print
) -> dict[str, Any]:
    """Measure `history`, `context` and the echo, interleaved.

    Returns:
        `ratios`: time of a verb divided by the time of the echo, by
        `<verb>_<read|cached>_<callers>_<p50|p99>`. In the case `read`, every request misses the cache and
        queries the database. `targets`: the limits of ratios. `milliseconds`: the times of the verbs and the
        echo. `retrieve_resident_bytes`: the resident memory of `retrieve` in the cases `read` and `cached`.

    Raises:
        RuntimeError: a request fails.
    """
    async with await connect_deployment(deployment, name="bench") as connection:
        await fill_log(connection, MESSAGES)
        async with run_consumers(["persist"], deployment):
            while await read_applied_position(connection.jetstream()) < MESSAGES:
                await asyncio.sleep(0.05)
        times: dict[str, dict[str, float]] = {}
        memory: dict[str, int] = {}
        async with spawn_server("mnemon_bench.baselines.echo", str(deployment.nats_url)):
            # A cache for one user never hits: the next request is about another user.
            for way, users in (("read", 1), ("cached", 10 * USERS)):
                cached = deployment.model_copy(update={"cached_users": users, "vectors_folder": None})
                async with spawn_consumers(["retrieve"], cached) as process:
                    await _measure_requests(
                        connection, "history", 1, USERS
                    )  # fills the cache, if it has room
                    await _measure_requests(connection, "context", 1, USERS)
                    for callers in CALLERS:
                        times |= await _measure_rounds(connection, way, callers, rounds, requests)
                        report(f"{way}, {callers} callers: done")
                    memory[way] = process.memory_info().rss
    return {
        "ratios": dict(_compute_ratios(times)),
        "targets": {"at_most": TARGETS},
        "milliseconds": times,
        "retrieve_resident_bytes": memory,
    }


async def _measure_rounds(
    connection: Client, way: str, callers: int, rounds: int, requests: int
) -> dict[str, dict[str, float]]:
    measured: dict[str, list[tuple[float, float]]] = {"echo": [], "history": [], "context": []}
    for _ in range(rounds):
        for verb, each in measured.items():
            each.append(await _measure_requests(connection, verb, callers, requests))
    return compute_median_percentiles({f"{verb}_{way}_{callers}": each for verb, each in measured.items()})


async def _measure_requests(
    connection: Client, verb: str, callers: int, requests: int
) -> tuple[float, float]:
    """Return the median and the 99th percentile of the round trip, in ms.

    Raises:
        RuntimeError: a request fails.
    """
    taken: list[float] = []
    waiting = iter(range(requests))

    async def send_requests() -> None:
        for number in waiting:
            subject = SUBJECT if verb == "echo" else build_ask_subject("bench", f"u{number % USERS}", verb)
            begun = time.perf_counter()
            reply = await connection.request(subject, b"{}", timeout=30)
            taken.append((time.perf_counter() - begun) * 1000)
            if b'"error"' in reply.data[:100]:
                raise RuntimeError(
                    f"request on {subject} failed: {reply.data.decode()}; correct the cause that the reply "
                    "names, then run the bench again"
                )

    await asyncio.gather(*(send_requests() for _ in range(callers)))
    return compute_percentiles(taken)


def _compute_ratios(times: dict[str, dict[str, float]]) -> Iterator[tuple[str, float]]:
    for name, each in times.items():
        verb, _, place = name.partition("_")
        if verb != "echo":
            for percentile, value in each.items():
                yield f"{name}_{percentile}", round(value / times[f"echo_{place}"][percentile], 2)
