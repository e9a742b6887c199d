"""Messages per second that `extract` reads for facts, with a fast model and with a slow model."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from statistics import median
from typing import Any

from nats.aio.client import Client

from mnemon_bench.provider_server.process import run_provider, use_provider
from mnemon_bench.workers.processes import spawn_consumers
from mnemon_bench.workloads.conversations import (
    generate_whole_conversations,
    make_message,
    publish_events,
    wait_for_windows,
)
from mnemon_consumers.extract.answer_parser import parse_answer as read_answer
from mnemon_consumers.extract.prompt import build_request
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Compaction, Extraction
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.config import Deployment
from mnemon_infra.models.language.port import PromptMessage
from mnemon_infra.models.language.registry import open_language_models
from mnemon_infra.settings.store import write_settings

MODEL = "bench-model"
SECONDS = {"instant": 0.0, "300 ms": 0.3}
"""Seconds that each model takes to answer."""

OFFSETS = 0, 1_000_000
"""Number of the first user for each model, so that no conversation is read with both models."""

WINDOW = Extraction().window_messages


async def run(
    deployment: Deployment,
    *,
    users: int = 100,
    rounds: int = 3,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure mnemon with each model, interleaved with a bare loop that sends the same number of windows.

    `users` is the number of users in each measurement; each has a conversation as long as a window.

    Returns:
        `messages_per_second` by model: of mnemon, from publish until the windows are answered; and of the
        bare loop, which only sends requests and parses answers.
        `ratios`: `<model>_to_bare`, the rate of mnemon over that of the bare loop. `targets`: empty.
    """
    rates: dict[str, dict[str, list[float]]] = {name: {"mnemon": [], "bare": []} for name in SECONDS}
    for offset, (name, seconds) in zip(OFFSETS, SECONDS.items(), strict=True):
        async with run_provider("--seconds", str(seconds), "--no-batches") as url:
            provider_deployment = use_provider(deployment, url)
            async with (
                await connect_deployment(provider_deployment, name="bench") as connection,
                _run_extraction(connection, provider_deployment),
            ):
                for number in range(rounds):
                    speakers = range(number * users, (number + 1) * users)
                    rates[name]["bare"].append(
                        users * WINDOW / await _measure_bare_loop(provider_deployment, speakers)
                    )
                    others = [offset + speaker for speaker in speakers]
                    begun = time.perf_counter()
                    last = await publish_events(connection, generate_whole_conversations(others, WINDOW))
                    await wait_for_windows(connection, last)
                    rates[name]["mnemon"].append(users * WINDOW / (time.perf_counter() - begun))
                    now = ", ".join(f"{which} {each[-1]:,.0f}/s" for which, each in rates[name].items())
                    report(f"{name}, round {number + 1} of {rounds}: {now}")
    medians = {name: {which: median(each) for which, each in of.items()} for name, of in rates.items()}
    return {
        "ratios": {
            f"{name.replace(' ', '_')}_to_bare": round(of["mnemon"] / of["bare"], 4)
            for name, of in medians.items()
        },
        "targets": {},
        "messages_per_second": {
            name: {which: round(rate) for which, rate in of.items()} for name, of in medians.items()
        },
    }


@asynccontextmanager
async def _run_extraction(connection: Client, deployment: Deployment) -> AsyncIterator[None]:
    settings = SettingsV1(
        extraction=Extraction(provider="openai", model=MODEL, mode="online", after_messages=WINDOW),
        compaction=Compaction(enabled=False),
    )
    await write_settings(connection, settings)
    async with spawn_consumers(["persist", "extract"], deployment):
        yield


async def _measure_bare_loop(deployment: Deployment, speakers: range) -> float:
    """Return the seconds to send one request for each conversation and to parse the answers."""
    settings, now = Extraction(), datetime.now(UTC)
    async with open_language_models(deployment) as models:
        model = await models.open_model("openai", MODEL)

        async def ask(speaker: int) -> None:
            messages = [make_message(speaker, number) for number in range(WINDOW)]
            conversation = [PromptMessage(n, each.role, each.content, now) for n, each in enumerate(messages)]
            answer = await model.complete(build_request(conversation, [], settings))
            read_answer(answer, conversation, [])

        begun = time.perf_counter()
        await asyncio.gather(*map(ask, speakers))
        return time.perf_counter() - begun
