"""Time from the log to committed and acknowledged: persist against a plain good loop."""

import asyncio
from collections.abc import Callable
from statistics import median
from typing import Any
from uuid import uuid4

from nats.js.api import AckPolicy, ConsumerConfig

from mnemon_bench.workers.processes import finished
from mnemon_bench.workloads.messages import fill
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import consumer_config
from mnemon_infra.config import Deployment
from mnemon_infra.database.migration import migrate
from mnemon_infra.durables import DURABLES

TARGET = 2.5
FLAT = 1.2
"""Largest ratio of memory for ten times the messages: a fifth more."""


async def run(
    deployment: Deployment,
    *,
    messages: int = 50_000,
    rounds: int = 5,
    large: int = 100_000,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure persist and the plain loop, interleaved.

    Args:
        deployment: an empty stack, already provisioned.
        messages: messages in the log, for the rates.
        rounds: measurements of each; the medians count.
        large: messages in the log for the memory; at the first measurement there are `messages`.
        report: called with lines about the progress.

    Returns:
        `ratios`: `ingest` is the rate of persist over the plain loop's, `memory` the resident memory of
        persist after `large` messages over that after a tenth of them. Rates in messages/s, memory in bytes.
    """
    connection = await connect(str(deployment.nats_url), name="bench")
    try:
        await fill(connection, messages)
        plain, ours = [], []
        for number in range(1, rounds + 1):
            plain.append(messages / (await _plain(deployment, messages))["seconds"])
            ours.append(messages / (await _ours(deployment, messages))["seconds"])
            report(f"round {number} of {rounds}: plain {plain[-1]:,.0f}/s, persist {ours[-1]:,.0f}/s")
        small = (await _ours(deployment, large // 10))["resident_bytes"]
        report(f"filling the log up to {large:,} messages")
        await fill(connection, large - messages, first=messages)
        whole = (await _ours(deployment, large))["resident_bytes"]
    finally:
        await connection.close()
    return {
        "ratios": {
            # Compared round by round: other load on the machine affects both of a round alike.
            "ingest": median(rate / beside for rate, beside in zip(ours, plain, strict=True)),
            "memory": whole / small,
        },
        "targets": {"at_least": {"ingest": TARGET}, "at_most": {"memory": FLAT}},
        "messages": messages,
        "plain_per_second": [round(rate) for rate in plain],
        "persist_per_second": [round(rate) for rate in ours],
        "persist_resident_bytes": {str(large // 10): small, str(large): whole},
    }


async def _plain(deployment: Deployment, messages: int) -> dict[str, float]:
    durable = f"plain-{uuid4().hex[:8]}"
    connection = await connect(str(deployment.nats_url), name="bench")
    consumer = ConsumerConfig(durable_name=durable, ack_policy=AckPolicy.EXPLICIT, max_ack_pending=20_000)
    await connection.jetstream().add_consumer("LOG", consumer)
    url, schema = await _schema(deployment)
    try:
        return await finished(
            "mnemon_bench.baselines.persist_loop",
            str(deployment.nats_url),
            url,
            schema,
            durable,
            str(messages),
        )
    finally:
        await connection.jetstream().delete_consumer("LOG", durable)
        await connection.close()


async def _ours(deployment: Deployment, last_seq: int) -> dict[str, float]:
    connection = await connect(str(deployment.nats_url), name="bench")
    stream_context = connection.jetstream()
    await stream_context.delete_consumer("LOG", "persist")
    await stream_context.add_consumer("LOG", consumer_config(DURABLES["persist"]))
    url, schema = await _schema(deployment)
    try:
        arguments = str(deployment.nats_url), url, schema, str(last_seq)
        return await finished("mnemon_bench.workers.persist", *arguments)
    finally:
        await connection.close()


async def _schema(deployment: Deployment) -> tuple[str, str]:
    assert deployment.database_url is not None
    schema = f"bench_{uuid4().hex[:12]}"
    await asyncio.to_thread(migrate, deployment.database_url, schema)
    url = deployment.database_url.set(drivername="postgresql")
    return url.render_as_string(hide_password=False), schema
