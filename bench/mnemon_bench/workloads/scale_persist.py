"""Work of persist for `bench scale`: messages in the log."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from nats.aio.client import Client

from mnemon_bench.measures.cpu_usage import count_busy_cores
from mnemon_bench.workers.processes import PAUSE_END, create_schema, spawn_consumers
from mnemon_bench.workloads.messages import fill_log
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.provisioning.topology import reset_durable
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.config import Deployment


@asynccontextmanager
async def prepare_messages(
    connection: Client, deployment: Deployment, messages: int
) -> AsyncIterator[Callable[[int], Awaitable[tuple[float, dict[str, float]]]]]:
    """Empty and fill the log; yield a function that has a number of processes write the log into new tables.

    The function returns messages per second, and busy cores by name.
    """
    stream_context = connection.jetstream()
    await stream_context.purge_stream(LOG)
    last = await fill_log(connection, messages)

    async def drain_messages(processes: int) -> tuple[float, dict[str, float]]:
        bench_deployment = await create_schema(deployment)
        await reset_durable(connection, LOG, "persist")
        # Paused until all processes run, so that only the work is measured.
        await stream_context.pause_consumer(LOG, "persist", pause_until=PAUSE_END)
        async with AsyncExitStack() as ends:
            working = [
                await ends.enter_async_context(spawn_consumers(["persist"], bench_deployment))
                for _ in range(processes)
            ]
            with count_busy_cores(working) as cores:
                begun = time.perf_counter()
                await stream_context.resume_consumer(LOG, "persist")
                while await read_applied_position(stream_context) < last:
                    await asyncio.sleep(0.025)
                seconds = time.perf_counter() - begun
        return messages / seconds, cores

    yield drain_messages
