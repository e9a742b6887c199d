"""Tail of the log: events in the order in which the log stores them, page by page, without an end.

Events that arrive while a page is in use wait in this process and form the next page: a reader that is slower
than the bots gets fewer, larger pages.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Final, Self

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import ConsumerInfo, DeliverPolicy, Header
from nats.js.errors import ServiceUnavailableError

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.streams.stream_reader import TOO_LARGE, open_consumer, parse_consumer_count
from mnemon_infra.delivery import Delivery

PAGE: Final = 1000
"""Maximum number of events of a page."""

PAGE_BYTES: Final = 4 * 1024 * 1024
"""Maximum bytes that the server sends for one request; an event that is larger is a page of its own.

A server closes a connection for which more than 64 MB wait to be sent, and a process may have many tails.
"""

REQUEST_SECONDS: Final = 30.0
"""Seconds for which the server keeps one request for events open."""

HEARTBEAT_SECONDS: Final = 5.0
"""Seconds between two heartbeats of a server that has nothing to send."""

TAIL_TIMEOUT: Final = 60.0
"""Seconds for which the tail tries to open its consumer before it raises an error."""

_PAUSE: Final = 0.5
_HEARTBEAT: Final = "100"
_EXPIRED: Final = "408"


async def stream_log_tail(
    connection: Client, pattern: str, after: int, *, headers_only: bool = True
) -> AsyncGenerator[list[Delivery], None]:
    """Yield the events of a subject pattern beyond the log position `after`, in log order, as they come.

    No event is skipped or repeated, even if the server restarts or the connection breaks. With
    `headers_only`, bodies are empty: the subject names the user and the event.

    Raises:
        nats.errors.Error: the server has not answered for `TAIL_TIMEOUT` seconds, or the log is absent.
    """
    while True:
        consumer = await _open_tail_consumer(connection, pattern, after, headers_only)
        try:
            async with _Arrivals(connection, consumer) as arrivals:
                while page := await arrivals.next_page():
                    after = page[-1].sequence
                    yield page
        finally:
            # If this request fails, the server drops the consumer later.
            with suppress(nats.errors.Error):
                await connection.jetstream().delete_consumer(LOG, consumer.name)


async def _open_tail_consumer(
    connection: Client, pattern: str, after: int, headers_only: bool
) -> ConsumerInfo:
    loop = asyncio.get_running_loop()
    end = loop.time() + TAIL_TIMEOUT
    while True:
        try:
            return await open_consumer(
                connection,
                LOG,
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=after + 1,
                filter_subject=pattern,
                headers_only=headers_only,
            )
        except (
            nats.errors.TimeoutError,
            nats.errors.NoRespondersError,
            nats.errors.ConnectionReconnectingError,
            ServiceUnavailableError,
        ):
            if loop.time() > end:
                raise
            await asyncio.sleep(_PAUSE)  # no server announces its return


class _Arrivals:
    """Messages from a consumer of the log. When all requested messages have arrived, more are requested."""

    def __init__(self, connection: Client, consumer: ConsumerInfo) -> None:
        self._connection = connection
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{consumer.stream_name}.{consumer.name}"
        self._inbox = connection.new_inbox()
        self._taken = 0
        self._left = 0
        self._is_next_large = False
        self._is_lost = False

    async def __aenter__(self) -> Self:
        self._subscription = await self._connection.subscribe(self._inbox)
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(nats.errors.Error):
            await self._subscription.unsubscribe()

    async def next_page(self) -> list[Delivery]:
        """Wait for events and return those that have arrived, at most `PAGE`.

        An empty result means that the tail has to be opened again: the server sent neither an event nor a
        heartbeat for three times `HEARTBEAT_SECONDS`, the server ended the request with an error, or a
        delivery was lost. Events that arrived before are returned first.
        """
        page: list[Delivery] = []
        while not page and not self._is_lost:
            if self._left == 0:
                await self._request_events()
            try:
                page += self._take_event(await self._subscription.next_msg(3 * HEARTBEAT_SECONDS))
            except nats.errors.TimeoutError:
                self._is_lost = True
            while len(page) < PAGE and not self._is_lost and self._subscription.pending_msgs:
                page += self._take_event(await self._subscription.next_msg())
        return page

    async def _request_events(self) -> None:
        limits = {"batch": 1} if self._is_next_large else {"batch": PAGE, "max_bytes": PAGE_BYTES}
        times = {
            "expires": int(REQUEST_SECONDS * 1e9),
            "idle_heartbeat": int(HEARTBEAT_SECONDS * 1e9),
        }
        await self._connection.publish(
            self._subject, json.dumps({**limits, **times}).encode(), reply=self._inbox
        )
        self._left = limits["batch"]
        self._is_next_large = False

    def _take_event(self, message: Msg) -> list[Delivery]:
        """Count a message, and return its event in a list; empty for a status or after a lost delivery."""
        if not message.reply:
            headers = message.headers or {}
            status, is_too_large = headers.get(Header.STATUS), headers.get(Header.DESCRIPTION) == TOO_LARGE
            if status != _HEARTBEAT:
                self._is_next_large = is_too_large and self._left == PAGE
                self._left = 0
                self._is_lost = status != _EXPIRED and not is_too_large
            return []
        number, _ = parse_consumer_count(message)
        self._taken += 1
        self._left -= 1
        self._is_lost = number != self._taken
        return [] if self._is_lost else [Delivery.from_message(message)]
