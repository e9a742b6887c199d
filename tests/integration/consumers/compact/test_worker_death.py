"""Summaries when workers die or end while a model is asked: real processes, and real signals."""

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from nats.aio.client import Client

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_consumers.compact import handler
from mnemon_consumers.compact.in_flight import Working
from mnemon_contracts.streams import WORK
from mnemon_infra.broker import broker
from mnemon_infra.broker.provisioning.topology import consumer_config
from mnemon_infra.config import Deployment
from mnemon_infra.durables import DURABLES, GRACEFUL_TIMEOUT
from tests.integration.conftest import Stock
from tests.support.pipelines.compaction import KEY, MODEL, PATIENCE, Compacting, covers_once, live

pytestmark = pytest.mark.long


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest_asyncio.fixture
async def compacting(
    stock: Stock, deployment: Deployment, server: ProviderServer
) -> AsyncIterator[Compacting]:
    yield await Compacting.on(stock, deployment, server)


@asynccontextmanager
async def worker(compacting: Compacting) -> AsyncIterator[Process]:
    """`mnemon run compact`, a process of its own."""
    located = compacting.deployment
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
    config = consumer_config(DURABLES["compact"])
    await connection.jetstream().add_consumer(WORK, config.evolve(ack_wait=seconds))


async def test_a_worker_that_dies_while_the_model_is_asked(compacting: Compacting) -> None:
    gate = compacting.gate()
    await redelivered_after(compacting.connection, 2)
    async with compacting.running("persist"):
        await compacting.talk(17)
        async with worker(compacting) as process:
            await gate.is_asked()
            process.send_signal(signal.SIGKILL)
            await process.wait()
        gate.opened.set()
        async with compacting.running("compact"):
            await compacting.settled()

    summaries = await compacting.summaries()
    assert len(summaries) == 1
    covers_once(summaries, await compacting.said(), 6)
    assert len(await compacting.log_of("model.called")) == 1, "what the dead one paid is not known"


async def test_workers_that_die_at_any_time(compacting: Compacting) -> None:
    compacting.server.state.seconds = 0.05
    await redelivered_after(compacting.connection, 2)
    users = [f"u{number}" for number in range(6)]
    async with compacting.running("persist"):
        for death in range(4):
            async with worker(compacting) as process:
                await compacting.talk(30, users, first=death * 30)
                await compacting.has_more(death * 20 + 4, "summary.written")
                process.send_signal(signal.SIGKILL)
                await process.wait()
        async with compacting.running("compact"):
            await compacting.settled()

    for user in users:
        summaries = await compacting.summaries(user)
        left = covers_once(summaries, await compacting.said(user), 6)
        assert 10 < len(left) <= 16
        assert len(live(summaries)) <= 6
        names = [each["summary_id"] for each in summaries]
        assert len(set(names)) == len(names)


async def test_a_worker_that_ends_hands_over_what_the_model_has_not_answered(compacting: Compacting) -> None:
    gate = compacting.gate()
    async with compacting.running("persist"):
        await compacting.talk(17)
        async with worker(compacting) as process:
            await gate.is_asked()
            begun = time.monotonic()
            process.send_signal(signal.SIGTERM)
            await process.wait()
            assert time.monotonic() - begun < GRACEFUL_TIMEOUT
        assert not await compacting.summaries()
        gate.opened.set()
        # Well before the server would give up waiting for the one that has ended.
        async with compacting.running("compact"):
            await compacting.has(1, "summary.written")


async def test_a_worker_that_ends_keeps_what_the_model_answers_soon(compacting: Compacting) -> None:
    gate = compacting.gate()
    async with compacting.running("persist"):
        async with worker(compacting) as process:
            await compacting.talk(17)
            await gate.is_asked()
            process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.5)
            gate.opened.set()
            assert await process.wait() == 0
        assert len(await compacting.summaries()) == 1
    assert set(compacting.server.state.asked.values()) == {1}


async def test_those_who_wait_for_models_end_at_the_same_time(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker, "GRACEFUL_TIMEOUT", 3.0)
    monkeypatch.setattr(handler, "Working", partial(Working, 3.0))
    state = compacting.server.state
    state.seconds = 20
    asking: dict[str, Any] = {"provider": "openai", "model": MODEL, "mode": "online", "after_messages": 17}
    await compacting.set(**{f"extraction__{name}": value for name, value in asking.items()})
    async with compacting.running("persist", "compact", "extract"):
        await compacting.talk(17)
        async with asyncio.timeout(PATIENCE):
            while state.most_in_flight < 2:
                await asyncio.sleep(0.02)
        begun = time.monotonic()
    assert time.monotonic() - begun < 5
