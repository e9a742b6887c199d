"""Separate processes for the measured code, so that it does not share an interpreter with the benchmark."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import psutil

from mnemon_consumers.app import FOREGROUND
from mnemon_consumers.background_process import run_in_background
from mnemon_infra.config import Deployment
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.durables import CONSUMERS
from mnemon_infra.process.cancellation import run_task
from mnemon_infra.vectors.engines import reset_vectors

PAUSE_END = "2099-01-01T00:00:00Z"
"""Time until which the server pauses a consumer; the benchmark resumes the consumer much earlier."""


@asynccontextmanager
async def spawn_server(module: str, *arguments: str) -> AsyncIterator[psutil.Process]:
    """Run a module for the duration of the block, which starts when the module prints `ready`.

    Raises:
        RuntimeError: the module ended before it was ready.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        while b"ready" not in (line := await process.stdout.readline()):
            if not line:
                raise RuntimeError(
                    f"{module} ended with exit code {await process.wait()} before it was ready; read its "
                    "error output above"
                )
        # asyncio reports the end of a process only after the end of its output.
        reading = asyncio.create_task(_discard_output(process.stdout))
        try:
            yield psutil.Process(process.pid)
        finally:
            if process.returncode is None:
                process.terminate()
            await reading
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def _discard_output(output: asyncio.StreamReader) -> None:
    """Read the output to its end; otherwise a process that logs would block on a full pipe."""
    while await output.read(2**16):
        pass


@asynccontextmanager
async def spawn_consumers(names: Sequence[str], deployment: Deployment) -> AsyncIterator[psutil.Process]:
    """Run consumers in one separate process for the duration of the block.

    Raises:
        RuntimeError: the process ended before the consumers ran.
    """
    async with spawn_server("mnemon_bench.workers.consumers", deployment.to_json(), *names) as process:
        yield process


@asynccontextmanager
async def spawn_all_consumers(deployment: Deployment) -> AsyncIterator[psutil.Process]:
    """Run all consumers in two processes, as `mnemon up` does; yield the process that answers bots.

    Raises:
        BackgroundFailed: the consumers of the background process did not start.
        RuntimeError: the process that answers bots ended before its consumers ran.
    """
    background = [name for name in CONSUMERS if name not in FOREGROUND]
    async with (
        run_in_background(background, deployment),
        spawn_consumers(list(FOREGROUND), deployment) as process,
    ):
        yield process


async def run_module(module: str, *arguments: str) -> dict[str, float]:
    """Run a module to its end, and return the JSON object in its last line of output.

    Raises:
        RuntimeError: the module failed.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{module} ended with exit code {process.returncode}; read its error output above")
    measured: dict[str, float] = json.loads(output.splitlines()[-1])
    return measured


async def drain_log(
    deployment: Deployment, consumer: str, last_seq: int, workers: int = 1
) -> dict[str, float]:
    """Have `workers` workers of a consumer handle the log up to the log position `last_seq`.

    Returns:
        `seconds`, and `resident_bytes` of the process that has the workers.

    Raises:
        RuntimeError: the process of the workers failed.
    """
    arguments = deployment.to_json(), consumer, str(last_seq), str(workers)
    return await run_module("mnemon_bench.workers.drain", *arguments)


async def create_schema(deployment: Deployment) -> Deployment:
    """Create a database schema with empty tables, and return the deployment with this schema."""
    bench_deployment = deployment.model_copy(update={"database_schema": f"bench_{uuid4().hex[:12]}"})
    assert bench_deployment.database_url is not None
    await asyncio.to_thread(migrate_schema, bench_deployment.database_url, bench_deployment.database_schema)
    return bench_deployment


@asynccontextmanager
async def open_empty_vectors(deployment: Deployment) -> AsyncIterator[Deployment]:
    """Yield the deployment with an empty vector store of the same engine; remove the store at the end."""
    with TemporaryDirectory(prefix="mnemon-bench-") as folder:
        schema = f"{deployment.database_schema}_{uuid4().hex[:8]}"
        own = {"vectors_folder": Path(folder), "database_schema": schema}
        bench_deployment = deployment.model_copy(update=own)
        try:
            yield bench_deployment
        finally:
            await reset_vectors(bench_deployment)


def format_libpq_url(deployment: Deployment) -> str:
    """Return the database's address in the form of libpq, with the password."""
    assert deployment.database_url is not None
    return deployment.database_url.set(drivername="postgresql").render_as_string(hide_password=False)


class MemoryPeak:
    """Peak of a process's resident memory in bytes, sampled every 20 ms."""

    def __init__(self, process: psutil.Process) -> None:
        self.resident_bytes = 0
        self._process = process

    def watch_memory(self) -> AbstractAsyncContextManager[None]:
        """Sample the memory for the duration of the block."""
        return run_task(self._sample_memory())

    async def _sample_memory(self) -> None:
        while True:
            self.resident_bytes = max(self.resident_bytes, self._process.memory_info().rss)
            await asyncio.sleep(0.02)
