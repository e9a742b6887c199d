"""Decisions per second of one worker of `dedupe` and of four, compared with a bare loop."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from nats.aio.client import Client

from mnemon_bench.measures.percentiles import compute_median_ratio
from mnemon_bench.workers.processes import drain_log, open_empty_vectors, run_module
from mnemon_bench.workloads.sentences import TOPICS, make_fact
from mnemon_contracts.events.memory import FactProposedV1
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_memory_subject
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.config import Deployment

PROPOSALS = 2_000
USERS = 100
WORKERS = {"one": 1, "four": 4}


async def run(
    deployment: Deployment,
    *,
    rounds: int = 3,
    number: int = PROPOSALS,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure one worker, four workers and a bare loop, interleaved.

    Each measurement has a tenant of its own. `number` is the number of its proposals, a multiple of twice
    `USERS`.

    Returns:
        `decisions_per_second` of one worker, of four (each with its own connection, all in one process
        with one embedded engine), and of a bare loop that embeds, searches and upserts the same proposals.
        `ratios`: the ratios of these rates. `targets`: empty. `outcome`: number of events in the log by name,
        the same for one worker and for four.

    Raises:
        RuntimeError: the same proposals led to different decisions in two measurements.
    """
    rates: dict[str, list[float]] = {"bare": [], "one": [], "four": []}
    outcomes = []
    async with await connect_deployment(deployment, name="bench") as connection:
        for place in range(1, rounds + 1):
            rates["bare"].append(number / await _measure_bare_loop(deployment, number))
            for name, workers in WORKERS.items():
                tenant = f"{name}{place}"
                rates[name].append(
                    number / await _measure_mnemon(connection, deployment, tenant, number, workers)
                )
                outcomes.append(await _count_outcome(connection, tenant))
            now = ", ".join(f"{name} {each[-1]:,.0f}/s" for name, each in rates.items())
            report(f"round {place} of {rounds}: {now}")
    if any(outcome != outcomes[0] for outcome in outcomes):
        raise RuntimeError(
            f"the same proposals led to different decisions: {outcomes}. Run the bench again; if it "
            "fails again, report these outcomes"
        )
    return {
        "ratios": {
            "one_to_bare": compute_median_ratio(rates["one"], rates["bare"]),
            "four_to_bare": compute_median_ratio(rates["four"], rates["bare"]),
            "four_to_one": compute_median_ratio(rates["four"], rates["one"]),
        },
        "targets": {},
        "decisions_per_second": {name: round(median(each)) for name, each in rates.items()},
        "outcome": outcomes[0],
    }


def generate_proposals(number: int) -> Iterator[tuple[str, str]]:
    """Yield user and text: first new facts of all users, then the same facts again, half of them reworded."""
    each = number // USERS // 2
    for place in range(2 * each):
        for user in range(USERS):
            said = make_fact(user * TOPICS + place % each)
            is_reworded = place >= each and place % 2
            yield f"u{user}", f"It is so: {said.lower()}." if is_reworded else said


async def _measure_mnemon(
    connection: Client, deployment: Deployment, tenant: str, number: int, workers: int
) -> float:
    events = [
        LogEvent(
            build_memory_subject(tenant, user, "fact.proposed"),
            FactProposedV1(text=text).encode_body(),
            uuid4().hex,
        )
        for user, text in generate_proposals(number)
    ]
    last_seq = (await append_events(connection, events))[-1].seq
    with TemporaryDirectory(prefix="mnemon-bench-") as folder:
        own = deployment.model_copy(update={"vectors_folder": Path(folder)})
        return (await drain_log(own, "dedupe", last_seq, workers))["seconds"]


async def _measure_bare_loop(deployment: Deployment, number: int) -> float:
    async with open_empty_vectors(deployment) as own:
        arguments = own.to_json(), str(number)
        return (await run_module("mnemon_bench.baselines.dedupe_loop", *arguments))["seconds"]


async def _count_outcome(connection: Client, tenant: str) -> dict[str, int]:
    """Return the number of a tenant's memory events in the log, by name."""
    stream_context = connection.jetstream()
    names: Counter[str] = Counter()
    info = await stream_context.stream_info(LOG, subjects_filter=f"memory.{tenant}.>")
    for subject, number in (info.state.subjects or {}).items():
        names[".".join(subject.split(".")[3:5])] += number
    return dict(sorted(names.items()))
