"""Recovery of the embedded engine's folder if it is deleted while this process has it open.

The engine continues on the deleted files: searches find the old points, and writes are lost.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import nats.errors
import structlog

from mnemon_infra.process.gate import Gate
from mnemon_infra.vectors.edge import reopen_folder
from mnemon_infra.vectors.port import (
    VectorsInUse,
    VectorsLost,
    VectorsOutdated,
    VectorStore,
    VectorsUnavailable,
)

log = structlog.get_logger("vectors")

CHECK_INTERVAL = 1.0
"""Seconds between two checks, each of a few stat calls."""


@asynccontextmanager
async def recover_lost_vectors(
    vectors: VectorStore, folder: Path, gate: Gate, refill: Callable[[], Awaitable[int]]
) -> AsyncIterator[None]:
    """Reopen and refill the folder whenever it was deleted, for the duration of the block.

    Args:
        vectors: the vectors of the folder.
        folder: the live folder.
        gate: the gate that all writers pass; it counts each replacement of the points.
        refill: resets the index position to the start of the log, and returns the number of events to index.
    """

    async def look_after() -> None:
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            try:
                await vectors.require_present()
            except VectorsLost as lost:
                log.error("vectors lost, opening the folder again", problem=str(lost))
                await recover()

    async def recover() -> None:
        try:
            await gate.close()
            # Reset the position before the folder is opened: after a kill in between, the next start opens an
            # empty folder, and indexing continues at the start of the log.
            events = await refill()
            reopen_folder(folder)
            gate.count_exchange()
            log.warning("vectors opened again, indexing the log from its start", events=events)
        except (VectorsUnavailable, VectorsInUse, VectorsOutdated, nats.errors.Error, OSError) as error:
            log.error("vector folder reopening failed, retrying", error=str(error))
        finally:
            gate.open()

    looking = asyncio.create_task(look_after(), name="vectors recovery")
    try:
        yield
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
