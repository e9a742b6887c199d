"""Memory as of a former moment: which generation of the rows that is, and whether it may be asked."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple

from faststream.nats import NatsBroker
from nats.aio.client import Client

from mnemon_consumers.retrieve.memory import Memory
from mnemon_consumers.retrieve.search.service import Search
from mnemon_consumers.retrieve.snapshot_pool import SnapshotPool
from mnemon_consumers.retrieve.verbs.request_context import now
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.subjects import Owner, thing_filter
from mnemon_infra.broker.service import Refusal
from mnemon_infra.broker.streams.applied_position import first_from, log_end
from mnemon_infra.broker.streams.log_reader import last_position
from mnemon_infra.broker.streams.stream_reader import position_at
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations.generation_repository import as_of, positions_as_of
from mnemon_infra.database.migration import head_revision

SnapshotMoment = datetime | int
"""A time, or a log position."""


class View(NamedTuple):
    """What a question is put to. What is due by `now` has expired."""

    memory: Memory
    search: Search
    now: datetime


class SnapshotResolver:
    """Finds what to ask about a former moment. Generations are made by hand: `mnemon rebuild --until`."""

    def __init__(self, broker: NatsBroker, database: Database, live: str, opened: SnapshotPool) -> None:
        """`live` is the name of the live generation, which `database` is."""
        self._broker = broker
        self._database = database
        self._live = live
        self._opened = opened

    @asynccontextmanager
    async def at(self, owner: Owner, moment: SnapshotMoment, min_seq: int | None) -> AsyncIterator[View]:
        """A user's memory as it was then.

        Args:
            owner: whose.
            moment: of a time is meant all that the log had taken before it.
            min_seq: what is to be reflected.

        Raises:
            InvalidBody: it is not in the past, or before what is to be reflected.
            Refusal: there is no such generation, or not yet; or something of the user was erased since.
            DatabaseUnavailable, nats.errors.Error: one of the servers does not answer.
        """
        position, then = await self._resolved(moment)
        if min_seq is not None and min_seq > position:
            raise InvalidBody("min_seq", f"{min_seq} is not reflected as of position {position}")
        await self._require_not_erased(owner, position)
        reached = await self._found(position)
        try:
            async with self._opened.at(reached) as (memory, search):
                yield View(memory, search, then)
        except Exception:
            await self._found(position)  # whatever it was: it may have been dropped
            raise

    async def _resolved(self, moment: SnapshotMoment) -> tuple[int, datetime]:
        """The log position that is meant, and when that was."""
        if isinstance(moment, datetime):
            if moment > now():
                raise InvalidBody("as_of", f"{moment:%Y-%m-%dT%H:%M:%SZ} is yet to come")
            position = await position_at(self._connection, moment)
        else:
            position = moment
        end = await log_end(self._connection.jetstream())
        if not 0 < position <= end:
            raise InvalidBody(
                "as_of",
                f"there is nothing as of position {position}: the log "
                + (f"goes from 1 to {end}" if end else "is empty"),
            )
        if isinstance(moment, datetime):
            return position, moment
        taken = await first_from(self._connection.jetstream(), position)
        return position, taken[1] if taken else now()

    async def _require_not_erased(self, owner: Owner, position: int) -> None:
        """The rows of then are from before the erasure, and nobody goes through them."""
        erased = await last_position(self._connection, thing_filter(*owner, "user"))
        if erased > position:
            raise Refusal(
                "refused",
                f"as_of: something of the user was erased at position {erased}; nothing from before is shown",
            )

    async def _found(self, position: int) -> int:
        """The position of the generation to ask, which is complete."""
        positions = await positions_as_of(self._database, self._live)
        await self._opened.keep(positions)
        fitting = await self._fitting(positions, position)
        generation = await as_of(self._database, self._live, fitting) if fitting else None
        if fitting is None or generation is None or not generation.is_made_here:
            raise Refusal(
                "not_found",
                f"as_of: there are no rows as of position {position}; they are made by "
                f"`mnemon rebuild --until {position}`",
            )
        if not generation.is_complete or generation.revision != head_revision():
            raise Refusal(
                "unavailable",
                f"as_of: the rows as of position {fitting} are not complete, or of another version; they are "
                f"once `mnemon rebuild --until {fitting}` has ended",
                retryable=True,
            )
        return fitting

    async def _fitting(self, positions: Sequence[int], position: int) -> int | None:
        """The same position, or a former one after which the log has nothing up to there.

        What is erased leaves gaps in the log, so that a time may come to mean a later position.
        """
        nearest = max((each for each in positions if each <= position), default=None)
        if nearest is None or nearest == position:
            return nearest
        following = await first_from(self._connection.jetstream(), nearest + 1)
        return nearest if following is None or following[0] > position else None

    @property
    def _connection(self) -> Client:
        connection: Client = self._broker.config.connection_state.connection
        return connection
