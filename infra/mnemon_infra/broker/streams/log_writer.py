"""Writer of derived events to the log."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import uuid4

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js.errors import APIError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_fixed

from mnemon_contracts.streams import LOG
from mnemon_infra.telemetry import tracing

log = structlog.get_logger("broker")

StoredT = TypeVar("StoredT")

TRIES: Final = 5
"""Maximum number of attempts to store an event that a paid model call has produced."""

TIMEOUT: Final = 5.0
BATCH = 1000
"""Maximum number of events that the server takes in one atomic batch."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event for the log. Within its duplicate window, the log stores an id once: a retry is harmless.

    Attributes:
        traceparent: the trace that the event belongs to; None takes the trace of the writer.
    """

    subject: str
    body: bytes
    id: str
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """Position of an event in the log; `known` is true if the log had the event already."""

    seq: int
    known: bool = False


async def retry_store(store: Callable[[], Awaitable[StoredT]], pause: float) -> StoredT:
    """Store an event with retries, so that a short outage of the log does not waste a paid model call.

    Args:
        store: stores the event; a repeated attempt must be harmless.
        pause: seconds between two of the `TRIES` attempts.

    Raises:
        nats.errors.Error: the last attempt failed as well.
    """
    trying = AsyncRetrying(
        retry=retry_if_exception_type(nats.errors.Error),
        stop=stop_after_attempt(TRIES),
        wait=wait_fixed(pause),
        before_sleep=_log_retry,
        reraise=True,
    )
    return await trying(store)


def _log_retry(state: RetryCallState) -> None:
    error = state.outcome and state.outcome.exception()
    log.warning("event publish failed, retrying", attempt=state.attempt_number, error=repr(error))


async def append_events(connection: Client, events: Sequence[LogEvent]) -> list[Appended]:
    """Append events to the log in their order, in atomic batches of at most `BATCH` events.

    If the server refuses a batch, the events of the batch are stored one by one.

    Raises:
        nats.errors.Error: it is unknown whether the events are stored.
    """
    if len(events) == 1:
        return [await _append_event(connection, events[0])]
    appended: list[Appended] = []
    for start in range(0, len(events), BATCH):
        batch = events[start : start + BATCH]
        try:
            appended += await _append_atomically(connection, batch)
        except APIError:
            # Usually the log has one of the events already, so the server refuses the whole batch.
            appended += await asyncio.gather(*(_append_event(connection, event) for event in batch))
    return appended


async def append_groups(connection: Client, groups: Sequence[Sequence[LogEvent]]) -> None:
    """Append groups of at most `BATCH` events to the log, each as a whole or not at all.

    There is one exception: if the log has an event of a group already, the rest of that group is stored event
    by event, so that a crash may leave a part of the group. Many small groups go in one batch: the log stores
    them in the time of one group.

    Raises:
        nats.errors.Error: it is unknown which events are stored.
    """
    together: list[Sequence[LogEvent]] = []
    for group in groups:
        if together and sum(map(len, together)) + len(group) > BATCH:
            await _append_groups_atomically(connection, together)
            together = []
        together.append(group)
    if together:
        await _append_groups_atomically(connection, together)


async def _append_groups_atomically(connection: Client, groups: Sequence[Sequence[LogEvent]]) -> None:
    events = [event for group in groups for event in group]
    if len(groups) > 1 and events:
        try:
            await _append_atomically(connection, events)
        except APIError:
            # Usually the log has one of the events already, so the server refuses the events of all groups.
            for group in groups:
                await append_events(connection, group)
        return
    await append_events(connection, events)


async def _append_event(connection: Client, event: LogEvent) -> Appended:
    acknowledged = await connection.jetstream().publish(
        event.subject, event.body, timeout=TIMEOUT, stream=LOG, headers=_build_headers(event)
    )
    return Appended(acknowledged.seq, bool(acknowledged.duplicate))


async def _append_atomically(connection: Client, events: Sequence[LogEvent]) -> list[Appended]:
    batch = uuid4().hex
    for place, event in enumerate(events[:-1], 1):
        await connection.publish(
            event.subject, event.body, headers=_build_headers(event) | _build_batch_headers(batch, place)
        )
    last = events[-1]
    acknowledged = await connection.jetstream().publish(
        last.subject,
        last.body,
        timeout=TIMEOUT,
        stream=LOG,
        headers=_build_headers(last) | _build_batch_headers(batch, len(events)) | {"Nats-Batch-Commit": "1"},
    )
    return [Appended(acknowledged.seq - len(events) + place) for place in range(1, len(events) + 1)]


def _build_headers(event: LogEvent) -> dict[str, str]:
    traced = (
        tracing.build_headers() if event.traceparent is None else {tracing.TRACEPARENT: event.traceparent}
    )
    return {"Nats-Msg-Id": event.id, **traced}


def _build_batch_headers(batch: str, place: int) -> dict[str, str]:
    return {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(place)}
