"""Generations of rows and vectors, filled together from the same log."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple, Protocol

from mnemon.operations.rebuild.embedding import choose_embedding
from mnemon.operations.rebuild.vector_replay import VectorReplay
from mnemon_contracts.settings.groups import Embedding
from mnemon_infra.config import Deployment
from mnemon_infra.database.generations.progress import VECTORS
from mnemon_infra.generation_names import GenerationKind
from mnemon_infra.health.consistency import find_lost_collections, list_owners_to_sweep
from mnemon_infra.models.words import bm25
from mnemon_infra.rebuild import generations
from mnemon_infra.rebuild.generations import SWAP_DISTANCE, RebuildProgress, Site
from mnemon_infra.rebuild.replay import Replay
from mnemon_infra.vectors.generations import (
    drop_generation,
    has_vectors,
    locate_generation,
    read_model_record,
)
from mnemon_infra.vectors.port import VectorsOutdated
from mnemon_infra.vectors.vector_index import VectorIndex, open_index


class GenerationProgress(RebuildProgress, Protocol):
    """Receiver of the progress of rows and vectors."""

    def report_vectors(self, reached: int, up_to: int) -> None:
        """Report the log position that the vectors have reached, and the position to reach."""


class GenerationReplay(NamedTuple):
    """Replay of the log into the rows of a generation that is not live, and into its vectors.

    `vectors` is None if the generation has no vectors.
    """

    rows: Replay
    vectors: VectorReplay | None

    async def replay_to(self, position: int, progress: GenerationProgress) -> None:
        """Replay the log into rows and vectors up to a log position.

        Raises:
            nats.errors.Error, DatabaseUnavailable, VectorsUnavailable, EmbeddingUnavailable: a server does
                not answer; another call continues from the position reached.
        """
        await self.rows.replay_until(position, lambda reached: progress.report_rows(reached, position))
        if self.vectors:
            await self.vectors.replay_to(position, lambda reached: progress.report_vectors(reached, position))

    async def replay_to_end(self, site: Site, progress: GenerationProgress) -> None:
        """Replay to the end of the log, until a pass has at most `SWAP_DISTANCE` positions to replay.

        The errors of `replay_to` propagate.
        """
        while True:
            end = await site.load_log_end()
            reached = min(self.rows.reached, self.vectors.reached if self.vectors else end)
            await self.replay_to(end, progress)
            if end - reached <= SWAP_DISTANCE:
                return


@asynccontextmanager
async def open_generation(
    site: Site,
    kind: GenerationKind,
    progress: GenerationProgress,
    up_to: int | None = None,
    embedding: Embedding | None = None,
) -> AsyncIterator[GenerationReplay]:
    """Open a generation to fill: a new generation, or a generation that an earlier attempt has left.

    The errors of `mnemon_infra.vectors.vector_index.open_index` propagate.

    Args:
        site: the deployment and its connections.
        kind: the kind of the generation.
        progress: receives the progress.
        up_to: last log position of the generation; None for the end of the log.
        embedding: the model that makes its vectors; None means the model of the live vectors.

    Raises:
        RebuildBlocked: a schema with the name of the generation was not created by a rebuild.
        NameTooLong: the name of the live generation leaves no room for a suffix.
        nats.errors.Error: the broker does not answer.
        DatabaseUnavailable: the database cannot answer now.
    """
    async with AsyncExitStack() as ends:
        rows = await ends.enter_async_context(generations.open_row_generation(site, kind, progress, up_to))
        if not await has_vectors(site.deployment):
            yield GenerationReplay(rows, None)
            return
        # The model of the live vectors: the settings may name another one for the next start.
        chosen = embedding or await choose_embedding(site, site.deployment)
        generation = locate_generation(site.deployment, kind, up_to)
        made_by = await read_model_record(generation)
        if made_by and made_by.terms != bm25.VERSION:
            progress.show_line(
                f"the vectors of {rows.schema} have outdated term weights: they are indexed from the start"
            )
            await drop_generation(generation)
        yield GenerationReplay(
            rows,
            await ends.enter_async_context(open_vector_replay(site, rows, generation, chosen, progress)),
        )


@asynccontextmanager
async def open_vector_replay(
    site: Site, rows: Replay, generation: Deployment, embedding: Embedding, progress: GenerationProgress
) -> AsyncIterator[VectorReplay]:
    """Open the vectors of a generation: the vectors that an earlier attempt began, or new vectors.

    The errors of `mnemon_infra.vectors.vector_index.open_index` propagate.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    async with AsyncExitStack() as ends:
        reached = await VECTORS.load_position(rows.database, rows.schema)
        vector_index: VectorIndex | None = None
        if reached is not None and await has_vectors(generation):
            try:
                vector_index = await ends.enter_async_context(open_index(generation, embedding))
            except VectorsOutdated:
                progress.show_line(
                    f"the vectors of {rows.schema} are of another model: they are indexed from the start"
                )
        if reached is None or vector_index is None:
            reached = 0
            await drop_generation(generation)
            await VECTORS.restart(rows.database, rows.schema)
            vector_index = await ends.enter_async_context(open_index(generation, embedding))
        elif lost := await find_lost_collections(rows.database, vector_index.vectors):
            owners = await list_owners_to_sweep(rows.database, lost)
            await VECTORS.advance(rows.database, rows.schema, reached, owners)
        yield VectorReplay(site.connection, rows.database, rows.schema, vector_index, reached)
