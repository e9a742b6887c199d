"""From the log into the vectors of a generation: by the code that indexes, and on from where it was left."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from nats.aio.client import Client

from mnemon_consumers.index.decide import plan
from mnemon_consumers.index.point_writer import write
from mnemon_consumers.index.sweep import look_through
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.streams.stream_reader import whole
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations import vector_progress
from mnemon_infra.vectors.vector_index import VectorIndex

PAGE: Final = 1000
"""Events that are indexed at a time."""

SWEEPERS: Final = 4
"""Users whose points are looked through at the same time: most of it is waiting for the rows."""

UNSWEPT: Final = 50
"""Pages after which users are looked through before the end: the list of them is not to grow with the log."""


class VectorReplay:
    """Brings the vectors of one generation up to positions of the log.

    Attributes:
        finding: its vectors, and the model that makes them.
        reached: the log up to here is in them.
    """

    def __init__(
        self, connection: Client, database: Database, schema: str, finding: VectorIndex, reached: int
    ) -> None:
        """`database` has the rows that go with the vectors; how far these are stands in its `schema`."""
        self.finding = finding
        self.reached = reached
        self._connection = connection
        self._database = database
        self._schema = schema

    async def reach(self, position: int, at: Callable[[int], None] = lambda reached: None) -> None:
        """Index what the log has up to a position, and remove what is gone by then.

        Args:
            position: the last that is indexed; the rows are as far at least.
            at: told how far it is.

        Raises:
            nats.errors.Error, DatabaseUnavailable, VectorsUnavailable, EmbeddingUnavailable: what is written
                down as reached, is.
        """
        pages = 0
        async with aclosing(
            whole(self._connection, LOG, after=self.reached, up_to=position, page=PAGE)
        ) as reading:
            async for read in reading:
                batch = plan([delivery for _, delivery in read])
                await write(self.finding, batch)
                await self.finding.vectors.organised()
                await vector_progress.note(
                    self._database, self._schema, read[-1][1].sequence, batch.sweeps.keys()
                )
                self.reached = read[-1][1].sequence
                at(self.reached)
                pages += 1
                if pages % UNSWEPT == 0:
                    await self._sweep()
        if position > self.reached:
            await vector_progress.note(self._database, self._schema, position, ())
            self.reached = position
            at(position)
        await self._sweep()

    async def _sweep(self) -> None:
        while owners := await vector_progress.owed(self._database, self._schema):
            left = iter(owners)

            async def sweep_some() -> None:
                for owner in left:  # noqa: B023 (they share one list)
                    await look_through(self._database, self.finding, owner)

            async with asyncio.TaskGroup() as group:
                for _ in range(SWEEPERS):
                    group.create_task(sweep_some())
            await vector_progress.settled(self._database, self._schema, owners)
