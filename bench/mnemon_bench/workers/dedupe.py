"""One or more workers of the consumer dedupe, as it ships, in a process that `bench dedupe` measures."""

import asyncio
import json
import sys
import time

from mnemon_bench.workers.processes import FAR
from mnemon_consumers.app import run_consumers
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.streams.applied_position import applied_position
from mnemon_infra.config import Deployment


async def drain(deployment: Deployment, workers: int, last_seq: int) -> None:
    """Decide up to a log position, then print the seconds as JSON."""
    connection = await connect(str(deployment.nats_url), name="bench")
    stream_context = connection.jetstream()
    # Paused until the workers run, so that only the work is measured.
    await stream_context.pause_consumer("LOG", "dedupe", pause_until=FAR)
    async with run_consumers(["dedupe"] * workers, deployment):
        begun = time.perf_counter()
        await stream_context.resume_consumer("LOG", "dedupe")
        while await applied_position(stream_context, "dedupe") < last_seq:
            await asyncio.sleep(0.01)
        seconds = time.perf_counter() - begun
    await connection.close()
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    deployment, workers, last_seq = sys.argv[1:]
    asyncio.run(drain(Deployment.read(deployment), int(workers), int(last_seq)))
