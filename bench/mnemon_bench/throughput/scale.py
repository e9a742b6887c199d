"""Two processes of a consumer against one: of persist, and of those that ask language models."""

from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any, NamedTuple

import psutil

from mnemon_bench.workloads import scale_models, scale_persist
from mnemon_infra.broker.connection import connect
from mnemon_infra.config import Deployment

TARGETS = {"at_least": {"compact_two_to_one": 1.3, "extract_two_to_one": 1.3}}
"""persist has none: PostgreSQL and nats-server keep two cores busy without it."""

Drain = Callable[[int], Awaitable[tuple[float, dict[str, float]]]]
"""Has so many processes work off what waits; gives what they did a second, and who kept the cores busy."""


class _Taken(NamedTuple):
    """Of one or of two processes: the rates of all rounds, and the cores of the last."""

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
    """Measure one and two, turn about, over as much work.

    Args:
        deployment: an empty stack, already provisioned and migrated.
        messages: messages in the log, for persist; each time into tables of its own.
        conversations: that wait to be compacted, or to be read for facts, each time others.
        rounds: measurements of each; the medians count.
        report: told what is going on.

    Returns:
        `ratios`: `..._two_to_one` of the rates, of each consumer. `per_second` has the rates: messages of
        persist, conversations of compact and extract. `cores`: how many each process keeps busy, each
        server, and all of the machine: what is at its end there binds, or the model's time does.
    """
    connection = await connect(str(deployment.nats_url), name="bench")
    measured: dict[str, dict[int, _Taken]] = {}
    try:
        # First: what persist is measured with would wait to be compacted, too.
        for name in scale_models.CONSUMERS:
            async with scale_models.waiting(name, connection, deployment, conversations) as drain:
                measured[name] = await _turn_about(name, drain, rounds, report)
        async with scale_persist.waiting(connection, deployment, messages) as drain:
            measured["persist"] = await _turn_about("persist", drain, rounds, report)
    finally:
        await connection.close()
    return {
        "ratios": {f"{name}_two_to_one": _ratio(taken) for name, taken in measured.items()},
        "targets": TARGETS,
        "messages": messages,
        "conversations": conversations,
        "per_second": {
            name: {str(number): [round(rate) for rate in of.rates] for number, of in taken.items()}
            for name, taken in measured.items()
        },
        "cores": {"of the machine": psutil.cpu_count()}
        | {name: {str(number): of.cores for number, of in taken.items()} for name, taken in measured.items()},
    }


async def _turn_about(
    name: str, drain: Drain, rounds: int, report: Callable[[str], None]
) -> dict[int, _Taken]:
    taken = {1: _Taken([], {}), 2: _Taken([], {})}
    for number in range(1, rounds + 1):
        for processes, of in taken.items():
            rate, cores = await drain(processes)
            of.rates.append(rate)
            of.cores.clear()
            of.cores.update(cores)
        one, two = (of.rates[-1] for of in taken.values())
        report(f"{name}, round {number} of {rounds}: one {one:,.0f}/s, two {two:,.0f}/s")
    return taken


def _ratio(taken: dict[int, _Taken]) -> float:
    """Round by round: what else the machine does touches neighbours alike."""
    return round(median(two / one for one, two in zip(taken[1].rates, taken[2].rates, strict=True)), 2)
