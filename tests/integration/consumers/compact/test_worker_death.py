"""Summaries when workers are killed or stopped during a model call: real processes and signals."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import pytest
from nats.aio.client import Client

from mnemon_consumers import app
from mnemon_consumers.app import Consumer, build_consumer
from mnemon_consumers.compact import handler
from mnemon_consumers.compact.in_flight import ENDING_SECONDS, InFlightWork
from mnemon_contracts.streams import WORK
from mnemon_infra.broker import broker
from mnemon_infra.broker.provisioning.topology import build_consumer_config
from mnemon_infra.durables import DURABLES, GRACEFUL_TIMEOUT
from tests.support.pipelines.compaction import KEY, MODEL, TIMEOUT, CompactionHarness, covers_once, live

pytestmark = pytest.mark.long


@asynccontextmanager
async def observe_end(
    run: Callable[[], AbstractAsyncContextManager[None]], begins: asyncio.Event
) -> AsyncIterator[None]:
    """Run a consumer, and set `begins` when its shutdown begins."""
    async with run():
        try:
            yield
        finally:
            begins.set()


@asynccontextmanager
async def worker(compaction: CompactionHarness) -> AsyncIterator[Process]:
    """Run `mnemon run compact` in a process of its own, and yield the process."""
    located = compaction.deployment
    assert located.database_dsn is not None
    environment = os.environ | {
        "MNEMON_NATS_URL": str(located.nats_url),
        "DATABASE_URL": located.database_dsn,
        "MNEMON_DATABASE_SCHEMA": located.database_schema,
        "MNEMON_MODEL_URL": str(located.model_url),
        "MNEMON_MODEL_API_KEY": KEY,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mnemon", "run", "compact", env=environment, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def redelivered_after(connection: Client, seconds: float) -> None:
    config = build_consumer_config(DURABLES["compact"])
    await connection.jetstream().add_consumer(WORK, config.evolve(ack_wait=seconds))


async def test_worker_death_during_a_call_loses_no_summary(compaction: CompactionHarness) -> None:
    gate = compaction.gate()
    await redelivered_after(compaction.connection, 2)
    async with compaction.running("persist"):
        await compaction.talk(17)
        async with worker(compaction) as process:
            await gate.is_asked()
            process.send_signal(signal.SIGKILL)
            await process.wait()
        gate.opened.set()
        async with compaction.running("compact"):
            await compaction.settled()

    summaries = await compaction.summaries()
    assert len(summaries) == 1
    covers_once(summaries, await compaction.said(), 6)
    assert len(await compaction.log_of("model.called")) == 1, "what the dead one paid is not known"


async def test_worker_deaths_at_any_time_lose_no_summary(compaction: CompactionHarness) -> None:
    compaction.server.state.seconds = 0.05
    await redelivered_after(compaction.connection, 2)
    users = [f"u{number}" for number in range(4)]
    async with compaction.running("persist"):
        for death in range(4):
            async with worker(compaction) as process:
                await compaction.talk(30, users, first=death * 30)
                await compaction.has_more(death * 12 + 3, "summary.written")
                process.send_signal(signal.SIGKILL)
                await process.wait()
        async with compaction.running("compact"):
            await compaction.settled()

    for user in users:
        summaries = await compaction.summaries(user)
        left = covers_once(summaries, await compaction.said(user), 6)
        assert 10 < len(left) <= 16
        assert len(live(summaries)) <= 6
        names = [each["summary_id"] for each in summaries]
        assert len(set(names)) == len(names)


async def test_stopping_worker_hands_over_open_calls(
    compaction: CompactionHarness,
) -> None:
    gate = compaction.gate()
    async with compaction.running("persist"):
        await compaction.talk(17)
        async with worker(compaction) as process:
            await gate.is_asked()
            process.send_signal(signal.SIGTERM)
            await process.wait()
            assert not compaction.server.state.questions, "the worker does not wait for the answer"
        assert ENDING_SECONDS < GRACEFUL_TIMEOUT
        assert not await compaction.summaries()
        gate.opened.set()
        # The stopped worker hands its calls over long before the server's wait for an acknowledgement ends.
        async with compaction.running("compact"):
            await compaction.has(1, "summary.written")


async def test_stopping_worker_waits_for_imminent_answers(compaction: CompactionHarness) -> None:
    gate = compaction.gate()
    async with compaction.running("persist"):
        async with worker(compaction) as process:
            await compaction.talk(17)
            await gate.is_asked()
            process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.5)
            gate.opened.set()
            assert await process.wait() == 0
        assert len(await compaction.summaries()) == 1
    assert set(compaction.server.state.asked.values()) == {1}


async def test_stopping_worker_ends_all_calls_together(
    compaction: CompactionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Consumers wait until the answers to their calls are released.
    monkeypatch.setattr(broker, "GRACEFUL_TIMEOUT", 2 * TIMEOUT)
    monkeypatch.setattr(handler, "InFlightWork", partial(InFlightWork, 2 * TIMEOUT))
    released = compaction.server.state.hold_answers()
    leaving, ending = asyncio.Event(), {name: asyncio.Event() for name in ("compact", "extract")}

    def build_observed(name: str, *arguments: Any) -> Consumer:
        consumer = build_consumer(name, *arguments)
        if name in ending:
            monkeypatch.setattr(consumer, "run", partial(observe_end, consumer.run, ending[name]))
        return consumer

    async def run_until_told() -> None:
        async with compaction.running("persist", "compact", "extract"):
            await leaving.wait()

    monkeypatch.setattr(app, "build_consumer", build_observed)
    asking: dict[str, Any] = {"provider": "openai", "model": MODEL, "mode": "online", "after_messages": 17}
    await compaction.set(**{f"extraction__{name}": value for name, value in asking.items()})
    async with asyncio.TaskGroup() as group:
        group.create_task(run_until_told())
        await compaction.talk(17)
        await compaction.is_asked(2)
        leaving.set()
        try:
            async with asyncio.timeout(TIMEOUT):
                await asyncio.gather(*(each.wait() for each in ending.values()))
            assert len(compaction.server.state.in_flight) == 2, "no end waits for the call of the other"
        finally:
            released.set()
