"""The replay of `mnemon rebuild` in a separate process that `bench rebuild` measures."""

import asyncio
import json
import sys
import time

import psutil

from mnemon_infra.config import Deployment
from mnemon_infra.rebuild.generations import catch_up_with_log, open_exclusive_site, open_row_generation


class _SilentProgress:
    def report_rows(self, reached: int, up_to: int) -> None:
        """Ignore the position that was reached."""

    def show_line(self, line: str) -> None:
        """Ignore a line about the progress."""


async def measure_replay(deployment: Deployment) -> None:
    """Replay the log into the generation `next`, then print seconds and resident bytes as JSON."""
    async with open_exclusive_site(deployment) as site:
        begun = time.perf_counter()
        async with open_row_generation(site, "next", _SilentProgress()) as replayed:
            await catch_up_with_log(site, replayed, _SilentProgress())
        seconds = time.perf_counter() - begun
    print(json.dumps({"seconds": seconds, "resident_bytes": psutil.Process().memory_info().rss}))


if __name__ == "__main__":
    asyncio.run(measure_replay(Deployment.from_json(sys.argv[1])))
