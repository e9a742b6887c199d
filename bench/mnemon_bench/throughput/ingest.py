"""Messages per second that `persist` commits and acknowledges, compared with a bare loop."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from nats.js.api import AckPolicy, ConsumerConfig

from mnemon_bench.measures.percentiles import compute_median_ratio
from mnemon_bench.workers.processes import create_schema, drain_log, format_libpq_url, run_module
from mnemon_bench.workloads.messages import fill_log
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.provisioning.topology import build_consumer_config
from mnemon_infra.config import Deployment
from mnemon_infra.durables import DURABLES

MIN_INGEST_RATIO = 2.8
MAX_MEMORY_RATIO = 1.2
"""Maximum ratio of resident memory after `large` messages to resident memory after a tenth of them."""


async def run(
    deployment: Deployment,
    *,
    messages: int = 50_000,
    rounds: int = 5,
    large: int = 100_000,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure the rate and the memory of `persist`, interleaved with the bare loop.

    `messages` is the number of messages in the log when the rates are measured, `large` the number when the
    memory is measured.

    Returns:
        `ratios`: `ingest` is the rate of persist over the bare loop's; `memory` is the resident memory of
        persist after `large` messages over that after a tenth of them. `targets`: the limits of these ratios.
        `messages`: as given. `bare_per_second` and `persist_per_second`: messages/s of each round.
        `persist_resident_bytes` by number of messages.
    """
    async with await connect_deployment(deployment, name="bench") as connection:
        await fill_log(connection, messages)
        bare, mnemon = [], []
        for number in range(1, rounds + 1):
            bare.append(messages / (await _measure_bare_loop(deployment, messages))["seconds"])
            mnemon.append(messages / (await _measure_mnemon(deployment, messages))["seconds"])
            report(f"round {number} of {rounds}: bare {bare[-1]:,.0f}/s, persist {mnemon[-1]:,.0f}/s")
        small = (await _measure_mnemon(deployment, large // 10))["resident_bytes"]
        report(f"filling the log up to {large:,} messages")
        await fill_log(connection, large - messages, first=messages)
        whole = (await _measure_mnemon(deployment, large))["resident_bytes"]
    return {
        "ratios": {
            "ingest": compute_median_ratio(mnemon, bare),
            "memory": whole / small,
        },
        "targets": {"at_least": {"ingest": MIN_INGEST_RATIO}, "at_most": {"memory": MAX_MEMORY_RATIO}},
        "messages": messages,
        "bare_per_second": [round(rate) for rate in bare],
        "persist_per_second": [round(rate) for rate in mnemon],
        "persist_resident_bytes": {str(large // 10): small, str(large): whole},
    }


async def _measure_bare_loop(deployment: Deployment, messages: int) -> dict[str, float]:
    durable = f"bare-{uuid4().hex[:8]}"
    consumer = ConsumerConfig(durable_name=durable, ack_policy=AckPolicy.EXPLICIT, max_ack_pending=20_000)
    async with await connect_deployment(deployment, name="bench") as connection:
        await connection.jetstream().add_consumer("LOG", consumer)
        bench_deployment = await create_schema(deployment)
        arguments = (
            str(bench_deployment.nats_url),
            format_libpq_url(bench_deployment),
            bench_deployment.database_schema,
            durable,
            str(messages),
        )
        try:
            return await run_module("mnemon_bench.baselines.persist_loop", *arguments)
        finally:
            await connection.jetstream().delete_consumer("LOG", durable)


async def _measure_mnemon(deployment: Deployment, last_seq: int) -> dict[str, float]:
    async with await connect_deployment(deployment, name="bench") as connection:
        stream_context = connection.jetstream()
        await stream_context.delete_consumer("LOG", "persist")
        await stream_context.add_consumer("LOG", build_consumer_config(DURABLES["persist"]))
    return await drain_log(await create_schema(deployment), "persist", last_seq)
