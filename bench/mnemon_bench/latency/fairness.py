"""Latency of one user's requests while another user floods the system, compared with no flood."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from nats.aio.client import Client

from mnemon_bench.latency.foreground import measure_contexts, wait_for_projections
from mnemon_bench.workers.processes import spawn_all_consumers
from mnemon_bench.workloads.conversations import (
    TENANT,
    generate_conversations,
    name_user,
    publish_events,
)
from mnemon_bench.workloads.sentences import make_fact, make_question
from mnemon_contracts.events.memory import DocumentAddedV1, FactProposedV1
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Compaction, Extraction
from mnemon_contracts.subjects import build_ask_subject, build_memory_subject, build_thing_filter
from mnemon_contracts.verbs.ask import ContextReplyV1
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.config import Deployment
from mnemon_infra.settings.store import write_settings

QUIET, FLOOD = 1, 2
EARLIER_MESSAGES = 100
CALLERS = 64
"""Number of callers that each request context after context of the flooding user; admission allows fewer."""

RETRY_SECONDS = 0.01
"""Seconds after which a caller of the flooding user repeats a request that was refused."""

TARGETS = {
    "at_most": {"saved_to_flood": 0.5, "degraded_alone": 0, "degraded_reading": 0, "degraded_flooded": 0}
}


async def run(
    deployment: Deployment,
    *,
    messages: int = 20_000,
    proposals: int = 5_000,
    requests: int = 300,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure contexts of one user: alone, while another user's document is indexed, and during a flood.

    One caller requests the contexts.

    The consumers run in two processes, as `mnemon up` has them, without language models.

    `messages` is the number of messages of the flood, and `proposals` the number of facts that it proposes.

    Returns:
        `ratios`: p99 and p50 of `context` with the flood, and p99 while a document of about 1 MB of the other
        user is indexed, each over the value of the user alone. `saved_flooded_to_alone`: time until a fact is
        decided that is proposed after the flood, over the time without a flood. `saved_to_flood`: the same
        time over the time until all proposals of the flood are decided. `milliseconds` and `seconds`: the
        measured values. `degraded_alone`, `degraded_reading` and `degraded_flooded`: number of contexts that
        lack parts, of `requests` in each case. `targets`: the limits of `saved_to_flood` and these numbers.

    Raises:
        RuntimeError: a context has an error.
    """
    async with (
        await connect_deployment(deployment, name="bench") as connection,
        spawn_all_consumers(deployment),
    ):
        off = SettingsV1(extraction=Extraction(enabled=False), compaction=Compaction(enabled=False))
        await write_settings(connection, off)
        await wait_for_projections(
            connection,
            await publish_events(connection, generate_conversations([QUIET, FLOOD], EARLIER_MESSAGES)),
        )
        await measure_contexts(connection, QUIET, requests // 3)
        await _wait_for_decisions(connection, QUIET, await _propose_facts(connection, QUIET, 1))
        alone = await measure_contexts(connection, QUIET, requests)
        saved_alone = await _wait_for_decisions(
            connection, QUIET, await _propose_facts(connection, QUIET, 1, first=1)
        )
        report(f"alone: {alone.compute_percentiles()} ms, decided after {saved_alone:.2f} s")
        document = await _add_document(connection, FLOOD)
        reading = await measure_contexts(connection, QUIET, requests)
        report(f"while a document is read: {reading.compute_percentiles()} ms")
        await wait_for_projections(connection, {name_user(FLOOD): document})
        last = await publish_events(
            connection, generate_conversations([FLOOD], messages, first=EARLIER_MESSAGES)
        )
        flood = await _propose_facts(connection, FLOOD, proposals)
        async with _flood_requests(connection):
            quiet = await _propose_facts(connection, QUIET, 1, first=2)
            watching = asyncio.create_task(_wait_for_decisions(connection, FLOOD, flood))
            saving = asyncio.create_task(_wait_for_decisions(connection, QUIET, quiet))
            flooded = await measure_contexts(connection, QUIET, requests)
            saved_flooded = await saving
        flood_over = await watching
        report(
            f"flooded: {flooded.compute_percentiles()} ms, "
            f"{flooded.degraded} of {requests} degraded, decided after {saved_flooded:.2f} s"
        )
        await wait_for_projections(connection, last)
    milliseconds = {
        "alone": alone.compute_percentiles(),
        "flooded": flooded.compute_percentiles(),
        "reading": reading.compute_percentiles() | {"longest": round(max(reading.milliseconds), 3)},
    }
    p50, p99 = milliseconds["alone"]["p50"], milliseconds["alone"]["p99"]
    return {
        "ratios": {
            "p99_flooded_to_alone": round(milliseconds["flooded"]["p99"] / p99, 2),
            "p99_reading_to_alone": round(milliseconds["reading"]["p99"] / p99, 2),
            "p50_flooded_to_alone": round(milliseconds["flooded"]["p50"] / p50, 2),
            "saved_flooded_to_alone": round(saved_flooded / saved_alone, 2),
            "saved_to_flood": round(saved_flooded / flood_over, 3),
        },
        "targets": TARGETS,
        "milliseconds": milliseconds,
        "degraded_alone": alone.degraded,
        "degraded_reading": reading.degraded,
        "degraded_flooded": flooded.degraded,
        "seconds": {
            "saved_alone": round(saved_alone, 3),
            "saved_flooded": round(saved_flooded, 3),
            "flood_decided": round(flood_over, 3),
        },
    }


async def _propose_facts(connection: Client, speaker: int, number: int, first: int = 0) -> float:
    """Propose `number` facts of a user at once, beginning with the fact `first`.

    Returns:
        The time before the publish, in seconds of `perf_counter`.
    """
    subject = build_memory_subject(TENANT, name_user(speaker), "fact.proposed")
    bodies = [
        FactProposedV1.create_strict(text=f"{make_fact(each)}, says {name_user(speaker)}").encode_body()
        for each in range(first, first + number)
    ]
    begun = time.perf_counter()
    await append_events(
        connection,
        [
            LogEvent(subject, body, f"{name_user(speaker)}:{first + place}")
            for place, body in enumerate(bodies)
        ],
    )
    return begun


async def _add_document(connection: Client, speaker: int) -> int:
    """Add a document of about 1 MB, in a script without spaces; return its log position."""
    text = "".join(chr(0x4E00 + place * 7919 % 20_000) for place in range(300_000))
    body = DocumentAddedV1(document_id="long", text=text).encode_body()
    subject = build_memory_subject(TENANT, name_user(speaker), "document.added")
    return (await append_events(connection, [LogEvent(subject, body, f"{name_user(speaker)}:document")]))[
        -1
    ].seq


async def _wait_for_decisions(connection: Client, speaker: int, begun: float) -> float:
    """Wait until all proposals of a user are decided, and return the seconds since `begun`."""
    undecided: set[str] = set()
    position = 0
    while True:
        async for page in read_event_pages(
            connection, build_thing_filter(TENANT, name_user(speaker), "fact"), position
        ):
            for delivery in page:
                position = delivery.sequence
                if ".proposed." in delivery.subject:
                    undecided.add(str(delivery.message_id))
                else:
                    body = json.loads(delivery.body)
                    decision = body.get("decision", body)  # a rejection has its proposal id in the body
                    undecided.discard(str(decision.get("proposal_id")))
        if not undecided:
            return time.perf_counter() - begun
        await asyncio.sleep(0.02)


@asynccontextmanager
async def _flood_requests(connection: Client) -> AsyncIterator[None]:
    """Request contexts of the flooding user for the duration of the block; pause only after an error."""
    subject = build_ask_subject(TENANT, name_user(FLOOD), "context")

    async def ask(caller: int) -> None:
        body = json.dumps({"query": make_question(caller)}).encode()
        while True:
            reply = ContextReplyV1.parse((await connection.request(subject, body, timeout=60)).data)
            if reply.error:
                await asyncio.sleep(RETRY_SECONDS)

    callers = [asyncio.create_task(ask(caller)) for caller in range(CALLERS)]
    try:
        yield
    finally:
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
