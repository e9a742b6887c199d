"""The provider server in a separate process, so that it does not share an interpreter with measured code."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def run_provider(*options: str) -> AsyncIterator[str]:
    """Run the provider server for the duration of the block; yield its address, without a path.

    Args:
        options: options of `python -m mnemon_bench.provider_server`.

    Raises:
        RuntimeError: the server ended before it was ready.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mnemon_bench.provider_server", *options, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        said = (await process.stdout.readline()).decode()
        if not said.startswith("ready: "):
            raise RuntimeError(
                f"the provider server ended with exit code {await process.wait()} before it was ready: "
                "read its output above"
            )
        yield said.removeprefix("ready: ").strip()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
