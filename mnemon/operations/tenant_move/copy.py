"""Copy of a tenant's events from one log to another, in order, with their positions mapped."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

import nats.errors
from nats.aio.client import Client
from nats.js.errors import APIError, NotFoundError

from mnemon.operations.tenant_move.deployment import MoveRefused, stream_log
from mnemon.operations.tenant_move.events import (
    SourceEvent,
    build_copy_prefix,
    build_moved_message,
    has_prefix,
    parse_source_event,
)
from mnemon.operations.tenant_move.positions import PositionMap, list_span_starts
from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_owner_filter, build_tenant_event_filter, find_origin
from mnemon_infra.broker.provisioning.restoration import (
    BATCH_BYTES,
    BATCH_HEADROOM,
    ExactMessage,
    MessageTooLarge,
    store_batch,
)
from mnemon_infra.broker.streams.log_writer import BATCH, is_duplicate
from mnemon_infra.broker.streams.stream_reader import StreamMessage
from mnemon_infra.delivery import MOVED, parse_moved

TRIES: Final = 30
"""Maximum number of attempts to store a batch."""

RETRY_SECONDS: Final = 0.5
"""Seconds before each attempt from the third on; the second attempt follows the first at once."""

CopyProgress = Callable[[int, int], None]
"""Function that receives the position reached in the source's log, and the last position to copy."""

EventFilter = Callable[[SourceEvent], Awaitable[bool]]
"""Function that returns whether an event is withheld, so that it stays in the source's log alone."""


async def withhold_none(_: SourceEvent) -> bool:
    """Return False for every event, so that all are copied."""
    return False


