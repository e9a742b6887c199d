"""Work of persist for `bench scale`: from the log to committed and acknowledged."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import uuid4

from nats.aio.client import Client

from mnemon_bench.measures.cpu_usage import busy_cores
from mnemon_bench.workers.processes import FAR, consuming
from mnemon_bench.workloads.messages import fill
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.provisioning.topology import reset_consumer
from mnemon_infra.broker.streams.applied_position import applied_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.migration import migrate


@asynccontextmanager
async def waiting(
    connection: Client, deployment: Deployment, messages: int
) -> AsyncIterator[Callable[[int], Awaitable[tuple[float, dict[str, float]]]]]:
    """Fill the log; yield a function that has a number of processes write the messages into new tables."""
    stream_context = connection.jetstream()
    await stream_context.purge_stream(LOG)
    last = await fill(connection, messages)

    async def drain(processes: int) -> tuple[float, dict[str, float]]:
        located = deployment.model_copy(update={"database_schema": f"bench_{uuid4().hex[:12]}"})
        assert located.database_url is not None
        await asyncio.to_thread(migrate, located.database_url, located.database_schema)
        await reset_consumer(connection, LOG, "persist")
        # Paused until all processes run, so that only the work is measured.
        await stream_context.pause_consumer(LOG, "persist", pause_until=FAR)
        async with AsyncExitStack() as ends:
            working = [
                await ends.enter_async_context(consuming(["persist"], located)) for _ in range(processes)
            ]
            with busy_cores(working) as cores:
                begun = time.perf_counter()
                await stream_context.resume_consumer(LOG, "persist")
                while await applied_position(stream_context) < last:
                    await asyncio.sleep(0.025)
                seconds = time.perf_counter() - begun
        return messages / seconds, cores

    yield drain
