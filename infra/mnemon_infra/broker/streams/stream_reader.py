"""Reader of a whole stream from one end to the other, fast and in little memory."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import datetime
from functools import partial
from typing import Any, Final, Self

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, ConsumerInfo, DeliverPolicy, Header
from nats.js.errors import NotFoundError

from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_owner_filter
from mnemon_infra.broker.streams.applied_position import find_first_event_from
from mnemon_infra.broker.streams.restored_log import parse_restored_position
from mnemon_infra.delivery import Delivery, read_original_time

StreamMessage = tuple[Msg, Delivery]
"""A message as the server sent it, and the same message as a delivery."""

PAGE: Final = 1000
"""Default maximum number of messages of a page."""

PAGE_BYTES: Final = 16 * 1024 * 1024
"""Maximum bytes of a page with several messages; a message that is larger is a page of its own."""

PAGE_TIMEOUT: Final = 10.0
"""Seconds that a page may take before the reader requests the rest of the stream again."""

TRIES: Final = 6
"""Maximum number of successive attempts without a message before the reader gives up."""

PAUSE: Final = 0.5
"""Seconds before a server whose copy is behind is asked again."""

CONSUMER_LIFETIME: Final = 60.0
"""Seconds after which the server drops the consumer of a reader that is gone."""

TOO_LARGE: Final = "Message Size Exceeds MaxBytes"
"""Description of the status that ends a request before a message for which its bytes do not suffice."""


async def read_stream(
    connection: Client,
    stream: str,
    *,
    up_to: int,
    after: int = 0,
    page: int = PAGE,
    headers_only: bool = False,
    subject: str | None = None,
) -> AsyncGenerator[list[StreamMessage], None]:
    """Yield all messages of a stream up to a position, each once and in stream order, page by page.

    The next page arrives while a page is in use; at most two pages are in memory.

    Args:
        connection: connection to the server.
        stream: name of the stream.
        up_to: the last position to read.
        after: the position before the first position to read.
        page: maximum number of messages of a page.
        headers_only: True to leave out the bodies.
        subject: pattern of the subjects to read; None reads all subjects.

    Raises:
        nats.errors.Error: the server does not answer, or the stream is absent.
    """
    tries = 0
    while after < up_to and tries < TRIES:
        place = await open_consumer(
            connection,
            stream,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=after + 1,
            headers_only=headers_only or None,
            filter_subject=subject,
        )
        tries += 1
        try:
            if not place.num_pending:
                if not await _has_more(connection, stream, after, up_to, subject):
                    return
                await asyncio.sleep(PAUSE)
                continue
            async with aclosing(_read_pages(connection, place, page)) as pages:
                async for read in pages:
                    after, tries = read[-1][1].sequence, 0
                    if wanted := [each for each in read if each[1].sequence <= up_to]:
                        yield wanted
                    if after >= up_to:
                        return
        finally:
            with suppress(nats.errors.Error):  # the server drops the consumer later
                await connection.jetstream().delete_consumer(stream, place.name)
    if after < up_to:
        raise nats.errors.TimeoutError


async def _has_more(connection: Client, stream: str, after: int, up_to: int, subject: str | None) -> bool:
    """Return whether the leader of a stream has messages to read.

    In a cluster the reader's consumer is at any server with a copy, and that copy may be behind.
    """
    try:
        found = await connection.jetstream().get_msg(stream, after + 1, subject or ">", next=True)
    except NotFoundError:
        return False
    return found.seq is not None and found.seq <= up_to


async def find_position(connection: Client, moment: datetime) -> int:
    """Return the log position of the last event before a moment; 0 if there is none.

    Raises:
        nats.errors.Error: the server does not answer, or the log is absent.
    """
    place = await open_consumer(
        connection, LOG, deliver_policy=DeliverPolicy.BY_START_TIME, opt_start_time=moment
    )
    await connection.jetstream().delete_consumer(LOG, place.name)
    position = place.delivered.stream_seq if place.delivered else 0
    restored = parse_restored_position(await connection.jetstream().stream_info(LOG))
    # The server knows the times of storage since the restore only.
    if position > restored:
        return position
    return await _bisect_log(partial(find_first_event_from, connection.jetstream()), moment, 0, restored)


async def find_moved_position(
    connection: Client, tenant: str, moment: datetime, position: int, first: int, last: int
) -> int:
    """Return the log position as of a moment for a tenant that moved to this deployment later.

    The log has the tenant's events at later positions than events of other tenants from the same time. The
    result is the position of the tenant's last event before the moment, found by bisection. If the moment is
    before the tenant's first event, the result is below all of the tenant's events.

    Args:
        connection: connection to the server.
        tenant: id of the tenant.
        moment: the moment to find the position of.
        position: position of the log's last event before the moment, of any tenant.
        first: position of the first event that the move copied.
        last: position of the last event that the move copied.
    """
    find_event = partial(
        find_first_event_from,
        connection.jetstream(),
        pattern=build_owner_filter(tenant),
        read_time=read_original_time,
    )
    return await _bisect_log(find_event, moment, min(position, first - 1), last)


async def _bisect_log(
    find_event: Callable[[int], Awaitable[tuple[int, datetime] | None]], moment: datetime, low: int, high: int
) -> int:
    """Return the position of the last event before a moment, above `low` and up to `high`; else `low`.

    `find_event` returns position and time of the first event at a position or beyond.
    """
    while low < high:
        middle = (low + high + 1) // 2
        found = await find_event(middle)
        if found is not None and found[0] <= high and found[1] < moment:
            low = found[0]
        else:
            high = middle - 1
    return low


async def count_messages_from(connection: Client, stream: str, position: int) -> int:
    """Return the number of messages of a stream at `position` or beyond.

    Raises:
        nats.errors.Error: the server does not answer, or the stream is absent.
    """
    place = await open_consumer(
        connection, stream, deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=position
    )
    await connection.jetstream().delete_consumer(stream, place.name)
    return place.num_pending or 0


async def open_consumer(connection: Client, stream: str, **start: Any) -> ConsumerInfo:
    """Create an ephemeral consumer, with which the server keeps a reader's position; return its state.

    `start` has further fields of `ConsumerConfig`, such as the position to start at.
    """
    config = ConsumerConfig(
        ack_policy=AckPolicy.NONE,
        mem_storage=True,
        num_replicas=1,
        inactive_threshold=CONSUMER_LIFETIME,
        **start,
    )
    return await connection.jetstream().add_consumer(stream, config)


async def _read_pages(
    connection: Client, place: ConsumerInfo, page: int
) -> AsyncGenerator[list[StreamMessage], None]:
    """Yield the pages of a consumer until the stream ends or a message is lost."""
    async with _Pages(connection, place, page) as pages:
        while read := await pages.read_next():
            yield read


class _Pages:
    """Pages of a consumer. When a page is taken, the next page is requested."""

    def __init__(self, connection: Client, place: ConsumerInfo, page: int) -> None:
        self._connection = connection
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{place.stream_name}.{place.name}"
        self._page = self._requested = page
        self._inbox = connection.new_inbox()
        self._arrived: list[Msg] = []
        self._is_whole = asyncio.Event()
        self._remaining = place.num_pending or 0
        self._taken = 0

    async def __aenter__(self) -> Self:
        self._subscription = await self._connection.subscribe(self._inbox, cb=self._take_message)
        await self._request_messages(self._page, max_bytes=PAGE_BYTES)
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(nats.errors.Error):
            await self._subscription.unsubscribe()

    async def read_next(self) -> list[StreamMessage]:
        """Return the next page; empty when the stream has ended or a message was lost."""
        if not self._remaining:
            return []
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_whole.wait(), PAGE_TIMEOUT)
        arrived, self._arrived = self._arrived, []
        read: list[StreamMessage] = []
        for message in arrived:
            number, self._remaining = parse_consumer_count(message)
            self._taken += 1
            if number != self._taken:
                self._remaining = 0
                return read
            read.append((message, Delivery.from_message(message)))
        if not self._is_whole.is_set():
            self._remaining = 0
        elif read and self._remaining:
            await self._request_messages(self._page, max_bytes=PAGE_BYTES)
        return read

    async def _request_messages(self, count: int, max_bytes: int | None = None) -> None:
        """Request the next messages, at most `count`; without `max_bytes`, of any size."""
        limit = {} if max_bytes is None else {"max_bytes": max_bytes}
        self._is_whole.clear()
        self._requested = count
        request = json.dumps({"batch": count, "no_wait": True, **limit}).encode()
        await self._connection.publish(self._subject, request, reply=self._inbox)

    async def _take_message(self, message: Msg) -> None:
        if message.reply:
            self._arrived.append(message)
            if len(self._arrived) >= self._requested:
                self._is_whole.set()
        elif not self._arrived and (message.headers or {}).get(Header.DESCRIPTION) == TOO_LARGE:
            await self._request_messages(1)
        else:  # a status that ends the page: all is sent, or more would be too large
            self._is_whole.set()


def parse_consumer_count(message: Msg) -> tuple[int, int]:
    """Return which delivery of its consumer a message is, from 1, and the number of messages that follow."""
    fields = message.reply.split(".")
    if len(fields) > 9:  # with a domain, as in `Delivery.from_message`
        fields = fields[2:]
    return int(fields[6]), int(fields[8])
