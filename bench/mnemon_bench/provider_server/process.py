"""The server in a process of its own, so that it does not share an interpreter with what is measured."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def provider(*options: str) -> AsyncIterator[str]:
    """Serve as long as the block lasts; gives its address, without a path.

    Args:
        options: of `python -m mnemon_bench.provider_server`.

    Raises:
        RuntimeError: it does not start.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mnemon_bench.provider_server", *options, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        said = (await process.stdout.readline()).decode()
        if not said.startswith("ready: "):
            raise RuntimeError(f"the provider's server ended with {await process.wait()}")
        yield said.removeprefix("ready: ").strip()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
