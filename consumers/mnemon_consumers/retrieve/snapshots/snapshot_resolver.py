"""Snapshot resolver: finds the snapshot for a former moment, and checks that it may be used."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search.service import Search
from mnemon_consumers.retrieve.snapshots.snapshot_pool import SnapshotPool
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.subjects import Owner, build_thing_filter
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.service import Refusal
from mnemon_infra.broker.streams.applied_position import find_first_event_from, read_log_end
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.broker.streams.stream_reader import find_moved_position, find_position
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations.generation_repository import describe_snapshot, list_snapshot_positions
from mnemon_infra.database.migration import find_head_revision
from mnemon_infra.settings.store import LiveSettings

SnapshotMoment = datetime | int
"""A time, or a log position."""


class MemoryView(NamedTuple):
    """Memory and search that answer a request. Facts that expire at or before `now` count as expired."""

    memory: Memory
    search: Search
    now: datetime


class SnapshotResolver:
    """Finds the snapshot of a former moment. Snapshots are made on command: `mnemon rebuild --until`."""

    def __init__(
        self, broker: Broker, database: Database, live: str, pool: SnapshotPool, settings: LiveSettings
    ) -> None:
        """Create the resolver; `live` is the name of the live generation, which `database` reads."""
        self._settings = settings
        self._broker = broker
        self._database = database
        self._live_schema = live
        self._pool = pool

    @asynccontextmanager
    async def open_view(
        self, owner: Owner, moment: SnapshotMoment, min_seq: int | None
    ) -> AsyncIterator[MemoryView]:
        """Yield a user's memory as it was at a former moment.

        If `moment` is a time, the memory has every event that the log stored before it.

        Raises:
            InvalidBody: the moment is in the future, not in the log, or before `min_seq`.
            Refusal: the snapshot does not exist, is incomplete or of another version, or content of the user
                was erased later.
            DatabaseUnavailable, nats.errors.Error: PostgreSQL or NATS does not answer.
        """
        position, then = await self._resolve_moment(owner[0], moment)
        if min_seq is not None and min_seq > position:
            raise InvalidBody(
                "min_seq",
                f"{min_seq} is later than `as_of`, which is position {position}; omit `min_seq`, or give a "
                "later `as_of`",
            )
        await self._require_not_erased(owner, position)
        reached = await self._find_snapshot(position)
        try:
            async with self._pool.open_snapshot(reached) as (memory, search):
                yield MemoryView(memory, search, then)
        except Exception:
            # The error may come from a snapshot that was dropped meanwhile.
            await self._find_snapshot(position)
            raise

    async def _resolve_moment(self, tenant: str, moment: SnapshotMoment) -> tuple[int, datetime]:
        """Return the log position of a moment, and its time.

        The time of a log position is that of the first event from the position on; without an event, the
        current time.

        Raises:
            InvalidBody: the moment is in the future, or not in the log.
        """
        if isinstance(moment, datetime):
            if moment > datetime.now(UTC):
                raise InvalidBody("as_of", f"{moment:%Y-%m-%dT%H:%M:%SZ} is in the future; give a past time")
            position = await find_position(self._broker.connection, moment)
            residence = self._settings.get_residence(tenant)
            if residence is not None and residence.first and position < residence.last:
                position = await find_moved_position(
                    self._broker.connection, tenant, moment, position, residence.first, residence.last
                )
        else:
            position = moment
        end = await read_log_end(self._broker.stream_context)
        if not position and (first := await find_first_event_from(self._broker.stream_context, 1)):
            raise InvalidBody(
                "as_of", f"the log begins at {first[1]:%Y-%m-%dT%H:%M:%SZ}; give a later time or position"
            )
        if not 0 < position <= end:
            raise InvalidBody(
                "as_of",
                f"position {position} is not in the log, which "
                + (f"goes from 1 to {end}; give one of these positions" if end else "is empty; omit `as_of`"),
            )
        if isinstance(moment, datetime):
            return position, moment
        taken = await find_first_event_from(self._broker.stream_context, position)
        return position, taken[1] if taken else datetime.now(UTC)

    async def _require_not_erased(self, owner: Owner, position: int) -> None:
        """Refuse a moment before an erasure of the user, or of one of the user's conversations.

        Until the erasure is finished, the snapshot has the erased rows; after that, it lacks them.

        Raises:
            Refusal: an erasure has a higher log position than `position`.
        """
        erased = await read_last_position(self._broker.connection, build_thing_filter(*owner, "user"))
        if erased > position:
            raise Refusal(
                "refused",
                f"as_of: content of the user was erased at position {erased}; give this position, a later "
                "one, or a later time",
            )

    async def _find_snapshot(self, position: int) -> int:
        """Return the position of a complete snapshot that has exactly the events up to `position`.

        Raises:
            Refusal: no such snapshot exists, or it is incomplete or of another version.
        """
        positions = await self._database.run_query(list_snapshot_positions(self._live_schema))
        await self._pool.retain_snapshots(positions)
        fitting = await self._find_fitting_snapshot(positions, position)
        generation = (
            await self._database.run_query(describe_snapshot(self._live_schema, fitting)) if fitting else None
        )
        if fitting is None or generation is None or not generation.is_made_here:
            raise Refusal(
                "not_found",
                f"as_of: no snapshot exists as of position {position}; an operator makes it with "
                f"`mnemon rebuild --until {position}`",
            )
        if not generation.is_complete or generation.revision != find_head_revision():
            raise Refusal(
                "unavailable",
                f"as_of: the snapshot as of position {fitting} is incomplete or of another version; repeat "
                f"the request after `mnemon rebuild --until {fitting}`",
                retryable=True,
            )
        return fitting

    async def _find_fitting_snapshot(self, positions: Sequence[int], position: int) -> int | None:
        """Return the position of a snapshot that has exactly the events up to `position`; None without one.

        Erasures leave gaps in the log, so a time may resolve to a later position than before.
        """
        nearest = max((each for each in positions if each <= position), default=None)
        if nearest is None or nearest == position:
            return nearest
        following = await find_first_event_from(self._broker.stream_context, nearest + 1)
        return nearest if following is None or following[0] > position else None
