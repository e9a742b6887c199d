"""Vector index of a process: its opening, swaps by other processes, and recovery of lost vectors."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog
from nats.aio.client import Client

from mnemon_contracts.streams import LOG, WORK
from mnemon_contracts.subjects import build_trigger_subject
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.provisioning.topology import reset_durable
from mnemon_infra.broker.streams.applied_position import read_applied_position, read_delivered_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.locks import try_lock
from mnemon_infra.health.consistency import FROM_ROWS, find_lost_collections, list_owners_to_sweep
from mnemon_infra.settings.store import read_settings
from mnemon_infra.vectors.edge.owner import serve_requests
from mnemon_infra.vectors.port import Collection, VectorsLost
from mnemon_infra.vectors.recovery import recover_lost_collections, recover_lost_vectors
from mnemon_infra.vectors.swap_announcements import announce_swap, watch_swaps
from mnemon_infra.vectors.vector_index import VectorIndex, create_absent_collections, open_index

log = structlog.get_logger("app")


@asynccontextmanager
async def run_vector_index(
    database: Database, deployment: Deployment, *, has_index_consumer: bool
) -> AsyncIterator[VectorIndex]:
    """Open the vector index, and follow swaps by other processes, until the block ends.

    `has_index_consumer` tells whether this process runs the consumer `index`, which refills lost vectors.

    The function raises the same errors as `mnemon_infra.vectors.vector_index.open_index`.
    """
    async with await connect_deployment(deployment, name="mnemon-start") as connection:
        settings = await read_settings(connection)
    async with (
        open_index(deployment, settings.embedding) as vector_index,
        await connect_deployment(deployment, name="mnemon-start") as connection,
    ):
        if has_index_consumer:
            await _refill_lost_vectors(connection, database, vector_index)
        async with AsyncExitStack() as ends:
            await ends.enter_async_context(_follow_swaps(connection, vector_index, deployment))
            if has_index_consumer and deployment.qdrant_url:
                await ends.enter_async_context(
                    _recover_collections(connection, database, vector_index, deployment)
                )
            yield vector_index


@asynccontextmanager
async def _recover_collections(
    connection: Client, database: Database, vector_index: VectorIndex, deployment: Deployment
) -> AsyncIterator[None]:
    """Recreate and refill a Qdrant server's collections if they are deleted while this process uses them."""
    embedding = (await read_settings(connection)).embedding

    async def recover() -> None:
        if (await read_settings(connection)).embedding != embedding:
            log.warning(
                "lost collections not created, embedding model changed",
                next_step="stop the consumers and run `mnemon reindex`",
            )
            return
        try:
            # Of all processes with `index`, one recovers the collections.
            async with try_lock(database, "lost collections", deployment.database_schema) as is_mine:
                if not is_mine:
                    return
                try:
                    await vector_index.vectors.require_present()
                except VectorsLost:
                    # Reset the position first: after a kill in between, the collections are still absent, and
                    # the next check recovers them.
                    events = await reset_durable(connection, LOG, "index")
                    await create_absent_collections(deployment, vector_index)
                    await announce_swap(connection)
                    log.warning("collections created again, indexing the log from its start", events=events)
        except DatabaseUnavailable as error:
            log.warning("collection recovery failed, retrying", error=str(error))

    async with recover_lost_collections(vector_index.vectors, recover):
        yield


@asynccontextmanager
async def _follow_swaps(
    connection: Client, vector_index: VectorIndex, deployment: Deployment
) -> AsyncIterator[None]:
    """Follow swaps of the vectors by other processes until the block ends.

    With the embedded engine, also answer other processes' requests for the vectors, and refill the vectors'
    folder if it is deleted.
    """
    folder = deployment.vectors_folder
    if deployment.qdrant_url:
        async with watch_swaps(connection, vector_index.gate):
            yield
    elif folder:
        async with (
            serve_requests(connection, vector_index.vectors, folder, vector_index.gate),
            recover_lost_vectors(
                vector_index.vectors,
                folder,
                vector_index.gate,
                lambda: reset_durable(connection, LOG, "index"),
            ),
        ):
            yield
    else:
        yield


async def _refill_lost_vectors(connection: Client, database: Database, vector_index: VectorIndex) -> None:
    """Fill lost collections of vectors again.

    A collection is lost if it is empty although rows need points in it, for example because its folder was
    deleted, or because a former version did not have it. If another collection has points, and rows suffice
    to fill the lost collections, a trigger is published for each user with such rows. Otherwise `index` reads
    the log again from its start. It also does so if all collections are empty while `persist` is behind
    `index`, because rows may be missing then.
    """
    position = await read_applied_position(connection.jetstream(), "index")
    if not position:
        return
    delivered = await read_delivered_position(connection.jetstream(), "index")
    # Read before the rows, because `persist` may catch up meanwhile.
    has_all_rows = await read_applied_position(connection.jetstream(), "persist") >= delivered
    lost = await find_lost_collections(database, vector_index.vectors)
    has_points = any([await vector_index.vectors.count(each) for each in Collection])
    if lost and has_points and FROM_ROWS.issuperset(lost):
        owners = await list_owners_to_sweep(database, lost)
        for owner in owners:
            trigger = build_trigger_subject("index", *owner)
            await connection.jetstream().publish(trigger, str(position).encode(), stream=WORK)
        log.warning("empty collections found, indexing from the rows", collections=lost, users=len(owners))
    elif lost or not (has_points or has_all_rows):
        events = await reset_durable(connection, LOG, "index")
        empty = lost if has_points else list(Collection)
        log.warning(
            "empty collections found, indexing the log from its start", collections=empty, events=events
        )
