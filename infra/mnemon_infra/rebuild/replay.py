"""From the log into a generation: page by page, in little memory, and on from where it was left."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from nats.aio.client import Client

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import InvalidSubject, Owner, event_filter
from mnemon_infra.broker.streams.log_reader import pages
from mnemon_infra.broker.streams.stream_reader import whole
from mnemon_infra.database.engine import Database, DatabaseRefused
from mnemon_infra.database.generations import generation_repository
from mnemon_infra.database.projections.rows import Rows, row_of
from mnemon_infra.database.projections.sweep import sweep_together
from mnemon_infra.database.projections.writer import write
from mnemon_infra.delivery import Delivery

PAGE: Final = 2000
"""Events of a transaction: beyond, PostgreSQL is hardly faster, and the memory grows."""

WRITERS: Final = 2
"""Pages that are written at the same time: one is taken apart while the other is stored."""

SWEEPERS: Final = 2
"""Transactions that remove content at the same time."""


class _UnderWay(NamedTuple):
    task: asyncio.Task[None]
    last: int
    watermarked: set[Owner]


class Replay:
    """Brings one generation up to positions of the log.

    Attributes:
        database: the generation.
        schema: its name.
        reached: the log up to here is in it, for good.
        events: that were read for it here; what is erased leaves positions without one.
    """

    def __init__(self, connection: Client, database: Database, schema: str, reached: int) -> None:
        self.database = database
        self.schema = schema
        self.reached = reached
        self.events = 0
        self._connection = connection

    async def reach(self, position: int, at: Callable[[int], None] = lambda reached: None) -> None:
        """Write what the log has up to a position, and remove what is gone by then.

        What cannot be read is left out: it is a dead letter already.

        Args:
            position: the last that is written.
            at: told how far it is.

        Raises:
            nats.errors.Error: the server does not answer; what is written down as reached, is.
            DatabaseUnavailable: the same of the database.
        """
        under_way: deque[_UnderWay] = deque()
        try:
            reading = whole(self._connection, LOG, after=self.reached, up_to=position, page=PAGE)
            async with aclosing(reading) as answers:
                async for read in answers:
                    page = [delivery for _, delivery in read]
                    self.events += len(page)
                    if len(under_way) == WRITERS:
                        await self._written(under_way.popleft(), at)
                    rows = rows_of(page)
                    task = asyncio.create_task(self._write(page, rows))
                    under_way.append(_UnderWay(task, page[-1].sequence, rows.watermarked()))
            while under_way:
                await self._written(under_way.popleft(), at)
        finally:
            for each in under_way:
                each.task.cancel()
        if position > self.reached:
            await self._note(position, set(), at)
        await self._sweep()

    async def forget_later(self) -> None:
        """Remove what was erased beyond where it is, of which it is never told where it goes no further.

        Who erases goes through all generations, and finds no rows that were read but not yet written.

        Raises:
            nats.errors.Error, DatabaseUnavailable: it may be done again.
        """
        erasures = event_filter("user.erased")
        async with aclosing(pages(self._connection, erasures, self.reached)) as later:
            async for page in later:
                rows = rows_of(page)
                await self._write(page, rows)

    async def _written(self, page: _UnderWay, at: Callable[[int], None]) -> None:
        await page.task
        await self._note(page.last, page.watermarked, at)

    async def _note(self, reached: int, watermarked: set[Owner], at: Callable[[int], None]) -> None:
        await generation_repository.note(self.database, reached, watermarked)
        self.reached = reached
        at(reached)

    async def _write(self, deliveries: Sequence[Delivery], rows: Rows) -> None:
        try:
            await write(self.database, rows)
        except DatabaseRefused:
            if len(deliveries) > 1:
                half = len(deliveries) // 2
                for part in deliveries[:half], deliveries[half:]:
                    await self._write(part, rows_of(part))

    async def _sweep(self) -> None:
        while owners := await generation_repository.to_sweep(self.database):
            async with asyncio.TaskGroup() as group:
                for first in range(SWEEPERS):
                    part = sweep_together(self.database, owners[first::SWEEPERS], up_to=self.reached)
                    group.create_task(part)
            await generation_repository.swept(self.database, owners)


def rows_of(deliveries: Sequence[Delivery]) -> Rows:
    """The rows of events; what cannot be read has none."""
    rows = Rows()
    for delivery in deliveries:
        try:
            row = row_of(delivery)
        except (InvalidSubject, UnknownEvent, InvalidBody):
            continue
        if row is not None:
            rows.add(row)
    return rows
