"""Work of compact and extract for `bench scale`: conversations that wait for a model."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from nats.aio.client import Client

from mnemon_bench.measures.cpu_usage import count_busy_cores
from mnemon_bench.provider_server.process import run_provider, use_provider
from mnemon_bench.workers.processes import PAUSE_END, spawn_consumers
from mnemon_bench.workloads.conversations import generate_whole_conversations, publish_events
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Compaction, Extraction
from mnemon_contracts.streams import LOG, WORK
from mnemon_contracts.subjects import build_event_filter
from mnemon_infra.broker.streams.triggers import list_trigger_subjects as triggers
from mnemon_infra.config import Deployment
from mnemon_infra.settings.store import write_settings

MODEL = "bench-model"
SECONDS = 0.3
"""Seconds that the model takes to answer."""

WARM_UP_CONVERSATIONS = 32
"""Number of conversations handled before the measurement, as the first request loads a provider's package."""

DRAIN_TIMEOUT = 600.0
"""Maximum seconds until all conversations of a measurement are handled."""

IDLE_SECONDS = 86_400
"""Setting `extraction.idle_seconds`: long enough that no conversation becomes idle during the benchmark."""

CONSUMERS = {
    "compact": (
        Compaction(provider="openai", model=MODEL),
        Extraction(enabled=False),
        "work.compact.*.*.*",
        "summary.written",
        Compaction().after_messages + 1,
    ),
    "extract": (
        Compaction(enabled=False),
        Extraction(provider="openai", model=MODEL, mode="online", idle_seconds=IDLE_SECONDS),
        "work.extract.*.*",
        "window.answered",
        Extraction().after_messages,
    ),
}
"""Measured consumers by name, each with five values.

The values are the settings of compaction and extraction, the filter of the consumer's triggers, the event
that ends its work on a conversation, and the number of messages in a conversation.
"""


@asynccontextmanager
async def prepare_conversations(
    name: str, connection: Client, deployment: Deployment, conversations: int
) -> AsyncIterator[Callable[[int], Awaitable[tuple[float, dict[str, float]]]]]:
    """Yield a function that runs a number of processes of a consumer over new conversations.

    The function returns conversations per second, and busy cores by name. It raises RuntimeError if the
    consumer handles more or fewer conversations than were published. A local server takes the place of the
    model.
    """
    compaction, extraction, pattern, ends_with, length = CONSUMERS[name]
    stream_context = connection.jetstream()
    speakers = iter(range(10**9))

    async def add_conversations(number: int) -> None:
        """Pause the consumer, publish a number of conversations, and return when all wait for it."""
        await stream_context.pause_consumer(WORK, name, pause_until=PAUSE_END)
        await publish_events(
            connection, generate_whole_conversations([next(speakers) for _ in range(number)], length)
        )
        while len(await triggers(connection, pattern)) < number:
            await asyncio.sleep(0.05)

    async def wait_until_empty(number: int) -> float:
        """Resume the consumer, and return the seconds until a number of conversations is handled.

        Raises:
            RuntimeError: the consumer handled more than `number` conversations, or fewer within
                `DRAIN_TIMEOUT` seconds.
        """
        done = await _count_events(connection, ends_with)
        begun = time.perf_counter()
        await stream_context.resume_consumer(WORK, name)
        handled = 0
        # A postponed trigger waits on a schedule, and is not among the messages that wait for the consumer.
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_TIMEOUT):
                while await _count_unhandled_triggers(connection, name) or handled < number:
                    await asyncio.sleep(0.01)
                    handled = await _count_events(connection, ends_with) - done
        seconds = time.perf_counter() - begun
        if handled != number:
            raise RuntimeError(
                f"{name} handled {handled} instead of {number} conversations; run the bench again "
                "while nothing else runs on this machine"
            )
        return seconds

    async with run_provider("--seconds", str(SECONDS), "--no-batches") as url:
        provider_deployment = use_provider(deployment, url)
        await write_settings(connection, SettingsV1(compaction=compaction, extraction=extraction))

        async def drain_conversations(processes: int) -> tuple[float, dict[str, float]]:
            async with AsyncExitStack() as ends:
                working = [
                    await ends.enter_async_context(spawn_consumers([name], provider_deployment))
                    for _ in range(processes)
                ]
                await add_conversations(WARM_UP_CONVERSATIONS)
                await wait_until_empty(WARM_UP_CONVERSATIONS)
                await add_conversations(conversations)
                with count_busy_cores(working) as cores:
                    seconds = await wait_until_empty(conversations)
            return conversations / seconds, cores

        async with spawn_consumers(["persist"], provider_deployment):
            yield drain_conversations


async def _count_unhandled_triggers(connection: Client, name: str) -> int:
    info = await connection.jetstream().consumer_info(WORK, name)
    return (info.num_pending or 0) + (info.num_ack_pending or 0)


async def _count_events(connection: Client, event: str) -> int:
    info = await connection.jetstream().stream_info(LOG, subjects_filter=build_event_filter(event))
    return sum((info.state.subjects or {}).values())
