"""Publisher of events to the log, one by one or in atomic batches. A repeated attempt changes nothing."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import TypeAlias

import nats.errors
from nats.aio.client import Client
from nats.js.api import PubAck
from nats.js.errors import APIError, NoStreamResponseError

from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.streams import LOG
from mnemon_producers import tracing
from mnemon_producers.calls_in_flight import CLOSED, CallsInFlight
from mnemon_producers.connection import describe_excess, find_denial, require_payload_room
from mnemon_producers.errors import PublishFailed
from mnemon_producers.events import ChatEvent, EncodedEvent, check_id, encode_event
from mnemon_producers.timeouts import Timeouts

BATCH_MESSAGES = 1000
"""Maximum number of messages that the server accepts in one atomic batch."""

BATCH_BYTES = 4 * 1024 * 1024
"""Maximum size of the bodies of a batch of several messages, in bytes; it limits memory use."""

# Events after which the event loop runs while a batch is written: the loop writes to the socket only when it
# runs.
_TURN = 128

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0

_CUT_OFF = (
    "the connection is closed. If the bot did not close it, the server did: a message has more bytes than "
    "this login may send. Connect again, and send shorter messages"
)

# Error code: part of a batch was lost on the way, or the server held it for more than 10 s without a commit.
_INCOMPLETE_BATCH = 10176

Events: TypeAlias = Iterable[ChatEvent] | AsyncIterable[ChatEvent]


@dataclass(frozen=True, slots=True)
class Published:
    """Counts of published events.

    Args:
        count: number of published events that the log has.
        duplicates: number of these events that were not stored again, because the log had received their ids
            within the last two minutes.
        last_seq: the highest log position of these events; 0 before the first event.
    """

    count: int = 0
    duplicates: int = 0
    last_seq: int = 0

    def add(self, other: "Published") -> "Published":
        """Return the sums of the counts of both objects, and the higher of their log positions."""
        return Published(
            self.count + other.count,
            self.duplicates + other.duplicates,
            max(self.last_seq, other.last_seq),
        )


PublishProgress: TypeAlias = Callable[[Published], None]


class Publisher:
    """Publisher of the chat events of one tenant to the log.

    Args:
        connection: an open connection; the publisher does not close it.
        tenant: the tenant whose events they are.
        timeouts: timeouts of attempts and retries; a retry keeps the event id.
    """

    def __init__(self, connection: Client, tenant: str, timeouts: Timeouts) -> None:
        check_id("tenant", tenant)
        self._connection = connection
        self._jetstream = connection.jetstream(timeout=timeouts.publish)
        self._tenant = tenant
        self._retry_for = timeouts.retry
        self._calls = CallsInFlight()

    async def close(self) -> None:
        """Wait for the attempts in flight; further attempts raise `PublishFailed`."""
        await self._calls.close()

    async def publish(self, event: ChatEvent) -> int:
        """Publish one event and return its log position.

        Raises:
            InvalidId, InvalidBody: the event cannot be sent.
            PublishFailed: the event is not known to be stored.
        """
        return (await self.store(event)).last_seq

    async def store(self, event: ChatEvent) -> Published:
        """Publish one event; the result tells whether it is a duplicate, see `Published`.

        Raises:
            InvalidId, InvalidBody: the event cannot be sent.
            PublishFailed: the event is not known to be stored.
        """
        stored = await self._publish_encoded(encode_event(self._tenant, event, _generate_id()))
        return Published(1, int(bool(stored.duplicate)), stored.seq)

    async def publish_many(self, events: Events, progress: PublishProgress | None = None) -> Published:
        """Publish events in their order, in atomic batches, and return the totals.

        At most three batches are in memory at a time.

        While the server makes one batch durable, the client encodes the next and sends it. A batch is
        committed after the previous batch, so the log has the batches in order even after retries. If the
        server refuses a batch, its events are published separately and at the same time, so a retried event
        may come after later events of the batch.

        Raises:
            InvalidId, InvalidBody: an event cannot be sent; all events before it are published.
            PublishFailed: an event is not known to be stored; `progress` has reported all batches before its
                batch.
        """
        done = Published()
        in_flight: deque[asyncio.Task[Published]] = deque()

        async def finish_oldest() -> None:
            nonlocal done
            done = done.add(await in_flight[0])
            in_flight.popleft()
            if progress:
                progress(done)

        try:
            async with aclosing(self._cut_batches(events)) as batches:
                try:
                    async for batch in batches:
                        before = in_flight[-1] if in_flight else None
                        in_flight.append(asyncio.create_task(self._store_batch(batch, before)))
                        if before:
                            await finish_oldest()
                finally:
                    while in_flight:
                        await finish_oldest()
        finally:
            for task in in_flight:
                task.cancel()
            await asyncio.gather(*in_flight, return_exceptions=True)
        return done

    async def _cut_batches(self, events: Events) -> AsyncGenerator[list[EncodedEvent], None]:
        run = _generate_id()
        number = 0
        batch: list[EncodedEvent] = []
        size = 0
        try:
            async for event in _iterate_events(events):
                number += 1
                encoded = encode_event(self._tenant, event, f"{run}:{number}")
                if len(batch) == BATCH_MESSAGES or (batch and size + len(encoded.body) > BATCH_BYTES):
                    yield batch
                    batch, size = [], 0
                batch.append(encoded)
                size += len(encoded.body)
        except Exception:
            if batch:
                yield batch  # the events before the event that cannot be sent
            raise
        if batch:
            yield batch

    async def _store_batch(
        self, batch: list[EncodedEvent], after: asyncio.Task[Published] | None
    ) -> Published:
        last = batch[-1]

        async def attempt() -> PubAck:
            headers = await self._stage_batch(batch)
            if after:
                await after
            require_payload_room(self._connection, last.body, headers)
            return await self._jetstream.publish(last.subject, last.body, stream=LOG, headers=headers)

        try:
            return Published(len(batch), 0, (await self._retry_publish(batch, attempt)).seq)
        except APIError:
            # Usually the log has an event of the batch already, and the server refuses the whole batch.
            return await self._publish_each(batch)

    async def _stage_batch(self, batch: list[EncodedEvent]) -> dict[str, str]:
        """Send all events but the last one; return the headers with which the last one commits the batch."""
        batch_id, traced = _generate_id(), tracing.build_trace_headers()
        publish = self._connection.publish
        for number, event in enumerate(batch[:-1], 1):
            headers = {
                MESSAGE_ID: event.message_id,
                "Nats-Batch-Id": batch_id,
                "Nats-Batch-Sequence": str(number),
                **traced,
            }
            require_payload_room(self._connection, event.body, headers)
            await publish(event.subject, event.body, headers=headers)
            if not number % _TURN:
                await asyncio.sleep(0)
        return {
            MESSAGE_ID: batch[-1].message_id,
            "Nats-Batch-Id": batch_id,
            "Nats-Batch-Sequence": str(len(batch)),
            "Nats-Batch-Commit": "1",
            **traced,
        }

    async def _publish_each(self, batch: list[EncodedEvent]) -> Published:
        results = await asyncio.gather(*map(self._publish_encoded, batch), return_exceptions=True)
        acknowledged = []
        for result in results:
            if isinstance(result, BaseException):
                raise result
            acknowledged.append(result)
        return Published(
            len(batch),
            sum(bool(one.duplicate) for one in acknowledged),
            max(one.seq for one in acknowledged),
        )

    async def _publish_encoded(self, event: EncodedEvent) -> PubAck:
        headers = {MESSAGE_ID: event.message_id, **tracing.build_trace_headers()}

        async def attempt() -> PubAck:
            require_payload_room(self._connection, event.body, headers)
            return await self._jetstream.publish(event.subject, event.body, stream=LOG, headers=headers)

        try:
            return await self._retry_publish([event], attempt)
        except APIError as error:
            raise PublishFailed(event.id, str(error.description), retryable=False) from error

    async def _retry_publish(
        self, batch: list[EncodedEvent], attempt: Callable[[], Awaitable[PubAck]]
    ) -> PubAck:
        """Attempt to publish until the server stores or refuses the events; return its acknowledgement.

        A failure that may be temporary is retried for up to `Timeouts.retry` seconds.

        Raises:
            APIError: the server refused the events, and would refuse them again.
            PublishFailed: no attempt succeeded in time, a permission is denied, or the client cannot send,
                for example because it was closed.
        """
        clock = asyncio.get_running_loop().time
        deadline = None  # runs from the first failure: a batch may wait long for the previous batch
        pause = FIRST_PAUSE
        while True:
            if self._calls.is_closing:
                raise PublishFailed(batch[0].id, CLOSED, retryable=False)
            before = self._connection.last_error
            try:
                with self._calls.count():
                    return await attempt()
            except APIError as error:
                if error.err_code != _INCOMPLETE_BATCH and (error.code or 500) < 500:
                    raise
                failure: Exception = error
            except (TimeoutError, NoStreamResponseError, nats.errors.OutboundBufferLimitError) as error:
                failure = error
            except nats.errors.MaxPayloadError as error:
                problem = describe_excess(self._connection)
                raise PublishFailed(batch[0].id, problem, retryable=False) from error
            except nats.errors.Error as error:
                problem = _CUT_OFF if self._connection.is_closed else str(error)
                raise PublishFailed(batch[0].id, problem, retryable=False) from error
            if reason := find_denial(self._connection, before, *(event.subject for event in batch)):
                raise PublishFailed(batch[0].id, reason, retryable=False) from failure
            deadline = deadline or clock() + self._retry_for
            if clock() + pause > deadline:
                raise PublishFailed(
                    batch[0].id, await self._explain_failure(failure), retryable=True
                ) from failure
            await self._calls.pause(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _explain_failure(self, failure: Exception) -> str:
        match failure:
            case APIError():
                return f"the server said: {failure.description}; publish again with the same id"
            case NoStreamResponseError():
                return f"the stream {LOG} does not exist; run `mnemon provision`"
            case nats.errors.OutboundBufferLimitError():
                return "the connection is down, and its buffer is full; publish again after the reconnect"
        is_there = False
        with suppress(nats.errors.Error, TimeoutError):
            await self._connection.flush(1)
            is_there = self._connection.is_connected  # while it reconnects, a flush may end without an answer
        if not is_there:
            return "the server did not answer in time; publish again with the same id"
        # nats-server does not answer when it cannot write to disk.
        return "the server answers but does not store the event; its disk may be full: see `mnemon status`"


def _generate_id() -> str:
    return token_urlsafe(15)  # 20 characters: a message of a batch carries two of them


async def _iterate_events(events: Events) -> AsyncIterator[ChatEvent]:
    if isinstance(events, AsyncIterable):
        async for event in events:
            yield event
        return
    for number, event in enumerate(events, 1):
        yield event
        if not number % _TURN:
            await asyncio.sleep(0)
