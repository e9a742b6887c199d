"""Workers of one consumer in a separate process, which a benchmark measures."""

import asyncio
import json
import sys
import time

import psutil

from mnemon_bench.workers.processes import PAUSE_END
from mnemon_consumers.app import run_consumers
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.config import Deployment


async def measure_draining(deployment: Deployment, consumer: str, last_seq: int, workers: int) -> None:
    """Handle the log with `workers` workers of a consumer, then print seconds and resident bytes as JSON.

    `last_seq` is the log position at which the measurement ends.
    """
    connection = await connect_deployment(deployment, name="bench")
    stream_context = connection.jetstream()
    # Paused until the workers run, so that only the work is measured.
    await stream_context.pause_consumer(LOG, consumer, pause_until=PAUSE_END)
    async with run_consumers([consumer] * workers, deployment):
        begun = time.perf_counter()
        await stream_context.resume_consumer(LOG, consumer)
        while await read_applied_position(stream_context, consumer) < last_seq:
            await asyncio.sleep(0.02)
        seconds = time.perf_counter() - begun
        resident = psutil.Process().memory_info().rss
    await connection.close()
    print(json.dumps({"seconds": seconds, "resident_bytes": resident}))


if __name__ == "__main__":
    deployment, consumer, last_seq, workers = sys.argv[1:]
    asyncio.run(measure_draining(Deployment.from_json(deployment), consumer, int(last_seq), int(workers)))
