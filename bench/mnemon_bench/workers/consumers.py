"""Consumers, as they ship, in a separate process: as `mnemon up` runs them, without the servers."""

import asyncio
import sys
from collections.abc import Sequence

from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment


async def serve(names: Sequence[str], deployment: Deployment) -> None:
    """Consume until killed."""
    async with run_consumers(names, deployment):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[2:], Deployment.from_json(sys.argv[1])))
