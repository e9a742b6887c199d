"""Rate and memory of `mnemon rebuild`, compared with a bare loop that only writes rows."""

from collections.abc import Callable
from typing import Any

from mnemon_bench.measures.percentiles import compute_median_ratio
from mnemon_bench.throughput.rebuild_verified import apply_log, verify_rebuild
from mnemon_bench.workers.processes import create_schema, format_libpq_url, run_module
from mnemon_bench.workloads.all_events import fill_log
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations.generation_repository import drop_schema
from mnemon_infra.generation_names import name_generation

MIN_REBUILD_RATIO = 0.6
MAX_MEMORY_RATIO = 1.2
"""Maximum ratio of resident memory after all events to that after a tenth of them, for rows."""
MAX_VECTOR_MEMORY_RATIO = 1.6
"""Maximum ratio of anonymous memory after all events to that after a tenth of them, for rows and vectors.

The embedded engine keeps about 0.33 kB in memory for each point that it has optimised and 1 kB for any other
point. While the engine optimises points, it keeps both forms.
"""


async def run(
    deployment: Deployment,
    *,
    events: int = 100_000,
    rounds: int = 3,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure the replay of `mnemon rebuild`, interleaved with the bare loop, and verify a rebuild.

    `events` is the number of generated events in the log; they belong to a thousand users.

    Returns:
        `ratios`: `rebuild` is the rate of a replay, including the creation of tables and the sweep, over the
        bare loop's. `memory` is the replay's resident memory after all events over that after a tenth of
        them. `vector_memory` is the same ratio of anonymous memory (without mapped files) for `rebuild
        --verify`, which makes vectors, too. `differences`: number of differences that `rebuild --verify`
        finds; `differing`: the same by table. `points`: number of points that `rebuild --verify` compares, by
        collection. `verify_seconds`: duration of `rebuild --verify`. `model_calls`: number of events that
        `rebuild --verify` adds to the log, as a call of a language model would. `targets`: limits of the
        ratios, of `differences` and of `model_calls`. `events`: as given.
        `bare_per_second` and `rebuild_per_second`: rates of all rounds, in events/s.
        `rebuild_resident_bytes` and `verify_anonymous_bytes`: memory in bytes, by number of events.
    """
    async with await connect_deployment(deployment, name="bench") as connection:
        await fill_log(connection, events // 10)
        small = (await _measure_mnemon(deployment))["resident_bytes"]
        await apply_log(deployment)
        small_verified = await verify_rebuild(deployment)
        report(f"filling the log up to {events:,} events")
        await fill_log(connection, events - events // 10, first=events // 10)
    bare, mnemon = [], []
    for number in range(1, rounds + 1):
        bare.append(events / (await _measure_bare_loop(deployment, events))["seconds"])
        measured = await _measure_mnemon(deployment)
        mnemon.append(events / measured["seconds"])
        report(f"round {number} of {rounds}: bare {bare[-1]:,.0f}/s, rebuild {mnemon[-1]:,.0f}/s")
    report("writing all events with consumers")
    await apply_log(deployment)
    report("rebuilding rows and vectors, and comparing them")
    found = await verify_rebuild(deployment)
    points = {name: rows for name, rows in found["rows"].items() if name.startswith("vectors")}
    return {
        "ratios": {
            "rebuild": compute_median_ratio(mnemon, bare),
            "memory": measured["resident_bytes"] / small,
            "vector_memory": found["anonymous_bytes"] / small_verified["anonymous_bytes"],
        },
        "targets": {
            "at_least": {"rebuild": MIN_REBUILD_RATIO},
            "at_most": {
                "memory": MAX_MEMORY_RATIO,
                "vector_memory": MAX_VECTOR_MEMORY_RATIO,
                "differences": 0,
                "model_calls": 0,
            },
        },
        "events": events,
        "differences": found["differences"],
        "differing": found["by_table"],
        "model_calls": found["model_calls"],
        "points": points,
        "verify_seconds": round(found["seconds"], 1),
        "bare_per_second": [round(rate) for rate in bare],
        "rebuild_per_second": [round(rate) for rate in mnemon],
        "rebuild_resident_bytes": {str(events // 10): small, str(events): measured["resident_bytes"]},
        "verify_anonymous_bytes": {
            str(events // 10): small_verified["anonymous_bytes"],
            str(events): found["anonymous_bytes"],
        },
    }


async def _measure_bare_loop(deployment: Deployment, events: int) -> dict[str, float]:
    bench_deployment = await create_schema(deployment)
    arguments = (
        str(bench_deployment.nats_url),
        format_libpq_url(bench_deployment),
        bench_deployment.database_schema,
        str(events),
    )
    try:
        return await run_module("mnemon_bench.baselines.replay_loop", *arguments)
    finally:
        await _drop_schema(deployment, bench_deployment.database_schema)


async def _measure_mnemon(deployment: Deployment) -> dict[str, float]:
    try:
        return await run_module("mnemon_bench.workers.rebuild", deployment.to_json())
    finally:
        await _drop_schema(deployment, name_generation(deployment.database_schema, "next"))


async def _drop_schema(deployment: Deployment, schema: str) -> None:
    async with Database(deployment) as database:
        await drop_schema(database, schema)
