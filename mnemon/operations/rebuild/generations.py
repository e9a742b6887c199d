"""Generations of rows and vectors together: the same log gives both."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple, Protocol

from mnemon.operations.rebuild.embedding import embedding_of
from mnemon.operations.rebuild.vector_replay import VectorReplay
from mnemon_contracts.settings.groups import Embedding
from mnemon_infra.config import Deployment
from mnemon_infra.consistency.missing_points import lost_collections, owners_to_look_through
from mnemon_infra.database.generations import vector_progress
from mnemon_infra.database.generations.generation_repository import GenerationKind
from mnemon_infra.rebuild import generations
from mnemon_infra.rebuild.generations import NEAR, RebuildProgress, Site
from mnemon_infra.rebuild.replay import Replay
from mnemon_infra.vectors.generations import are_there, drop_generation, of_generation
from mnemon_infra.vectors.port import VectorsOutdated
from mnemon_infra.vectors.vector_index import VectorIndex, opened


class Watching(RebuildProgress, Protocol):
    """Who watches rows and vectors."""

    def vectors_at(self, reached: int, up_to: int) -> None:
        """So far the vectors are, and so far they go."""


class Made(NamedTuple):
    """A generation to be filled. `vectors` is None where the deployment has none."""

    rows: Replay
    vectors: VectorReplay | None

    async def reach(self, position: int, progress: Watching) -> None:
        """Bring both to a log position.

        Raises:
            nats.errors.Error, DatabaseUnavailable, VectorsUnavailable, EmbeddingUnavailable: it can be
                gone on with from where it is.
        """
        await self.rows.reach(position, lambda reached: progress.at(reached, position))
        if self.vectors:
            await self.vectors.reach(position, lambda reached: progress.vectors_at(reached, position))

    async def catch_up(self, place: Site, progress: Watching) -> None:
        """Bring both to the end of the log, or nearly so where more comes all the time.

        Raises:
            As `reach`.
        """
        while True:
            end = await place.log_end()
            reached = min(self.rows.reached, self.vectors.reached if self.vectors else end)
            await self.reach(end, progress)
            if end - reached <= NEAR:
                return


@asynccontextmanager
async def made(
    place: Site,
    kind: GenerationKind,
    progress: Watching,
    up_to: int | None = None,
    embedding: Embedding | None = None,
) -> AsyncIterator[Made]:
    """A generation to be filled: a new one, or one that an earlier attempt has left.

    Args:
        place: where.
        kind: what it is to be.
        progress: who watches.
        up_to: nothing beyond is wanted in it.
        embedding: the model that makes its vectors; None: that of the live ones.

    Raises:
        InTheWay: something else has its name.
        DatabaseUnavailable: the database cannot do it now.
        And what `mnemon_infra.vectors.vector_index.opened` raises.
    """
    async with AsyncExitStack() as ends:
        rows = await ends.enter_async_context(generations.made(place, kind, progress, up_to))
        if not await are_there(place.deployment):
            yield Made(rows, None)
            return
        # The live ones' own model, whatever the settings say for the time to come.
        chosen = embedding or await embedding_of(place, place.deployment)
        generation = of_generation(place.deployment, kind, up_to)
        yield Made(
            rows, await ends.enter_async_context(vectors_of(place, rows, generation, chosen, progress))
        )


@asynccontextmanager
async def vectors_of(
    place: Site, rows: Replay, generation: Deployment, embedding: Embedding, progress: Watching
) -> AsyncIterator[VectorReplay]:
    """The vectors of a generation, to be filled: those that were begun, or new ones.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
        And what `mnemon_infra.vectors.vector_index.opened` raises.
    """
    async with AsyncExitStack() as ends:
        reached = await vector_progress.reached(rows.database, rows.schema)
        finding: VectorIndex | None = None
        if reached is not None and await are_there(generation):
            try:
                finding = await ends.enter_async_context(opened(generation, embedding))
            except VectorsOutdated:
                progress.say(
                    f"the vectors of {rows.schema} are of another model: they are indexed from the start"
                )
        if reached is None or finding is None:
            reached = 0
            await drop_generation(generation)
            await vector_progress.begin(rows.database, rows.schema)
            finding = await ends.enter_async_context(opened(generation, embedding))
        elif lost := await lost_collections(rows.database, finding.vectors):
            owners = await owners_to_look_through(rows.database, lost)
            await vector_progress.note(rows.database, rows.schema, reached, owners)
        yield VectorReplay(place.connection, rows.database, rows.schema, finding, reached)
