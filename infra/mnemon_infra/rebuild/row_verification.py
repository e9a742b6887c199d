"""Verification of the live generation: row for row, against a generation that was just replayed."""

import asyncio
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from sqlalchemy import Table

from mnemon_infra.broker.streams.triggers import has_waiting_sweep
from mnemon_infra.database.generations.comparison import ComparedRows, Difference, RowKey, compare_page
from mnemon_infra.database.generations.generation_repository import PROJECTIONS
from mnemon_infra.rebuild.generations import RebuildProgress, Site
from mnemon_infra.rebuild.replay import Replay

MOST_DIFFERENCES: Final = 20
"""Maximum number of differences that are kept for display; all differences are counted."""

MOST_COMPARISONS: Final = 10
"""Maximum number of times that a page with differences is compared again, because generations change."""

SETTLE_WAIT: Final = 20.0
"""Maximum seconds for `persist` to reach the end of the log, and to sweep."""

_PAUSE: Final = 0.1


@dataclass(slots=True)
class RowVerification:
    """Result of a verification.

    Attributes:
        position: the log position up to which both generations were compared.
        rows: number of compared rows of the live generation, by table.
        counts: number of differences, by table; tables without differences are absent.
        first: the first `MOST_DIFFERENCES` differences.
        is_settled: True if `persist` had reached the end of the log, and had no sweep left.
    """

    position: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    first: list[Difference] = field(default_factory=list)
    is_settled: bool = True

    @property
    def differences(self) -> int:
        return sum(self.counts.values())


class RowVerifier:
    """Verifier of the live generation, which compares its rows with those of a replay at the same position.

    Both generations may change during the comparison: rows that differ are compared again later.
    """

    def __init__(
        self, site: Site, replay: Replay, progress: RebuildProgress, *, timeout_seconds: float = SETTLE_WAIT
    ) -> None:
        self._site = site
        self._replay = replay
        self._progress = progress
        self._timeout_seconds = timeout_seconds
        self._verdict = RowVerification()

    async def verify(self) -> RowVerification:
        """Compare all projections, and return the result.

        Raises:
            nats.errors.Error, DatabaseUnavailable: one of the servers does not answer.
        """
        await self._replay_to_applied()
        await self.catch_up()
        for table in PROJECTIONS:
            await self._compare_table(table)
        return self._verdict

    async def _compare_table(self, table: Table) -> None:
        verdict = self._verdict
        rows = count = 0
        after: RowKey | None = None
        while True:
            page = await self._compare_page(table, after)
            rows += page.rows
            count += len(page.differences)
            verdict.first += page.differences[: MOST_DIFFERENCES - len(verdict.first)]
            after = page.last
            if after is None:
                break
        verdict.rows[table.name] = rows
        if count:
            verdict.counts[table.name] = count

    async def _compare_page(self, table: Table, after: RowKey | None) -> ComparedRows:
        page = await self._compare_rows(table, after)
        for _ in range(MOST_COMPARISONS):
            if not page.differences:
                break
            before = self._verdict.position
            await self.catch_up()
            page = await self._compare_rows(table, after)
            if self._verdict.position == before:
                break
        return page

    async def _compare_rows(self, table: Table, after: RowKey | None) -> ComparedRows:
        schemas = self._site.live, self._replay.schema
        return await self._replay.database.run_query(
            compare_page(table, *schemas, after, self._verdict.position)
        )

    async def catch_up(self) -> None:
        """Wait until `persist` has no event and no sweep left, then replay the events that it has applied.

        The wait ends at the timeout, even if `persist` has work left.

        Raises:
            nats.errors.Error, DatabaseUnavailable: one of the servers does not answer.
        """
        end = monotonic() + self._timeout_seconds
        # The server does not announce that a consumer has nothing left, so this polls.
        while not (settled := await self._is_settled()) and monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(_PAUSE)
        await self._replay_to_applied()
        self._verdict.is_settled = settled

    async def _replay_to_applied(self) -> None:
        """Replay just up to the live generation's applied position: later events may remove content."""
        applied = await self._site.load_applied_position()
        await self._replay.replay_until(applied, lambda reached: self._progress.report_rows(reached, applied))
        self._verdict.position = min(applied, self._replay.reached)

    async def _is_settled(self) -> bool:
        return (
            not await has_waiting_sweep(self._site.connection, "persist")
            and await self._site.load_applied_position() >= await self._site.load_log_end()
        )
