"""Rebuilds of rows while consumers write the live generation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from psycopg.sql import SQL

from mnemon_infra.database.generations.generation_repository import drop_schema
from mnemon_infra.rebuild.generations import Site, catch_up_with_log, open_row_generation
from mnemon_infra.rebuild.replay import Replay
from mnemon_infra.rebuild.row_verification import RowVerification, RowVerifier


class RebuildReport:
    """Record of the progress that a rebuild reports: positions of rows and of vectors, and lines of text."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.vector_positions: list[int] = []
        self.lines: list[str] = []

    def report_rows(self, reached: int, up_to: int) -> None:
        self.positions.append(reached)

    def report_vectors(self, reached: int, up_to: int) -> None:
        self.vector_positions.append(reached)

    def show_line(self, line: str) -> None:
        self.lines.append(line)


@asynccontextmanager
async def rebuilt(place: Site, told: RebuildReport) -> AsyncIterator[Replay]:
    """Rebuild the rows of the generation `next` from the whole log, and yield the replay."""
    async with open_row_generation(place, "next", told) as replay:
        await catch_up_with_log(place, replay, told)
        yield replay


async def verdict_on(place: Site, told: RebuildReport, timeout_seconds: float = 60) -> RowVerification:
    """Rebuild the rows, compare them with the live rows, and drop them; return the result."""
    async with open_row_generation(place, "next", told) as replay:
        verdict = await RowVerifier(place, replay, told, timeout_seconds=timeout_seconds).verify()
    await drop_schema(place.database, replay.schema)
    return verdict


async def applied(place: Site, seq: int = 0) -> None:
    """Wait until the live generation has the log up to the position `seq`; 0: up to its end."""
    async with asyncio.timeout(60):
        while await place.load_applied_position() < (seq or await place.load_log_end()):
            await asyncio.sleep(0.02)


async def change(place: Site, statement: str) -> None:
    async with place.database.transaction() as connection:
        assert (await connection.execute(SQL(statement))).rowcount == 1
