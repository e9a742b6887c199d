"""Swap of generations: first the rows, in one transaction, then the vectors.

Between the two steps the live rows keep a record of the position of the new vectors. While the record exists,
the second step is due, and the next rebuild does it first. Until then searches use the former vectors, which
come from the same log.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from mnemon.operations.rebuild.embedding import embedding_of, is_embedding, set_embedding
from mnemon.operations.rebuild.generations import Made, Watching, vectors_of
from mnemon.operations.rebuild.live_vectors import unswept
from mnemon.operations.rebuild.vector_replay import VectorReplay
from mnemon_infra.broker.streams.applied_position import read_applied_position, read_delivered_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Connection
from mnemon_infra.database.generations import generation_repository
from mnemon_infra.database.generations.progress import VECTORS
from mnemon_infra.rebuild import generations as making
from mnemon_infra.rebuild.generations import RebuildBlocked, Site
from mnemon_infra.vectors.edge_owner import EdgeOwner, announce_swap
from mnemon_infra.vectors.generations import (
    drop_generation,
    has_vectors,
    is_folder_open,
    locate_generation,
    read_model_record,
    rename_generation,
    settle_folder_swap,
    swap_closed_folder,
    swap_on_server,
)
from mnemon_infra.vectors.port import VectorsInUse
from mnemon_infra.vectors.vector_index import open_index

EXCHANGE: Final = 20.0
"""Seconds to wait for an exchange that is under way in another process, which loads all vectors."""

ROUNDS: Final = 10
"""Maximum number of catch-up passes after a swap at a server, where writers cannot be paused."""


async def take_over(place: Site, made: Made, progress: Watching) -> None:
    """Make the rows of a generation live; `finish` does the same for its vectors.

    Raises:
        nats.errors.Error, DatabaseUnavailable: a server does not answer; the live generation is unchanged.
    """
    await made.catch_up(place, progress)
    if made.vectors is None:
        await making.swap_rows(place, made.rows, progress)
        return
    indexed = await read_applied_position(place.connection.jetstream(), "index")
    owed = await unswept(place.connection)

    async def also(connection: Connection, former: str) -> None:
        # Record with the former rows how far the vectors are that stay live until `finish`.
        await VECTORS.create(connection, former, indexed, owners=owed)

    await making.swap_rows(place, made.rows, progress, also)


async def finish(place: Site, progress: Watching) -> bool:
    """Make the new vectors live if the new rows are; return whether a swap was due.

    Raises:
        nats.errors.Error, DatabaseUnavailable, VectorsUnavailable, EmbeddingUnavailable: a part does not
            answer; the former vectors are live, and another call can finish the swap.
        Exception: also the other errors of `mnemon_infra.vectors.vector_index.open_index`.
    """
    settle_folder_swap(place.deployment)
    reached = await VECTORS.load_position(place.database, place.live)
    if reached is None:
        return False
    # An earlier attempt may have died while the process that it asked for the exchange has the vectors open.
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(VectorsInUse),
        stop=stop_after_delay(EXCHANGE),
        wait=wait_fixed(0.1),
        reraise=True,
    ):
        with attempt:
            await _exchange_what_is_there(place, reached, progress)
    if place.deployment.qdrant_url:
        await _index_the_rest(place, progress)
    async with place.database.transaction() as connection:
        await VECTORS.drop(connection, place.live)
    return True


@asynccontextmanager
async def former(place: Site, progress: Watching) -> AsyncIterator[Made]:
    """Open the generation that was live before the last swap; give its vectors the name of the next ones.

    Raises:
        RebuildBlocked: no former generation can take over.
        Exception: also the errors of `mnemon_infra.vectors.vector_index.open_index`.
    """
    async with making.open_former_generation(place) as rows:
        if await VECTORS.load_position(rows.database, rows.schema) is None:
            yield Made(rows, None)
            return
        source, to = (
            locate_generation(place.deployment, "former"),
            locate_generation(place.deployment, "next"),
        )
        if await has_vectors(source):
            if await read_model_record(source) != await read_model_record(
                place.deployment
            ) and await is_embedding(place):
                raise RebuildBlocked(
                    "mnemon is running, and the former vectors are of another embedding model",
                    "Stop mnemon, then run: mnemon rebuild --back",
                )
            await generation_repository.drop_schema(place.database, to.database_schema)
            await drop_generation(to)
            await rename_generation(source, to)
        elif await place.find_generation(to.database_schema):
            # These are not the vectors that an earlier attempt has renamed: another rebuild made them since.
            await drop_generation(to)
            await generation_repository.drop_schema(place.database, to.database_schema)
        async with vectors_of(place, rows, to, await embedding_of(place, to), progress) as vectors:
            yield Made(rows, vectors)


async def _exchange_what_is_there(place: Site, reached: int, progress: Watching) -> None:
    to = locate_generation(place.deployment, "next")
    if await has_vectors(to):
        if await read_model_record(to) != await read_model_record(place.deployment):
            # Before the exchange: after an interruption no process mixes vectors of the two models.
            await set_embedding(place, await embedding_of(place, to))
        await _exchange(place, to, reached, progress)


async def _exchange(place: Site, to: Deployment, reached: int, progress: Watching) -> None:
    holder = EdgeOwner(place.connection) if is_folder_open(place.deployment) else None
    async with open_index(to, await embedding_of(place, to)) as finding:
        replay = VectorReplay(place.connection, place.database, place.live, finding, reached)
        await _index(place, replay, progress)
        if holder:
            await holder.pause()
            await _index(place, replay, progress)
    if holder and to.vectors_folder:
        await holder.take(await asyncio.to_thread(to.vectors_folder.resolve))
    elif place.deployment.qdrant_url:
        await swap_on_server(place.deployment, to)
        await announce_swap(place.connection)
    else:
        swap_closed_folder(place.deployment, to)


async def _index(place: Site, replay: VectorReplay, progress: Watching) -> None:
    """Replay up to the last event delivered to `index`: only the other vectors may have it so far."""
    delivered = await read_delivered_position(place.connection.jetstream(), "index")
    position = max(replay.reached, delivered)
    await replay.reach(position, lambda reached: progress.vectors_at(reached, position))


async def _index_the_rest(place: Site, progress: Watching) -> None:
    """Replay the events that `index` wrote to the former collections while the new ones took their place."""
    reached = await VECTORS.load_position(place.database, place.live)
    assert reached is not None, "it was there a moment ago"
    async with open_index(place.deployment, await embedding_of(place, place.deployment)) as finding:
        replay = VectorReplay(place.connection, place.database, place.live, finding, reached)
        for _ in range(ROUNDS):
            before = replay.reached
            await _index(place, replay, progress)
            if replay.reached == before:
                break
