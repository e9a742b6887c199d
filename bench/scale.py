"""From the log to committed and acknowledged: two processes of persist against one."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from statistics import median
from typing import Any
from uuid import uuid4

import psutil
from nats.aio.client import Client

from bench.load import fill
from bench.processes import consuming
from contracts.streams import LOG
from infra.broker.connect import connect
from infra.broker.position import applied_position
from infra.broker.topology import begin_again
from infra.config import Deployment
from infra.database.migrate import migrate

_FAR = "2099-01-01T00:00:00Z"


async def run(
    deployment: Deployment,
    *,
    messages: int = 100_000,
    rounds: int = 3,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure one and two, turn about, over the same messages, each time into tables of their own.

    Args:
        deployment: an empty stack, already provisioned.
        messages: messages in the log.
        rounds: measurements of each; the medians count.
        report: told what is going on.

    Returns:
        `ratios`: `two_to_one` of the rates. `per_second` has the rates, in messages; `cores` how many the
        processes of persist keep busy, and how many are busy on the whole machine: the rest of them are the
        servers', and whatever else runs there.
    """
    connection = await connect(str(deployment.nats_url), name="bench")
    rates: dict[int, list[float]] = {1: [], 2: []}
    cores: dict[int, dict[str, float]] = {}
    try:
        last = await fill(connection, messages)
        for number in range(1, rounds + 1):
            for processes in rates:
                seconds, cores[processes] = await _drained(connection, deployment, processes, last)
                rates[processes].append(messages / seconds)
            report(f"round {number} of {rounds}: one {rates[1][-1]:,.0f}/s, two {rates[2][-1]:,.0f}/s")
    finally:
        await connection.close()
    return {
        "ratios": {
            # Round by round: what else the machine does touches neighbours alike.
            "two_to_one": median(two / one for one, two in zip(rates[1], rates[2], strict=True)),
        },
        "targets": {},
        "messages": messages,
        "per_second": {str(each): [round(rate) for rate in taken] for each, taken in rates.items()},
        "cores": {"of_the_machine": psutil.cpu_count(), **{str(each): busy for each, busy in cores.items()}},
    }


async def _drained(
    connection: Client, deployment: Deployment, processes: int, last: int
) -> tuple[float, dict[str, float]]:
    """Seconds that so many processes take for the whole log, and how many cores are busy meanwhile."""
    stream_context = connection.jetstream()
    located = deployment.model_copy(update={"database_schema": f"bench_{uuid4().hex[:12]}"})
    assert located.database_url is not None
    await asyncio.to_thread(migrate, located.database_url, located.database_schema)
    await begin_again(connection, LOG, "persist")
    # Paused until everything stands, so that only the work is measured.
    await stream_context.pause_consumer(LOG, "persist", pause_until=_FAR)
    async with AsyncExitStack() as ends:
        working = [await ends.enter_async_context(consuming(["persist"], located)) for _ in range(processes)]
        used = [_used(each) for each in working]
        psutil.cpu_percent()
        begun = time.perf_counter()
        await stream_context.resume_consumer(LOG, "persist")
        while await applied_position(stream_context) < last:
            await asyncio.sleep(0.025)
        seconds = time.perf_counter() - begun
        machine = psutil.cpu_percent() / 100 * (psutil.cpu_count() or 1)
        persist = sum(map(_used, working)) - sum(used)
    return seconds, {"persist": round(persist / seconds, 2), "all": round(machine, 2)}


def _used(process: psutil.Process) -> float:
    """Seconds of a processor."""
    times = process.cpu_times()
    return times.user + times.system
