"""`mnemon rebuild` from the whole log to rows, compared with a bare loop; and to rows and vectors."""

import asyncio
from collections.abc import Callable
from statistics import median
from typing import Any
from uuid import uuid4

from mnemon_bench.throughput.rebuild_verified import applied, verified
from mnemon_bench.workers.processes import finished
from mnemon_bench.workloads.all_events import fill
from mnemon_infra.broker.connection import connect
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations.generation_repository import drop_schema
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.generation_names import name_of

TARGET = 0.6
FLAT = 1.2
"""Largest ratio of memory for ten times the events: a fifth more."""
VECTORS_FLAT = 1.6
"""The same with vectors. For each point the embedded engine keeps a third of a kilobyte in memory once it has
organised the point, three times as much before, and both for a moment in between."""


async def run(
    deployment: Deployment,
    *,
    events: int = 100_000,
    rounds: int = 3,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure the replay and the bare loop, interleaved.

    Args:
        deployment: an empty stack, already provisioned.
        events: events of all kinds in the log, of a thousand users.
        rounds: measurements of each; the medians count.
        report: called with lines about the progress.

    Returns:
        `ratios`: `rebuild` is the rate of a replay, including the creation of tables and the sweep, over the
        bare loop's; `memory` is the replay's resident memory after all events over that after a tenth of
        them; `vector_memory` is the same ratio for `rebuild --verify`, which makes vectors too, of its
        anonymous memory, without mapped files.
        `differences`, `model_calls`: the differences and model calls of `rebuild --verify`. Rates in
        events/s, memory in bytes.
    """
    connection = await connect(str(deployment.nats_url), name="bench")
    try:
        await fill(connection, events // 10)
        small = (await _ours(deployment))["resident_bytes"]
        await applied(deployment)
        small_verified = await verified(deployment)
        report(f"filling the log up to {events:,} events")
        await fill(connection, events - events // 10, first=events // 10)
    finally:
        await connection.close()
    bare, ours = [], []
    for number in range(1, rounds + 1):
        bare.append(events / (await _bare(deployment, events))["seconds"])
        measured = await _ours(deployment)
        ours.append(events / measured["seconds"])
        report(f"round {number} of {rounds}: bare {bare[-1]:,.0f}/s, rebuild {ours[-1]:,.0f}/s")
    report("having consumers write all of it")
    await applied(deployment)
    report("making rows and vectors anew, and comparing them")
    found = await verified(deployment)
    points = {name: rows for name, rows in found["rows"].items() if name.startswith("vectors")}
    return {
        "ratios": {
            "rebuild": median(rate / beside for rate, beside in zip(ours, bare, strict=True)),
            "memory": measured["resident_bytes"] / small,
            "vector_memory": found["anonymous_bytes"] / small_verified["anonymous_bytes"],
        },
        "targets": {
            "at_least": {"rebuild": TARGET},
            "at_most": {"memory": FLAT, "vector_memory": VECTORS_FLAT, "differences": 0, "model_calls": 0},
        },
        "events": events,
        "differences": found["differences"],
        "differing": found["by_table"],
        "model_calls": found["model_calls"],
        "points": points,
        "verify_seconds": round(found["seconds"], 1),
        "bare_per_second": [round(rate) for rate in bare],
        "rebuild_per_second": [round(rate) for rate in ours],
        "rebuild_resident_bytes": {str(events // 10): small, str(events): measured["resident_bytes"]},
        "verify_anonymous_bytes": {
            str(events // 10): small_verified["anonymous_bytes"],
            str(events): found["anonymous_bytes"],
        },
    }


async def _bare(deployment: Deployment, events: int) -> dict[str, float]:
    schema = f"bench_{uuid4().hex[:12]}"
    assert deployment.database_url is not None
    await asyncio.to_thread(migrate_schema, deployment.database_url, schema)
    url = deployment.database_url.set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        return await finished(
            "mnemon_bench.baselines.replay_loop", str(deployment.nats_url), url, schema, str(events)
        )
    finally:
        await _drop(deployment, schema)


async def _ours(deployment: Deployment) -> dict[str, float]:
    try:
        return await finished("mnemon_bench.workers.rebuild", deployment.spelled())
    finally:
        await _drop(deployment, name_of(deployment.database_schema, "next"))


async def _drop(deployment: Deployment, schema: str) -> None:
    database = Database(deployment)
    await database.open()
    await drop_schema(database, schema)
    await database.close()
