"""The provider server in a separate process, so that it does not share an interpreter with measured code."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import SecretStr

from mnemon_infra.config import Deployment


def use_provider(deployment: Deployment, url: str) -> Deployment:
    """Return the deployment with the provider server at `url`, an address without a path, for its models."""
    return deployment.model_copy(update={"model_url": f"{url}/v1", "model_api_key": SecretStr("bench")})


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
