"""Recovery of the embedded engine's folder, should it be deleted while this process has it open.

The engine goes on with files that have no name any more: searches find what was there, writes go nowhere.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import nats.errors
import structlog

from mnemon_infra.process.gate import Gate
from mnemon_infra.vectors.edge import renew
from mnemon_infra.vectors.port import (
    VectorsInUse,
    VectorsLost,
    VectorsOutdated,
    VectorStore,
    VectorsUnavailable,
)

log = structlog.get_logger("vectors")

CHECK_INTERVAL = 1.0
"""Seconds between two looks: a few stat calls each."""


@asynccontextmanager
async def recovering(
    vectors: VectorStore, folder: Path, gate: Gate, refill: Callable[[], Awaitable[int]]
) -> AsyncIterator[None]:
    """Open the folder again after it was deleted, and have it filled, as long as the block lasts.

    Args:
        vectors: of the folder.
        folder: the live one.
        gate: that all pass who write; it is told when the points are others.
        refill: has the log indexed from its start, and returns how many events that takes.
    """

    async def look_after() -> None:
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            try:
                await vectors.require_kept()
            except VectorsLost as lost:
                log.error("vectors lost, opening the folder again", problem=str(lost))
                await recover()

    async def recover() -> None:
        try:
            await gate.close()
            # First: killed after it, the next start finds nothing to be done twice.
            events = await refill()
            renew(folder)
            gate.exchanged()
            log.warning("vectors opened again, indexing the log from its start", events=events)
        except (VectorsUnavailable, VectorsInUse, VectorsOutdated, nats.errors.Error, OSError) as error:
            log.error("vectors cannot be opened again, retrying", error=str(error))
        finally:
            gate.open()

    looking = asyncio.create_task(look_after(), name="vectors recovery")
    try:
        yield
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
