"""Putting derived events into the log."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from nats.aio.client import Client
from nats.js.errors import APIError

from contracts.streams import LOG

TIMEOUT: Final = 5.0
BATCH = 1000
"""The most that the server takes in one atomic batch."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event for the log. Its id makes a repeated attempt harmless."""

    subject: str
    body: bytes
    id: str


@dataclass(frozen=True, slots=True)
class Appended:
    """Where an event is. `known`: it was there before, with the content it had then."""

    seq: int
    known: bool = False


async def append(connection: Client, events: Sequence[LogEvent]) -> list[Appended]:
    """Put events into the log, in their order: up to `BATCH` of them all or none.

    Raises:
        nats.errors.Error: it is not known whether they are stored.
    """
    if len(events) == 1:
        return [await _one(connection, events[0])]
    appended: list[Appended] = []
    for start in range(0, len(events), BATCH):
        batch = events[start : start + BATCH]
        try:
            appended += await _atomically(connection, batch)
        except APIError:
            # Most often the log has one of them: that refuses the batch as a whole.
            appended += await asyncio.gather(*(_one(connection, event) for event in batch))
    return appended


async def append_groups(connection: Client, groups: Sequence[Sequence[LogEvent]]) -> None:
    """Put groups of events into the log, of each group of up to `BATCH` all or none.

    Many small groups go together: the log takes them in the time of one.

    Raises:
        nats.errors.Error: it is not known which of them are stored.
    """
    together: list[Sequence[LogEvent]] = []
    for group in groups:
        if together and sum(map(len, together)) + len(group) > BATCH:
            await _together(connection, together)
            together = []
        together.append(group)
    if together:
        await _together(connection, together)


async def _together(connection: Client, groups: Sequence[Sequence[LogEvent]]) -> None:
    events = [event for group in groups for event in group]
    if len(groups) > 1 and events:
        try:
            await _atomically(connection, events)
        except APIError:
            # Most often the log has one of them: that refuses all, those of other groups too.
            for group in groups:
                await append(connection, group)
        return
    await append(connection, events)


async def _one(connection: Client, event: LogEvent) -> Appended:
    acknowledged = await connection.jetstream().publish(
        event.subject, event.body, timeout=TIMEOUT, stream=LOG, headers={"Nats-Msg-Id": event.id}
    )
    return Appended(acknowledged.seq, bool(acknowledged.duplicate))


async def _atomically(connection: Client, events: Sequence[LogEvent]) -> list[Appended]:
    batch = uuid4().hex
    for place, event in enumerate(events[:-1], 1):
        await connection.publish(event.subject, event.body, headers=_headers(event, batch, place))
    last = events[-1]
    acknowledged = await connection.jetstream().publish(
        last.subject,
        last.body,
        timeout=TIMEOUT,
        stream=LOG,
        headers=_headers(last, batch, len(events)) | {"Nats-Batch-Commit": "1"},
    )
    return [Appended(acknowledged.seq - len(events) + place) for place in range(1, len(events) + 1)]


def _headers(event: LogEvent, batch: str, place: int) -> dict[str, str]:
    return {"Nats-Msg-Id": event.id, "Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(place)}
