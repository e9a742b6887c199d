"""Replay of the log into a generation: page by page, in little memory, resuming where it stopped."""

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
from mnemon_infra.broker.streams.log_reader import read_pages
from mnemon_infra.broker.streams.stream_reader import read_stream
from mnemon_infra.database.engine import Database, DatabaseRefused
from mnemon_infra.database.generations import generation_repository
from mnemon_infra.database.projections.rows import Rows, row_of
from mnemon_infra.database.projections.sweep import sweep_together
from mnemon_infra.database.projections.writer import write
from mnemon_infra.delivery import Delivery

PAGE: Final = 2000
"""Events of a transaction: with more, PostgreSQL is hardly faster, and memory use grows."""

WRITERS: Final = 2
"""Pages that are written at the same time: one is parsed while the other is stored."""

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
        reached: the position up to which the log is durably in it.
        events: number of events that this object has read for it; erased events leave positions without one.
    """

    def __init__(self, connection: Client, database: Database, schema: str, reached: int) -> None:
        self.database = database
        self.schema = schema
        self.reached = reached
        self.events = 0
        self._connection = connection

    async def reach(self, position: int, at: Callable[[int], None] = lambda reached: None) -> None:
        """Write the log up to a position, and remove the content that has ended by then.

        Invalid events are left out: they are dead letters already.

        Args:
            position: the last position to write.
            at: called with each position that is reached.

        Raises:
            nats.errors.Error: the server does not answer; the noted position stays valid.
            DatabaseUnavailable: the database does not answer; the noted position stays valid.
        """
        under_way: deque[_UnderWay] = deque()
        try:
            reading = read_stream(self._connection, LOG, after=self.reached, up_to=position, page=PAGE)
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
        """Apply erasures beyond the position reached, which this generation would otherwise never learn of.

        It is for a generation that goes no further. An erasure visits all generations, but finds no rows that
        were read and not yet written.

        Raises:
            nats.errors.Error, DatabaseUnavailable: the call may be repeated.
        """
        erasures = event_filter("user.erased")
        async with aclosing(read_pages(self._connection, erasures, self.reached)) as later:
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
    """Return the rows of events; an invalid event has none."""
    rows = Rows()
    for delivery in deliveries:
        try:
            row = row_of(delivery)
        except (InvalidSubject, UnknownEvent, InvalidBody):
            continue
        if row is not None:
            rows.add(row)
    return rows
