"""Swap of generations: first the rows, in one transaction, then the vectors.

Between the two steps the live rows keep a record of the position of the new vectors. While the record exists,
the second step is due, and the next rebuild takes this step first. Until then searches use the former
vectors, which come from the same log.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_delay, wait_fixed

from mnemon.operations.rebuild.embedding import choose_embedding, is_embedder_running, set_embedding
from mnemon.operations.rebuild.generations import GenerationProgress, GenerationReplay, open_vector_replay
from mnemon.operations.rebuild.live_vectors import list_unswept_owners
from mnemon.operations.rebuild.vector_replay import VectorReplay
from mnemon_infra.broker.streams.applied_position import read_applied_position, read_delivered_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Connection
from mnemon_infra.database.generations import generation_repository
from mnemon_infra.database.generations.progress import VECTORS
from mnemon_infra.rebuild import generations
from mnemon_infra.rebuild.generations import RebuildBlocked, Site
from mnemon_infra.vectors.edge.owner import EdgeOwner
from mnemon_infra.vectors.generations import (
    drop_generation,
    has_vectors,
    is_folder_open,
    locate_generation,
    read_model_record,
    rename_generation,
    settle_folder_swap,
    swap_closed_folder,
    swap_server_collections,
)
from mnemon_infra.vectors.port import VectorsInUse
from mnemon_infra.vectors.swap_announcements import announce_swap
from mnemon_infra.vectors.vector_index import open_index

SWAP_TIMEOUT: Final = 20.0
"""Maximum seconds to wait for a swap that is under way in another process, which loads all vectors."""

MAX_PASSES: Final = 10
"""Maximum number of catch-up passes after a swap on a Qdrant server, where writers cannot be paused."""


async def swap_rows(site: Site, replay: GenerationReplay, progress: GenerationProgress) -> None:
    """Make the rows of a generation live; `swap_vectors` does the same for its vectors.

    Raises:
        nats.errors.Error, DatabaseUnavailable, VectorsUnavailable, EmbeddingUnavailable: a server does not
            answer; the live generation is unchanged, unless the connection to the database was lost during
            the commit.
    """
    await replay.replay_to_end(site, progress)
    if replay.vectors is None:
        await generations.swap_row_generations(site, replay.rows, progress)
        return
    indexed = await read_applied_position(site.connection.jetstream(), "index")
    owed = await list_unswept_owners(site.connection)

    async def record_position(connection: Connection, former: str) -> None:
        # Record with the former rows the position of the vectors that stay live until `swap_vectors`.
        await VECTORS.create(connection, former, indexed, owners=owed)

    await generations.swap_row_generations(site, replay.rows, progress, record_position)


async def swap_vectors(site: Site, progress: GenerationProgress) -> bool:
    """Make the new vectors live if the new rows are live; return whether a swap of vectors was due.

    The errors of `set_embedding` and `mnemon_infra.vectors.vector_index.open_index` propagate.

    Raises:
        nats.errors.Error, DatabaseUnavailable, VectorsUnavailable, EmbeddingUnavailable: a server does not
            answer; the former or the new vectors are live, and another call finishes the swap.
    """
    settle_folder_swap(site.deployment)
    reached = await VECTORS.load_position(site.database, site.live)
    if reached is None:
        return False
    # An earlier attempt may have died while the process that it asked for the swap has the vectors open.
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(VectorsInUse),
        stop=stop_after_delay(SWAP_TIMEOUT),
        wait=wait_fixed(0.1),
        before_sleep=lambda state: _report_wait(state, progress),
        reraise=True,
    ):
        with attempt:
            await _replace_existing_vectors(site, reached, progress)
    if site.deployment.qdrant_url:
        await _index_remaining_events(site, progress)
    async with site.database.transaction() as connection:
        await VECTORS.drop(connection, site.live)
    return True


def _report_wait(state: RetryCallState, progress: GenerationProgress) -> None:
    if state.attempt_number == 1:
        progress.show_line(
            f"waiting up to {SWAP_TIMEOUT:.0f} s, because another process has the new vectors open"
        )


@asynccontextmanager
async def open_former_generation(site: Site, progress: GenerationProgress) -> AsyncIterator[GenerationReplay]:
    """Open the generation that was live before the last swap, for a replay.

    If it has vectors, they first get the names of the next generation's vectors, unless an earlier attempt
    has renamed them. The errors of `mnemon_infra.vectors.vector_index.open_index` propagate.

    Raises:
        RebuildBlocked: there is no former generation, its schema has another revision, or mnemon runs while
            the former vectors are of another embedding model.
        NameTooLong: the name of the live generation leaves no room for a suffix.
        nats.errors.Error, DatabaseUnavailable: a server does not answer.
    """
    async with generations.open_former_rows(site) as rows:
        if await VECTORS.load_position(rows.database, rows.schema) is None:
            yield GenerationReplay(rows, None)
            return
        source, to = (
            locate_generation(site.deployment, "former"),
            locate_generation(site.deployment, "next"),
        )
        if await has_vectors(source):
            if not await _have_same_model(source, site.deployment) and await is_embedder_running(
                site, progress
            ):
                raise RebuildBlocked(
                    "mnemon is running with a different embedding model from that of the former vectors",
                    "Stop mnemon, then run: mnemon rebuild --back{data}",
                )
            await generation_repository.drop_schema(site.database, to.database_schema)
            await drop_generation(to)
            await rename_generation(source, to)
        elif await site.find_generation(to.database_schema):
            # A later rebuild made these vectors; they are not the vectors that an earlier attempt has
            # renamed.
            await drop_generation(to)
            await generation_repository.drop_schema(site.database, to.database_schema)
        async with open_vector_replay(site, rows, to, await choose_embedding(site, to), progress) as vectors:
            yield GenerationReplay(rows, vectors)


async def _replace_existing_vectors(site: Site, reached: int, progress: GenerationProgress) -> None:
    to = locate_generation(site.deployment, "next")
    if await has_vectors(to):
        if not await _have_same_model(to, site.deployment):
            # Change the setting before the swap: after an interruption, no process mixes vectors of two
            # models.
            await set_embedding(site, await choose_embedding(site, to))
        await _replace_vectors(site, to, reached, progress)


async def _have_same_model(one: Deployment, other: Deployment) -> bool:
    first, second = await read_model_record(one), await read_model_record(other)
    return first.is_same_model(second) if first and second else first == second


async def _replace_vectors(site: Site, to: Deployment, reached: int, progress: GenerationProgress) -> None:
    owner = EdgeOwner(site.connection) if is_folder_open(site.deployment) else None
    async with open_index(to, await choose_embedding(site, to)) as vector_index:
        replay = VectorReplay(site.connection, site.database, site.live, vector_index, reached)
        await _index_delivered_events(site, replay, progress)
        if owner:
            await owner.pause_writers()
            await _index_delivered_events(site, replay, progress)
    if owner and to.vectors_folder:
        await owner.swap_folder(await asyncio.to_thread(to.vectors_folder.resolve))
    elif site.deployment.qdrant_url:
        await swap_server_collections(site.deployment, to)
        await announce_swap(site.connection)
    else:
        swap_closed_folder(site.deployment, to)


async def _index_delivered_events(site: Site, replay: VectorReplay, progress: GenerationProgress) -> None:
    """Replay the events that were delivered to `index` so far, into the new vectors.

    `index` may have written them only to the vectors that the new ones replace.
    """
    delivered = await read_delivered_position(site.connection.jetstream(), "index")
    position = max(replay.reached, delivered)
    await replay.replay_to(position, lambda reached: progress.report_vectors(reached, position))


async def _index_remaining_events(site: Site, progress: GenerationProgress) -> None:
    """Replay into the new collections the events that `index` wrote to the former ones during the swap."""
    reached = await VECTORS.load_position(site.database, site.live)
    assert reached is not None, "`swap_vectors` has found a position"
    async with open_index(site.deployment, await choose_embedding(site, site.deployment)) as vector_index:
        replay = VectorReplay(site.connection, site.database, site.live, vector_index, reached)
        for _ in range(MAX_PASSES):
            before = replay.reached
            await _index_delivered_events(site, replay, progress)
            if replay.reached == before:
                break
