"""Rate of two processes of a consumer over that of one, for persist, compact and extract."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import psutil

from mnemon_bench.measures.percentiles import compute_median_ratio
from mnemon_bench.workloads import scale_models, scale_persist
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.config import Deployment

TARGETS = {"at_least": {"compact_two_to_one": 1.3, "extract_two_to_one": 1.3}}
"""Targets for `compact` and `extract`.

`persist` has no target, because PostgreSQL and nats-server alone keep two cores busy.
"""

Drain = Callable[[int], Awaitable[tuple[float, dict[str, float]]]]
"""Function that runs a number of processes until no work waits, and returns the rate per second and the busy
cores by name.
"""


class _MeasuredRuns(NamedTuple):
    """Rates of all rounds and busy cores of the last round, for a number of processes."""

    rates: list[float]
    cores: dict[str, float]


async def run(
    deployment: Deployment,
    *,
    messages: int = 100_000,
    conversations: int = 200,
    rounds: int = 3,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure one process and two processes of each consumer, interleaved, with the same amount of work.

    `messages` is the number of messages that persist writes into separate tables in each measurement;
    `conversations` is the number that compact and extract each handle.

    Returns:
        `ratios`: `<consumer>_two_to_one` of the rates. `targets`: `TARGETS`. `messages` and `conversations`:
        as given. `per_second`: the rates of all rounds, in messages for persist and in conversations for
        compact and extract. `cores.machine`: the number of cores of this machine.
        `cores.<consumer>.<1 or 2>`: busy cores in the last round with one or two processes of the consumer:
        of each process, of each server, and of the whole machine (`all`). They show whether a process or the
        model's response time is the bottleneck.
    """
    measured: dict[str, dict[int, _MeasuredRuns]] = {}
    async with await connect_deployment(deployment, name="bench") as connection:
        # First, because the messages for persist would wait to be compacted, too.
        for name in scale_models.CONSUMERS:
            async with scale_models.prepare_conversations(
                name, connection, deployment, conversations
            ) as drain:
                measured[name] = await _measure_alternately(name, drain, rounds, report)
        async with scale_persist.prepare_messages(connection, deployment, messages) as drain:
            measured["persist"] = await _measure_alternately("persist", drain, rounds, report)
    return {
        "ratios": {
            f"{name}_two_to_one": round(compute_median_ratio(taken[2].rates, taken[1].rates), 2)
            for name, taken in measured.items()
        },
        "targets": TARGETS,
        "messages": messages,
        "conversations": conversations,
        "per_second": {
            name: {str(number): [round(rate) for rate in of.rates] for number, of in taken.items()}
            for name, taken in measured.items()
        },
        "cores": {"machine": psutil.cpu_count()}
        | {name: {str(number): of.cores for number, of in taken.items()} for name, taken in measured.items()},
    }


async def _measure_alternately(
    name: str, drain: Drain, rounds: int, report: Callable[[str], None]
) -> dict[int, _MeasuredRuns]:
    taken = {1: _MeasuredRuns([], {}), 2: _MeasuredRuns([], {})}
    for number in range(1, rounds + 1):
        for processes, of in taken.items():
            rate, cores = await drain(processes)
            of.rates.append(rate)
            of.cores.clear()
            of.cores.update(cores)
        one, two = (of.rates[-1] for of in taken.values())
        report(f"{name}, round {number} of {rounds}: one {one:,.0f}/s, two {two:,.0f}/s")
    return taken
