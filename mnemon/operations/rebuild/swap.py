"""Rows and vectors change hands: first the rows, in one transaction, then the vectors.

Between the two the live rows keep the record of how far the other vectors are. As long as it is there, the
second half is still to be done, and whoever rebuilds next does it first. Until then the former vectors serve:
they say what the same log says.
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
from mnemon_infra.broker.streams.applied_position import applied_position, delivered_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Connection
from mnemon_infra.database.generations import generation_repository, vector_progress
from mnemon_infra.rebuild import generations as making
from mnemon_infra.rebuild.generations import InTheWay, Site
from mnemon_infra.vectors.edge_owner import EdgeOwner, tell_of_exchange
from mnemon_infra.vectors.generations import (
    are_there,
    drop_generation,
    exchange_at_rest,
    exchange_at_server,
    is_held,
    made_by_of,
    of_generation,
    rename_generation,
    settle_exchange,
)
from mnemon_infra.vectors.port import VectorsInUse
from mnemon_infra.vectors.vector_index import opened

EXCHANGE: Final = 20.0
"""Seconds for an exchange that is under way in another process: it loads all vectors."""

ROUNDS: Final = 10
"""How often what came meanwhile is looked for at most, where nobody can be made to wait."""


async def take_over(place: Site, made: Made, progress: Watching) -> None:
    """Put the rows of a generation in the place of the live ones; its vectors follow in `finish`.

    Raises:
        nats.errors.Error, DatabaseUnavailable: it is as it was before.
    """
    await made.catch_up(place, progress)
    if made.vectors is None:
        await making.take_over(place, made.rows, progress)
        return
    indexed = await applied_position(place.connection.jetstream(), "index")
    owed = await unswept(place.connection)

    async def also(connection: Connection, former: str) -> None:
        # The vectors that are live until `finish` go with the rows that were: so far they are for sure.
        await vector_progress.remember(connection, former, indexed, owed)

    await making.take_over(place, made.rows, progress, also)


async def finish(place: Site, progress: Watching) -> bool:
    """Put the vectors in the place of the live ones, if the rows have been; whether anything was to do.

    Raises:
        nats.errors.Error, DatabaseUnavailable, VectorsUnavailable, EmbeddingUnavailable: the former vectors
            are live, and it can be done again.
        And what else `mnemon_infra.vectors.vector_index.opened` raises.
    """
    settle_exchange(place.deployment)
    reached = await vector_progress.reached(place.database, place.live)
    if reached is None:
        return False
    # Whoever asked for it before may be dead, and the process that was asked has them open.
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
    await vector_progress.forget(place.database, place.live)
    return True


@asynccontextmanager
async def former(place: Site, progress: Watching) -> AsyncIterator[Made]:
    """The generation that was live before the last switch, its vectors under the name of those to come.

    Raises:
        InTheWay: there is none that could take over.
        And what `mnemon_infra.vectors.vector_index.opened` raises.
    """
    async with making.former(place) as rows:
        if await vector_progress.reached(rows.database, rows.schema) is None:
            yield Made(rows, None)
            return
        source, to = of_generation(place.deployment, "former"), of_generation(place.deployment, "next")
        if await are_there(source):
            if await made_by_of(source) != await made_by_of(place.deployment) and await is_embedding(place):
                raise InTheWay(
                    "mnemon is running, and the former vectors are of another embedding model",
                    "Stop mnemon, then run: mnemon rebuild --back",
                )
            await generation_repository.drop(place.database, to.database_schema)
            await drop_generation(to)
            await rename_generation(source, to)
        elif await place.found(to.database_schema):
            # Not those that an earlier attempt has renamed: another rebuild has had the name since.
            await drop_generation(to)
            await generation_repository.drop(place.database, to.database_schema)
        async with vectors_of(place, rows, to, await embedding_of(place, to), progress) as vectors:
            yield Made(rows, vectors)


async def _exchange_what_is_there(place: Site, reached: int, progress: Watching) -> None:
    to = of_generation(place.deployment, "next")
    if await are_there(to):
        if await made_by_of(to) != await made_by_of(place.deployment):
            # First: cut off in between, nobody writes vectors of one model among those of the other.
            await set_embedding(place, await embedding_of(place, to))
        await _exchange(place, to, reached, progress)


async def _exchange(place: Site, to: Deployment, reached: int, progress: Watching) -> None:
    holder = EdgeOwner(place.connection) if is_held(place.deployment) else None
    async with opened(to, await embedding_of(place, to)) as finding:
        replay = VectorReplay(place.connection, place.database, place.live, finding, reached)
        await _index(place, replay, progress)
        if holder:
            await holder.pause()
            await _index(place, replay, progress)
    if holder and to.vectors_folder:
        await holder.take(await asyncio.to_thread(to.vectors_folder.resolve))
    elif place.deployment.qdrant_url:
        await exchange_at_server(place.deployment, to)
        await tell_of_exchange(place.connection)
    else:
        exchange_at_rest(place.deployment, to)


async def _index(place: Site, replay: VectorReplay, progress: Watching) -> None:
    """Bring it to where `index` is, or beyond: what was handed out may be in the other vectors only."""
    delivered = await delivered_position(place.connection.jetstream(), "index")
    position = max(replay.reached, delivered)
    await replay.reach(position, lambda reached: progress.vectors_at(reached, position))


async def _index_the_rest(place: Site, progress: Watching) -> None:
    """What others wrote to the former collections while these were put in their place."""
    reached = await vector_progress.reached(place.database, place.live)
    assert reached is not None, "it was there a moment ago"
    async with opened(place.deployment, await embedding_of(place, place.deployment)) as finding:
        replay = VectorReplay(place.connection, place.database, place.live, finding, reached)
        for _ in range(ROUNDS):
            before = replay.reached
            await _index(place, replay, progress)
            if replay.reached == before:
                break
