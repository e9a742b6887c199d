"""Replay of the log into a generation's vectors, by the code of `index`; a later run can resume it."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from nats.aio.client import Client

from mnemon_consumers.index.decide import plan_batch
from mnemon_consumers.index.point_writer import write_batch
from mnemon_consumers.index.sweep import reconcile_points
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.streams.stream_reader import read_stream
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations.progress import VECTORS
from mnemon_infra.vectors.vector_index import VectorIndex

PAGE_SIZE: Final = 1000
"""Maximum number of events that are indexed together."""

SWEEP_CONCURRENCY: Final = 4
"""Maximum number of users whose points are swept at the same time: a sweep mostly waits for the rows."""

SWEEP_PAGES: Final = 50
"""Pages between two sweeps of users during a replay, so that the list of users stays short."""


class VectorReplay:
    """Replay of the log into the vectors of one generation.

    Attributes:
        index: the vectors, and the model that makes them.
        reached: log position up to which the vectors are filled.
    """

    def __init__(
        self, connection: Client, database: Database, schema: str, vector_index: VectorIndex, reached: int
    ) -> None:
        """Create a replay of vectors that are filled up to the log position `reached`.

        `schema` is the schema that records this position.
        """
        self.index = vector_index
        self.reached = reached
        self._connection = connection
        self._database = database
        self._schema = schema

    async def replay_to(self, position: int, report: Callable[[int], None] = lambda reached: None) -> None:
        """Index the log up to a position, and sweep the points of items that are gone by then.

        The rows must have reached the position. `report` is called with each position that the vectors reach.

        Raises:
            nats.errors.Error, DatabaseUnavailable, VectorsUnavailable, EmbeddingUnavailable: a server does
                not answer; the recorded position is correct.
        """
        pages = 0
        async with aclosing(
            read_stream(self._connection, LOG, after=self.reached, up_to=position, page=PAGE_SIZE)
        ) as reading:
            async for read in reading:
                batch = plan_batch([delivery for _, delivery in read])
                await write_batch(self.index, batch)
                await self.index.vectors.wait_until_optimised()
                await VECTORS.advance(self._database, self._schema, read[-1][1].sequence, batch.sweeps.keys())
                self.reached = read[-1][1].sequence
                report(self.reached)
                pages += 1
                if pages % SWEEP_PAGES == 0:
                    await self._sweep_owners()
        if position > self.reached:
            await VECTORS.advance(self._database, self._schema, position, ())
            self.reached = position
            report(position)
        await self._sweep_owners()

    async def _sweep_owners(self) -> None:
        while owners := await VECTORS.list_owners_to_sweep(self._database, self._schema):
            left = iter(owners)

            async def sweep_some() -> None:
                for owner in left:  # noqa: B023 (the tasks share one iterator)
                    await reconcile_points(self._database, self.index, owner)

            async with asyncio.TaskGroup() as group:
                for _ in range(SWEEP_CONCURRENCY):
                    group.create_task(sweep_some())
            await VECTORS.remove_owners(self._database, self._schema, owners)
