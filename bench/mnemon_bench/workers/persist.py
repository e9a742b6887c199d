"""The consumer persist, as it ships, in a separate process that `bench ingest` measures."""

import asyncio
import json
import sys
import time

import psutil

from mnemon_bench.workers.processes import FAR
from mnemon_consumers.app import run_consumers
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.streams.applied_position import applied_position
from mnemon_infra.config import Deployment


async def drain(deployment: Deployment, last_seq: int) -> None:
    """Persist up to a log position, then print seconds and resident bytes as JSON."""
    connection = await connect(str(deployment.nats_url), name="bench")
    stream_context = connection.jetstream()
    # Paused until the consumer runs, so that only the work is measured, as in the plain loop.
    await stream_context.pause_consumer("LOG", "persist", pause_until=FAR)
    async with run_consumers(["persist"], deployment):
        begun = time.perf_counter()
        await stream_context.resume_consumer("LOG", "persist")
        while await applied_position(stream_context) < last_seq:
            await asyncio.sleep(0.025)
        seconds = time.perf_counter() - begun
        resident = psutil.Process().memory_info().rss
    await connection.close()
    print(json.dumps({"seconds": seconds, "resident_bytes": resident}))


if __name__ == "__main__":
    nats_url, database_url, schema, last_seq = sys.argv[1:]
    located = Deployment(nats_url=nats_url, database_dsn=database_url, database_schema=schema)
    asyncio.run(drain(located, int(last_seq)))
