"""The consumer retrieve, as it ships, in a separate process that `bench retrieve` measures."""

import asyncio
import sys

from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment


async def serve(deployment: Deployment) -> None:
    """Answer requests until killed."""
    async with run_consumers(["retrieve"], deployment):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    nats_url, database_url, schema, users = sys.argv[1:]
    located = Deployment(
        nats_url=nats_url, database_dsn=database_url, database_schema=schema, cached_users=int(users)
    )
    asyncio.run(serve(located))
