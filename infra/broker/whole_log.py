"""Reading the whole log from the server, as fast as it comes and no more of it than is asked for."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, Self

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, Header

from contracts.streams import LOG
from infra.broker.delivery import Delivery

PAGE_BYTES: Final = 16 * 1024 * 1024
"""Of one page, at most; more than the largest message that a server takes here."""

TIMEOUT: Final = 10.0
"""Seconds for a page."""

_FORGOTTEN_AFTER: Final = 300.0
"""Seconds after which the server forgets a reader that was killed."""

_NO_MORE: Final = "404"
_ENDS_OF_A_PAGE: Final = {_NO_MORE, "408", "409"}
"""There is no more; the request is over; the next message would be too much."""


class LogInterrupted(nats.errors.Error):
    """Something between two messages did not arrive."""

    def __str__(self) -> str:
        return "reading the log was interrupted"


async def position_at(connection: Client, moment: datetime) -> int:
    """The log position of the last event that the log took before a moment; 0 without one.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    first = await _reader(connection, deliver_policy=DeliverPolicy.BY_START_TIME, opt_start_time=moment)
    info = await connection.jetstream().consumer_info(LOG, first)
    await connection.jetstream().delete_consumer(LOG, first)
    return info.delivered.stream_seq if info.delivered else 0


async def whole_log(
    connection: Client, after: int, up_to: int, page: int
) -> AsyncGenerator[list[Delivery], None]:
    """All events of the log beyond one position up to another, in log order, page by page.

    While a page is in use the next one comes; no more than these two are held.

    Raises:
        nats.errors.Error: the server does not answer, or something got lost on the way.
    """
    if after >= up_to:
        return
    name = await _reader(connection, deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=after + 1)
    try:
        async with _Pages(connection, name, page) as pages:
            while deliveries := await pages.next():
                within = [each for each in deliveries if each.sequence <= up_to]
                if within:
                    yield within
                if deliveries[-1].sequence >= up_to:
                    return
    finally:
        with suppress(nats.errors.Error):
            await connection.jetstream().delete_consumer(LOG, name)


async def _reader(connection: Client, **start: Any) -> str:
    config = ConsumerConfig(
        ack_policy=AckPolicy.NONE,
        inactive_threshold=_FORGOTTEN_AFTER,
        mem_storage=True,
        num_replicas=1,
        **start,
    )
    return (await connection.jetstream().add_consumer(LOG, config)).name


class _Pages:
    """Pages of a consumer; the next one is asked for when one is taken."""

    def __init__(self, connection: Client, consumer: str, page: int) -> None:
        self._connection = connection
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{LOG}.{consumer}"
        self._request = json.dumps({"batch": page, "max_bytes": PAGE_BYTES, "no_wait": True}).encode()
        self._page = page
        self._inbox = connection.new_inbox()
        self._arrived: list[Msg] = []
        self._is_over = asyncio.Event()
        self._delivered = 0
        self._status: str | None = None

    async def __aenter__(self) -> Self:
        self._subscription = await self._connection.subscribe(self._inbox, cb=self._take)
        await self._ask()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._subscription.unsubscribe()

    async def next(self) -> list[Delivery]:
        """The next page; empty at the end of the log."""
        try:
            await asyncio.wait_for(self._is_over.wait(), TIMEOUT)
        except TimeoutError as error:
            raise nats.errors.TimeoutError from error
        messages, self._arrived = self._arrived, []
        if self._status and self._status not in (_ENDS_OF_A_PAGE if messages else {_NO_MORE}):
            raise LogInterrupted
        self._delivered += len(messages)
        # The server numbers what it delivers: what got lost is missed at the end of a page.
        if messages and int(messages[-1].reply.rsplit(".", 3)[1]) != self._delivered:
            raise LogInterrupted
        if messages:
            await self._ask()
        return [Delivery.of(message) for message in messages]

    async def _ask(self) -> None:
        self._is_over.clear()
        self._status = None
        await self._connection.publish(self._subject, self._request, reply=self._inbox)

    async def _take(self, message: Msg) -> None:
        status = message.headers.get(Header.STATUS) if message.headers else None
        if status is not None and not message.reply:
            self._status = status
            self._is_over.set()
            return
        self._arrived.append(message)
        if len(self._arrived) >= self._page:
            self._is_over.set()
