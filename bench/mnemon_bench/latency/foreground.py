"""Latency of `context` while facts are extracted on the same machine, compared with an idle machine."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from nats.aio.client import Client

from mnemon_bench.measures.percentiles import compute_percentiles
from mnemon_bench.provider_server.process import run_provider, use_provider
from mnemon_bench.workers.processes import spawn_all_consumers
from mnemon_bench.workloads.conversations import (
    TENANT,
    count_windows,
    generate_conversations,
    name_user,
    publish_events,
    wait_for_windows,
)
from mnemon_bench.workloads.sentences import make_question
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Compaction, Extraction
from mnemon_contracts.subjects import build_ask_subject, build_event_filter
from mnemon_contracts.verbs.ask import ContextReplyV1
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.config import Deployment
from mnemon_infra.settings.store import write_settings

MODEL = "bench-model"
SECONDS = 0.3
"""Seconds that the model takes to answer."""

ASKER, ASKER_MESSAGES = 9_999_999, 1_000
WARM_UP_USER = 9_999_998
"""Number in the name of the user whose facts are extracted as a warm-up."""

WINDOW = Extraction().window_messages
TARGETS = {"at_most": {"p99_busy_to_idle": 2.0, "degraded_idle": 0, "degraded_busy": 0}}


async def run(
    deployment: Deployment,
    *,
    users: int = 500,
    rounds: int = 3,
    requests: int = 500,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure `context` on the idle and the busy machine, interleaved, for one caller.

    The consumers run in two processes, as `mnemon up` has them. On the busy machine, `extract` waits for
    answers to as many windows as it may send at the same time, and more windows wait.

    `users` is the number of users whose conversations are extracted in each round.

    Returns:
        `milliseconds`: p50 and p99 over all rounds, idle and busy. `ratios`: busy over idle. `degraded_idle`
        and `degraded_busy`: number of contexts that lack parts. `targets`: the limits of ratios and counts.

    Raises:
        RuntimeError: a context has an error, or extraction ended before the contexts were measured.
    """
    idle, busy = MeasuredContexts(), MeasuredContexts()
    async with run_provider("--seconds", str(SECONDS), "--no-batches") as url:
        provider_deployment = use_provider(deployment, url)
        async with (
            await connect_deployment(provider_deployment, name="bench") as connection,
            spawn_all_consumers(provider_deployment),
        ):
            await _set_extraction(connection, enabled=False)
            await wait_for_projections(
                connection, await publish_events(connection, generate_conversations([ASKER], ASKER_MESSAGES))
            )
            await measure_contexts(connection, ASKER, requests)
            # Warm-up: the first request loads the provider's package.
            await _set_extraction(connection, enabled=True)
            await wait_for_windows(
                connection, await publish_events(connection, generate_conversations([WARM_UP_USER], WINDOW))
            )
            await _set_extraction(connection, enabled=False)
            for number in range(rounds):
                speakers = range(number * users, (number + 1) * users)
                await wait_for_projections(
                    connection, await publish_events(connection, generate_conversations(speakers, WINDOW - 1))
                )
                round_idle = await measure_contexts(connection, ASKER, requests)
                await _set_extraction(connection, enabled=True)
                # The last message makes each conversation as long as a window.
                last = await publish_events(connection, generate_conversations(speakers, 1, first=WINDOW - 1))
                await wait_for_projections(connection, last)
                round_busy = await measure_contexts(connection, ASKER, requests)
                if await count_windows(connection) > (number + 1) * users:
                    raise RuntimeError(
                        "extraction ended before the contexts were measured; run the bench again while "
                        "nothing else runs on this machine, or call `foreground.run` with more `users`"
                    )
                await wait_for_windows(connection, last)
                await _set_extraction(connection, enabled=False)
                idle.add(round_idle)
                busy.add(round_busy)
                report(
                    f"round {number + 1} of {rounds}: idle {round_idle.compute_percentiles()}, "
                    f"busy {round_busy.compute_percentiles()}"
                )
    milliseconds = {"idle": idle.compute_percentiles(), "busy": busy.compute_percentiles()}
    return {
        "ratios": {
            f"{which}_busy_to_idle": round(milliseconds["busy"][which] / milliseconds["idle"][which], 2)
            for which in ("p99", "p50")
        },
        "targets": TARGETS,
        "milliseconds": milliseconds,
        "degraded_idle": idle.degraded,
        "degraded_busy": busy.degraded,
    }


async def _set_extraction(connection: Client, *, enabled: bool) -> None:
    extraction = Extraction(
        enabled=enabled, provider="openai", model=MODEL, mode="online", after_messages=WINDOW
    )
    await write_settings(connection, SettingsV1(extraction=extraction, compaction=Compaction(enabled=False)))


async def wait_for_projections(connection: Client, last: Mapping[str, int]) -> None:
    """Wait until `persist` and `index` have handled all messages, and `dedupe` has decided all proposals.

    `last` has the log position of the last message of each user.
    """
    proposed = await read_last_position(connection, build_event_filter("fact.proposed"))
    wanted = {"persist": max(last.values()), "index": max(last.values()), "dedupe": proposed}
    for consumer, seq in wanted.items():
        while await read_applied_position(connection.jetstream(), consumer) < seq:
            await asyncio.sleep(0.02)


@dataclass(slots=True)
class MeasuredContexts:
    """Contexts of a user that were requested one after the other.

    Attributes:
        milliseconds: round trip of each request.
        degraded: number of contexts that lack parts.
    """

    milliseconds: list[float] = field(default_factory=list)
    degraded: int = 0

    def add(self, other: Self) -> None:
        """Add the contexts of another measurement of the same case."""
        self.milliseconds += other.milliseconds
        self.degraded += other.degraded

    def compute_percentiles(self) -> dict[str, float]:
        """Return `p50` and `p99` of the round trips, in milliseconds."""
        return dict(zip(("p50", "p99"), compute_percentiles(self.milliseconds), strict=True))


async def measure_contexts(connection: Client, speaker: int, requests: int) -> MeasuredContexts:
    """Request contexts of a user, one after the other.

    Raises:
        RuntimeError: a context has an error.
    """
    subject = build_ask_subject(TENANT, name_user(speaker), "context")
    measured = MeasuredContexts()
    for number in range(requests):
        body = json.dumps({"query": make_question(number)}).encode()
        begun = time.perf_counter()
        message = await connection.request(subject, body, timeout=30)
        measured.milliseconds.append((time.perf_counter() - begun) * 1000)
        reply = ContextReplyV1.parse(message.data)
        if reply.error:
            raise RuntimeError(
                f"context of {name_user(speaker)} has an error: {message.data.decode()}; correct the cause "
                "that the reply names, then run the bench again"
            )
        measured.degraded += bool(reply.degraded)
    return measured