class TenantCopy:
    """Copy of the events of a tenant. Headers of the copies tell which events the target's log has already.

    Attributes:
        positions: positions of the copied events in both logs.
        foreign: number of the tenant's events in the target's log that are not copies of this move.
        reached: position of the source's log up to which this object has copied.
        first_copy: position of the first copy in the target's log; 0 if there is no copy.
        last_copy: position of the last copy in the target's log; 0 if there is no copy.
        changed: users of whom events were copied since the caller last cleared the set.
    """

    def __init__(self, source: Client, target: Client, tenant: str, move_id: str, is_returning: bool) -> None:
        self.positions = PositionMap()
        self.foreign = 0
        self.changed: set[str] = set()
        self.first_copy = self.last_copy = 0
        self._source, self._target, self._tenant = source, target, tenant
        self._pattern = build_owner_filter(tenant)
        self._is_returning = is_returning
        self.prefix = build_copy_prefix(move_id, is_returning=is_returning)
        """Beginning of the message ids of the copies in the target's log."""
        self._opposite_prefix = build_copy_prefix(move_id, is_returning=not is_returning)
        """Beginning of the message ids of copies in the source's log that came from the target's log.

        In a revert, these are the copies of the move; in a move, those of an abandoned revert.
        """
        self.reached = 0

    async def load_positions(self) -> None:
        """Set `positions`, `foreign`, `first_copy` and `last_copy` from the events in the target's log.

        In a revert, `positions` also gets the events of the source's log that the move copied there.

        Raises:
            nats.errors.Error: a server does not answer.
        """
        known: list[tuple[int, int]] = []
        self.foreign = 0
        async for message, delivery in stream_log(self._target, self._pattern, headers_only=True):
            moved = parse_moved(message.headers)
            if moved is not None and self.is_copy(message.headers):
                known.append((moved.position, delivery.sequence))
                self._record_copy(delivery.sequence)
            else:
                self.foreign += 1
        if self._is_returning:
            async for message, delivery in stream_log(self._source, self._pattern, headers_only=True):
                moved = parse_moved(message.headers)
                if moved is not None and has_prefix(message.headers, self._opposite_prefix):
                    known.append((delivery.sequence, moved.position))
        self.positions = PositionMap()
        for old, new in sorted(known):
            self.positions.add(old, new)

    async def copy_events(
        self, up_to: int, progress: CopyProgress, is_withheld: EventFilter = withhold_none
    ) -> int:
        """Copy the events that are not copied yet, up to the position `up_to` of the source's log.

        An event for which `is_withheld` returns True stays only in the log of the source.

        Returns:
            The number of stored messages: copies of events, and placeholders. A placeholder stands for a
            position that an erasure names and at which the tenant has no event.

        Raises:
            MessageTooLarge: the target takes no message as large as one of the events.
            nats.errors.Error: a server does not answer.
        """
        copied = 0
        after = self.reached if self._is_returning else max(self.reached, self.positions.last_old)
        gaps = await self._find_gaps(after, up_to)
        holder: ExactMessage | None = None
        batch: list[tuple[int, ExactMessage]] = []
        size = 0
        async with aclosing(self.read_source(after, up_to)) as events:
            async for event in events:
                if event.position in gaps:
                    gaps.remove(event.position)
                if self.positions.find(event.position) is not None or self.is_from_target(event):
                    continue
                if await is_withheld(event):
                    continue
                while gaps and gaps[0] < event.position:
                    position = gaps.pop(0)
                    if holder is not None:
                        batch.append((position, self._build_placeholder(position, holder)))
                if batch and event.last_reference >= batch[0][0]:
                    copied += await self._store_copies(batch)
                    batch, size = [], 0
                message = build_moved_message(event, self.positions, self.prefix)
                length = self._measure_message(event, message)
                is_alone = length + BATCH_HEADROOM > self._target.max_payload
                if batch and (is_alone or len(batch) >= BATCH or size + length > BATCH_BYTES):
                    copied += await self._store_copies(batch)
                    batch, size = [], 0
                    progress(event.position, up_to)
                batch.append((event.position, message))
                if event.name != "model.called" and not is_alone:
                    # A copy of a model call is removed once retention has removed the call at the source.
                    holder = message
                if origin := find_origin(event.delivery.subject):
                    self.changed.add(origin.owner[1])
                size += length
                if is_alone:
                    copied += await self._store_copies(batch)
                    batch, size = [], 0
        if batch:
            copied += await self._store_copies(batch)
        self.reached = max(self.reached, up_to)
        progress(up_to, up_to)
        return copied

    def is_from_target(self, event: SourceEvent) -> bool:
        """Return whether an event of the source's log is a copy of an event from the target's log."""
        return has_prefix(event.message.headers, self._opposite_prefix)

    def is_copy(self, headers: dict[str, str] | None) -> bool:
        """Return whether a message with these headers is a copy in the target's log."""
        return has_prefix(headers, self.prefix)

    async def read_source(self, after: int, up_to: int) -> AsyncGenerator[SourceEvent, None]:
        """Yield the tenant's events in the source's log after the position `after` and up to `up_to`.

        Raises:
            nats.errors.Error: the server does not answer.
        """
        async with aclosing(stream_log(self._source, self._pattern, after=after, up_to=up_to)) as events:
            async for each in events:
                yield parse_source_event(*each)

    async def read_copies(self, after: int) -> AsyncGenerator[StreamMessage, None]:
        """Yield the events that this move has copied, from the target's log after its position `after`.

        Raises:
            nats.errors.Error: the server does not answer.
        """
        async with aclosing(stream_log(self._target, self._pattern, after=after)) as events:
            async for each in events:
                if self.is_copy(each[0].headers):
                    yield each

    async def _store_copies(self, batch: list[tuple[int, ExactMessage]]) -> int:
        """Store a batch as a whole; return its number of messages.

        Each message comes with the position of its event in the source's log.

        An attempt whose answer was lost is repeated only if the target's log does not have the batch.
        """
        fault: Exception = nats.errors.TimeoutError()
        for attempt in range(TRIES):
            try:
                last = await store_batch(self._target, [message for _, message in batch])
            except APIError as error:
                if not is_duplicate(error):
                    raise
                fault = error
            except (nats.errors.Error, TimeoutError) as error:
                fault = error
            else:
                for place, (position, _) in enumerate(batch, last - len(batch) + 1):
                    self.positions.add(position, place)
                    self._record_copy(place)
                return len(batch)
            await asyncio.sleep(RETRY_SECONDS * (attempt > 0))
            try:
                await self._record_stored_copies()
            except (nats.errors.Error, TimeoutError) as error:
                fault = error
                continue
            if all(self.positions.find(position) is not None for position, _ in batch):
                return len(batch)
        raise fault

    async def _record_stored_copies(self) -> None:
        """Record the positions of copies that were stored by an attempt whose answer was lost."""
        async with aclosing(self.read_copies(self.positions.last_new)) as copies:
            async for message, delivery in copies:
                if moved := parse_moved(message.headers):
                    self.positions.add(moved.position, delivery.sequence)
                    self._record_copy(delivery.sequence)

    async def _find_gaps(self, after: int, up_to: int) -> list[int]:
        """Return the positions that erasures name as `discarded_seq` or start of a span.

        Positions up to the last copied event, and those up to `after` that have an event, are left out. For
        each of the others without an event, the target's log needs a position that no other event of the user
        has. Whether a position beyond `after` has an event shows when the events are read: an erasure may
        remove the event until then. For a revert, return an empty list.
        """
        if self._is_returning:
            return []
        gaps: set[int] = set()
        pattern = build_tenant_event_filter(self._tenant, "user.erased")
        async for each in stream_log(self._source, pattern, up_to=up_to):
            gaps.update(list_span_starts(parse_source_event(*each).fields or {}))
        known = sorted(each for each in gaps if self.positions.last_old < each <= up_to)
        return [each for each in known if each > after or not await self._has_event(each)]

    async def _has_event(self, position: int) -> bool:
        """Return whether the source's log has an event of the tenant at a position."""
        try:
            message = await self._source.jetstream().get_msg(LOG, position)
        except NotFoundError:
            return False
        origin = find_origin(str(message.subject))
        return origin is not None and origin.owner[0] == self._tenant

    def _build_placeholder(self, position: int, event: ExactMessage) -> ExactMessage:
        """Return a further copy of an event, which changes nothing, for a position without an event."""
        moved = parse_moved(event.headers)
        assert moved is not None
        held = {MESSAGE_ID: f"{self.prefix}{position}", MOVED: moved._replace(position=position).format()}
        return event._replace(headers={**event.headers, **held})

    def _record_copy(self, position: int) -> None:
        self.first_copy = min(self.first_copy or position, position)
        self.last_copy = max(self.last_copy, position)

    def _measure_message(self, event: SourceEvent, message: ExactMessage) -> int:
        length = len(message.body) + len(message.encode_headers())
        if length > self._target.max_payload:
            raise MessageTooLarge(event.position, length, self._target.max_payload)
        return length


def require_no_foreign_events(copy: TenantCopy, tenant: str) -> None:
    """Check that all of a tenant's events in the target's log are copies of this move.

    Raises:
        MoveRefused: the target's log has other events of the tenant.
    """
    if copy.foreign:
        raise MoveRefused(
            f"the deployment at --to has events of the tenant {tenant} ({copy.foreign:,}) that do not come"
            " from this move: two memories cannot be merged. Move to a deployment that has no events of the"
            " tenant"
        )
