"""`mnemon rebuild --verify` as a command, over rows and vectors that consumers have written."""

import asyncio
import json
import os
import sys
import time
from contextlib import suppress
from typing import Any

import psutil

from mnemon_bench.workers.processes import format_libpq_url, spawn_consumers
from mnemon_contracts.streams import LOG, WORK
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.applied_position import read_applied_position, read_log_end
from mnemon_infra.config import Deployment

_INTERVAL = 0.05  # seconds


async def apply_log(deployment: Deployment) -> None:
    """Run `persist` and `index` until they have written all events of the log."""
    connection = await connect_deployment(deployment, name="bench")
    context = connection.jetstream()

    async def is_behind() -> bool:
        end = await read_log_end(context)
        if any([await read_applied_position(context, name) < end for name in ("persist", "index")]):
            return True
        triggers = [f"work.{name}.>" for name in ("persist", "index")]
        return any(
            [(await context.stream_info(WORK, subjects_filter=each)).state.subjects for each in triggers]
        )

    async with connection, spawn_consumers(("persist", "index"), deployment):
        while await is_behind():
            await asyncio.sleep(_INTERVAL)


async def verify_rebuild(deployment: Deployment) -> dict[str, Any]:
    """Rebuild rows and vectors, and compare them with the live ones.

    Returns:
        The command's result, with `seconds`, the peak `anonymous_bytes` of its process, and `model_calls`:
        the number of events that the command adds to the log. Anonymous memory is resident memory without
        mapped files, which the system may drop at any time.

    Raises:
        RuntimeError: the command printed no result.
    """
    connection = await connect_deployment(deployment, name="bench")
    async with connection:
        before = (await connection.jetstream().stream_info(LOG)).state.last_seq
        begun = time.perf_counter()
        said, anonymous = await _run_command(deployment)
        seconds = time.perf_counter() - begun
        calls = (await connection.jetstream().stream_info(LOG)).state.last_seq - before
    return {**said, "seconds": seconds, "anonymous_bytes": anonymous, "model_calls": calls}


async def _run_command(deployment: Deployment) -> tuple[dict[str, Any], int]:
    key = deployment.qdrant_api_key
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mnemon", "rebuild", "--verify", "--json"),
        stdout=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "MNEMON_NATS_URL": str(deployment.nats_url),
            "DATABASE_URL": format_libpq_url(deployment),
            "MNEMON_DATABASE_SCHEMA": deployment.database_schema,
            # Empty values count as absent: the shell's server must not be used.
            "MNEMON_VECTORS_FOLDER": str(deployment.vectors_folder or ""),
            "MNEMON_QDRANT_URL": deployment.qdrant_url or "",
            "MNEMON_QDRANT_GRPC_PORT": str(deployment.qdrant_grpc_port),
            "MNEMON_QDRANT_API_KEY": key.get_secret_value() if key else "",
            "MNEMON_QDRANT_CA": str(deployment.qdrant_ca or ""),
        },
    )
    watching = asyncio.create_task(_sample_anonymous_memory(psutil.Process(process.pid)))
    output, _ = await process.communicate()
    if not output:
        raise RuntimeError(
            f"mnemon rebuild ended with exit code {process.returncode} and printed no result; read its error "
            "output above"
        )
    return json.loads(output.splitlines()[-1]), await watching


async def _sample_anonymous_memory(process: psutil.Process) -> int:
    most = 0
    with suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE:
            memory = process.memory_info()
            most = max(most, memory.rss - memory.shared)
            await asyncio.sleep(_INTERVAL)
    return most
