"""Consumers in a separate process: `python -m mnemon_bench.workers.consumers DEPLOYMENT NAME...`."""

import asyncio
import sys
from collections.abc import Sequence

from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment


async def serve_consumers(names: Sequence[str], deployment: Deployment) -> None:
    """Run the consumers `names`, and print `ready`; serve until killed."""
    async with run_consumers(names, deployment):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve_consumers(sys.argv[2:], Deployment.from_json(sys.argv[1])))
