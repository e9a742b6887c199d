"""Writer of events to the log, one by one or in atomic batches."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar
from uuid import uuid4

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js.errors import APIError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_fixed

from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.streams.stream_reader import find_position, read_stream
from mnemon_infra.telemetry import tracing

log = structlog.get_logger("broker")

StoredT = TypeVar("StoredT")

TRIES: Final = 5
"""Maximum number of attempts to store an event that a paid model call has produced, or a group of events."""

MOST_SUBJECTS: Final = 8
"""Maximum number of subjects that are read one by one to find known ids.

For more subjects, the events of all subjects in the duplicate window are read.
"""

TIMEOUT: Final = 5.0
BATCH = 1000
"""Maximum number of events that the server takes in one atomic batch."""

DUPLICATE_ID: Final = 10201
"""Error code of the server for a batch with an id that the log has received before."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event to append to the log.

    The log stores an id only once within its duplicate window, so a retry is harmless.

    Attributes:
        traceparent: the trace that the event belongs to; None takes the trace of the writer.
        omitted_if_known: id of another event of its group: `append_groups` leaves this event out if the log
            has that event already.
    """

    subject: str
    body: bytes
    id: str
    traceparent: str | None = None
    omitted_if_known: str | None = None


@dataclass(frozen=True, slots=True)
class AppendedEvent:
    """Position of an event in the log; `known` is true if the log had the event already."""

    seq: int
    known: bool = False


async def retry_store(store: Callable[[], Awaitable[StoredT]], pause: float) -> StoredT:
    """Store an event with retries, so that a short outage of the log does not waste a paid model call.

    The result is that of `store`.

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


async def append_events(connection: Client, events: Sequence[LogEvent]) -> list[AppendedEvent]:
    """Append events to the log in their order, in atomic batches of at most `BATCH` events.

    If the server refuses a batch, the events of the batch are stored one by one.

    Raises:
        nats.errors.Error: it is unknown whether the events are stored.
    """
    if len(events) == 1:
        return [await _append_event(connection, events[0])]
    appended: list[AppendedEvent] = []
    for start in range(0, len(events), BATCH):
        batch = events[start : start + BATCH]
        try:
            appended += await _append_atomically(connection, batch)
        except APIError:
            # Usually the log has one of the events already, so the server refuses the whole batch.
            appended += await _append_one_by_one(connection, batch)
    return appended


async def append_groups(connection: Client, groups: Sequence[Sequence[LogEvent]]) -> None:
    """Append groups of at most `BATCH` events to the log, each as a whole or not at all.

    Events of a group that the log has received within its duplicate window are left out; the others are
    stored as a whole. There is one exception: if an erasure has just removed an event of a group, the server
    still refuses its id, and the others are stored one by one. Many small groups go in one batch: the log
    stores them in the time of one group.

    Raises:
        nats.errors.Error: it is unknown which groups are stored.
    """
    batch: list[Sequence[LogEvent]] = []
    for group in groups:
        if batch and sum(map(len, batch)) + len(group) > BATCH:
            await _append_group_batch(connection, batch)
            batch = []
        batch.append(group)
    if batch:
        await _append_group_batch(connection, batch)


async def _append_group_batch(connection: Client, groups: Sequence[Sequence[LogEvent]]) -> None:
    if len(groups) > 1:
        events = [event for group in groups for event in group]
        if await _try_append_batch(connection, events):
            return
        known = await _find_known_ids(connection, events)
        groups = [_drop_known_events(group, known) for group in groups]
        if await _try_append_batch(connection, [event for group in groups for event in group]):
            return
    for group in groups:
        await _append_one_group(connection, group)


async def _append_one_group(connection: Client, group: Sequence[LogEvent]) -> None:
    events = list(group)
    for _ in range(TRIES):
        if await _try_append_batch(connection, events):
            return
        rest = _drop_known_events(events, await _find_known_ids(connection, events))
        if rest == events:
            # The server remembers ids of messages that an erasure has removed. It stores the other events.
            await _append_one_by_one(connection, events)
            return
        events = rest
    raise nats.errors.TimeoutError  # other processes keep storing events of the group


def _drop_repeated_events(events: Sequence[LogEvent]) -> list[LogEvent]:
    """Return the first event of each id: the server takes no batch with the same id twice."""
    first: dict[str, LogEvent] = {}
    for event in events:
        first.setdefault(event.id, event)
    return list(first.values())


def _drop_known_events(events: Sequence[LogEvent], known: AbstractSet[str]) -> list[LogEvent]:
    return [each for each in events if each.id not in known and each.omitted_if_known not in known]


async def _try_append_batch(connection: Client, events: Sequence[LogEvent]) -> bool:
    """Append events as a whole, each id once; return False if the log has one of them already.

    The result is True for a single event, even if the log has it already.
    """
    events = _drop_repeated_events(events)
    if not events:
        return True
    if len(events) == 1:
        await _append_event(connection, events[0])
        return True
    try:
        await _append_atomically(connection, events)
    except APIError as error:
        if not is_duplicate(error):
            raise
        return False
    return True


async def _find_known_ids(connection: Client, events: Iterable[LogEvent]) -> set[str]:
    """Return the ids that the log has received in its duplicate window on the subjects of `events`.

    If there are more than `MOST_SUBJECTS` subjects, the ids on all subjects are returned.
    """
    stream_context = connection.jetstream()
    window = (await stream_context.stream_info(LOG)).config.duplicate_window or 0
    last = await stream_context.get_last_msg(LOG, ">")
    # The time of the last message instead of this machine's clock, which may differ from the server's.
    after = await find_position(connection, last.time - timedelta(seconds=window)) if last.time else 0
    known: set[str] = set()
    subjects: set[str | None] = {each.subject for each in events}
    for subject in subjects if len(subjects) <= MOST_SUBJECTS else {None}:
        pages = read_stream(
            connection, LOG, after=after, up_to=last.seq or 0, subject=subject, headers_only=True
        )
        async with aclosing(pages):
            async for page in pages:
                known.update((message.headers or {}).get(MESSAGE_ID, "") for message, _ in page)
    return known


def is_duplicate(error: Exception) -> bool:
    """Return whether `error` says that the log has received the id of a message before."""
    return isinstance(error, APIError) and error.err_code == DUPLICATE_ID


async def _append_one_by_one(connection: Client, events: Sequence[LogEvent]) -> list[AppendedEvent]:
    return await asyncio.gather(*(_append_event(connection, event) for event in events))


async def _append_event(connection: Client, event: LogEvent) -> AppendedEvent:
    acknowledged = await connection.jetstream().publish(
        event.subject, event.body, timeout=TIMEOUT, stream=LOG, headers=_build_headers(event)
    )
    return AppendedEvent(acknowledged.seq, bool(acknowledged.duplicate))


async def _append_atomically(connection: Client, events: Sequence[LogEvent]) -> list[AppendedEvent]:
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
    return [AppendedEvent(acknowledged.seq - len(events) + place) for place in range(1, len(events) + 1)]


def _build_headers(event: LogEvent) -> dict[str, str]:
    traced = (
        tracing.build_headers() if event.traceparent is None else {tracing.TRACEPARENT: event.traceparent}
    )
    return {MESSAGE_ID: event.id, **traced}


def _build_batch_headers(batch: str, place: int) -> dict[str, str]:
    return {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(place)}
