"""Replay of the log into a generation, page by page.

The generation records the position that it has reached. After an interruption, a replay continues there.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import aclosing
from typing import Final, NamedTuple

from nats.aio.client import Client

from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import Owner, build_event_filter
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.broker.streams.stream_reader import read_stream
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations import progress
from mnemon_infra.database.projections.rows import Rows
from mnemon_infra.database.projections.sweep import sweep_owners
from mnemon_infra.database.projections.writer import write_accepted_events

EVENTS_PER_PAGE: Final = 2000
"""Maximum number of events of a transaction: more events hardly save time and need more memory."""

WRITERS: Final = 2
"""Maximum number of pages in work: one is parsed while another is stored."""

SWEEPERS: Final = 2
"""Maximum number of transactions that remove content at the same time."""


class _PageWrite(NamedTuple):
    task: asyncio.Task[None]
    last: int
    watermarked: set[Owner]


class Replay:
    """Replay of the log into one generation, up to given positions.

    Attributes:
        reached: the position up to which the generation durably contains the log.
        events: number of events that this object has read; erased events leave positions without an event.
    """

    def __init__(self, connection: Client, database: Database, schema: str, reached: int) -> None:
        self.database = database
        self.schema = schema
        self.reached = reached
        self.events = 0
        self._connection = connection

    async def replay_until(self, position: int, report: Callable[[int], None] = lambda reached: None) -> None:
        """Write the log up to `position`, then remove content below watermarks and of items that have ended.

        Invalid events, and events that the database refuses, are left out: `persist` makes dead letters of
        them.

        `report` is called with each position that is reached.

        Raises:
            nats.errors.Error: the server does not answer; `reached` stays valid.
            DatabaseUnavailable: the database does not answer; `reached` stays valid.
        """
        page_writes: deque[_PageWrite] = deque()
        try:
            reading = read_stream(
                self._connection, LOG, after=self.reached, up_to=position, page=EVENTS_PER_PAGE
            )
            async with aclosing(reading) as answers:
                async for read in answers:
                    page = [delivery for _, delivery in read]
                    self.events += len(page)
                    if len(page_writes) == WRITERS:
                        await self._finish_page(page_writes.popleft(), report)
                    rows = Rows.from_deliveries(page)
                    task = asyncio.create_task(write_accepted_events(self.database, page, rows))
                    page_writes.append(_PageWrite(task, page[-1].sequence, rows.find_watermarked_owners()))
            while page_writes:
                await self._finish_page(page_writes.popleft(), report)
        finally:
            for each in page_writes:
                each.task.cancel()
        if position > self.reached:
            await self._record_progress(position, set(), report)
        await self._sweep_owners()

    async def apply_later_erasures(self) -> None:
        """Apply erasures beyond `reached`. Call this after the last `replay_until`.

        An erasure deletes rows in all generations, except rows of events that a replay has read but not yet
        written.

        Raises:
            nats.errors.Error, DatabaseUnavailable: a server does not answer; the call may be repeated.
        """
        erasures = build_event_filter("user.erased")
        async with aclosing(read_event_pages(self._connection, erasures, self.reached)) as later:
            async for page in later:
                await write_accepted_events(self.database, page)

    async def _finish_page(self, page: _PageWrite, report: Callable[[int], None]) -> None:
        await page.task
        await self._record_progress(page.last, page.watermarked, report)

    async def _record_progress(
        self, reached: int, watermarked: set[Owner], report: Callable[[int], None]
    ) -> None:
        await progress.ROWS.advance(self.database, self.schema, reached, watermarked)
        self.reached = reached
        report(reached)

    async def _sweep_owners(self) -> None:
        while owners := await progress.ROWS.list_owners_to_sweep(self.database, self.schema):
            async with asyncio.TaskGroup() as group:
                for first in range(SWEEPERS):
                    part = sweep_owners(self.database, owners[first::SWEEPERS], up_to=self.reached)
                    group.create_task(part)
            await progress.ROWS.remove_owners(self.database, self.schema, owners)
