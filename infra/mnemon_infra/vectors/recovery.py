"""Recovery of vectors that are deleted while this process has them open.

The embedded engine does not notice that its files were deleted: searches find the old points, and writes are
lost. A Qdrant server refuses requests about a deleted collection.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import nats.errors
import structlog

from mnemon_infra.broker.provisioning.topology import PROVISION_REFUSALS
from mnemon_infra.process.cancellation import run_task
from mnemon_infra.process.gate import Gate
from mnemon_infra.vectors.edge.engine import reopen_folder
from mnemon_infra.vectors.port import (
    VectorsInUse,
    VectorsLost,
    VectorsOutdated,
    VectorStore,
    VectorsUnavailable,
)

log = structlog.get_logger("vectors")

CHECK_INTERVAL = 1.0
"""Seconds between two checks of a folder, each of a few stat calls."""

SERVER_CHECK_INTERVAL = 5.0
"""Seconds between two checks of a server, each a request."""

_FAILURES = VectorsUnavailable, VectorsOutdated, nats.errors.Error, OSError, *PROVISION_REFUSALS
"""Errors after which a recovery is tried again."""


@asynccontextmanager
async def recover_lost_vectors(
    vectors: VectorStore, folder: Path, gate: Gate, refill: Callable[[], Awaitable[int]]
) -> AsyncIterator[None]:
    """Reopen and refill a folder of vectors each time that it is deleted, for the duration of the block.

    Args:
        vectors: the vectors of the folder.
        folder: the live folder.
        gate: the gate that all writers pass; it is closed while the folder is opened again, and counts each
            reopening.
        refill: resets the index position to the start of the log, and returns the number of events to index.
    """

    async def recover(lost: VectorsLost) -> None:
        log.error("vectors lost, opening the folder again", error=str(lost))
        try:
            await gate.close()
            # Reset the position before the folder is opened: after a kill in between, the next start opens an
            # empty folder, and indexing continues at the start of the log.
            events = await refill()
            reopen_folder(folder)
            gate.count_exchange()
            log.warning("vectors opened again, indexing the log from its start", events=events)
        except (*_FAILURES, VectorsInUse) as error:
            log.error("vector folder reopening failed, retrying", error=str(error))
        finally:
            gate.open()

    async with _recover_losses(vectors, CHECK_INTERVAL, recover):
        yield


@asynccontextmanager
async def recover_lost_collections(
    vectors: VectorStore, recover: Callable[[], Awaitable[None]]
) -> AsyncIterator[None]:
    """Recover collections each time that some are deleted from a server, for the duration of the block.

    `recover` creates absent collections and refills them; it is called again until none is absent.
    """

    async def try_recovery(lost: VectorsLost) -> None:
        log.error("collections lost, creating them again", error=str(lost))
        try:
            await recover()
        except _FAILURES as error:
            log.error("collection creation failed, retrying", error=str(error))

    async with _recover_losses(vectors, SERVER_CHECK_INTERVAL, try_recovery):
        yield


@asynccontextmanager
async def _recover_losses(
    vectors: VectorStore, interval: float, recover: Callable[[VectorsLost], Awaitable[None]]
) -> AsyncIterator[None]:
    """Check every `interval` seconds whether vectors are lost, and recover them, while the block runs."""

    async def check_vectors() -> None:
        while True:
            await asyncio.sleep(interval)
            try:
                await vectors.require_present()
            except VectorsLost as lost:
                await recover(lost)
            except VectorsUnavailable:
                continue  # writers and searches report it

    async with run_task(check_vectors(), "vectors recovery"):
        yield
