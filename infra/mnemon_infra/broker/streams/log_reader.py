"""Reader of a stream by subject, such as the events of one user, with many messages per request."""

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.js.api import Header
from nats.js.errors import APIError, NotFoundError

from mnemon_contracts.base import Event
from mnemon_contracts.decode import decode_event
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import Address, build_user_filters, parse_subject
from mnemon_infra.broker.patches import parse_header_lines
from mnemon_infra.delivery import MOVED, Delivery, read_message_id, read_original_time

TAIL_LIMIT = 500
"""Maximum number of a user's events that are read beyond the applied position."""

PAGE = 256
"""Default maximum number of messages in one answer of `read_stored_messages`."""

PAGE_BYTES: Final = 4 * 1024 * 1024
TIMEOUT = 5.0
"""Maximum seconds until an answer begins, and between two of its messages."""

_UNAVAILABLE = "503"


async def read_user_tail(connection: Client, tenant: str, user: str, after: int) -> list[Delivery]:
    """Return the first events of a user beyond the position `after`, at most `TAIL_LIMIT`, in log order."""
    tails = await asyncio.gather(
        *(_read_first(connection, pattern, after) for pattern in build_user_filters(tenant, user))
    )
    return sorted((each for tail in tails for each in tail), key=lambda each: each.sequence)[:TAIL_LIMIT]


async def _read_first(connection: Client, pattern: str, after: int) -> list[Delivery]:
    found: list[Delivery] = []
    async with aclosing(read_event_pages(connection, pattern, after)) as answers:
        async for page in answers:
            found += page
            if len(found) >= TAIL_LIMIT:
                break
    return found


async def read_last_position(connection: Client, *patterns: str) -> int:
    """Return the log position of the last event of any of the subject patterns; 0 if there is none."""
    stream_context = connection.jetstream()

    async def read_last(pattern: str) -> int:
        try:
            return (await stream_context.get_last_msg(LOG, pattern)).seq or 0
        except NotFoundError:
            return 0

    return max(await asyncio.gather(*map(read_last, patterns)), default=0)


async def read_event_pages(
    connection: Client, pattern: str, after: int
) -> AsyncGenerator[list[Delivery], None]:
    """Yield the events of a subject pattern beyond the log position `after`, in log order, page by page.

    The pages have every event that the log has acknowledged. In a cluster any server with a copy answers, and
    its copy may be behind; so the function asks the leader of the log for later events at the end.
    """
    more = True
    while more:
        async with aclosing(read_stored_messages(connection, LOG, pattern, after)) as answers:
            async for page in answers:
                yield [parse_delivery(message) for message in page]
                after = int((page[-1].headers or {})["Nats-Sequence"])
        beyond = await _read_next(connection, pattern, after) if _is_cluster(connection) else None
        if beyond is not None:
            yield [beyond]
            after = beyond.sequence
        more = beyond is not None


def _is_cluster(connection: Client) -> bool:
    return "cluster" in connection._server_info


async def _read_next(connection: Client, pattern: str, after: int) -> Delivery | None:
    """Return the first event of a subject pattern beyond the log position `after`; None if there is none.

    The function asks the leader of the log.
    """
    try:
        return await _ask_leader(connection, {"seq": after + 1, "next_by_subj": pattern})
    except NotFoundError:
        return None


async def read_delivery(connection: Client, position: int) -> Delivery:
    """Return the event at a log position.

    Raises:
        nats.js.errors.NotFoundError: the log has no event at this position.
        nats.errors.Error: the server does not answer.
    """
    return await _ask_leader(connection, {"seq": position})


async def _ask_leader(connection: Client, request: Mapping[str, object]) -> Delivery:
    """Return an event from the leader of the log; nats-py would cut the event's time to microseconds."""
    subject = f"$JS.API.STREAM.MSG.GET.{LOG}"
    reply = await connection.request(subject, json.dumps(request).encode(), timeout=TIMEOUT)
    answer = json.loads(reply.data)
    if "error" in answer:
        raise APIError.from_error(answer["error"])
    found = answer["message"]
    _, _, lines = b64decode(found.get("hdrs", "")).partition(b"\r\n")
    headers = parse_header_lines(lines)
    return Delivery(
        subject=found["subject"],
        body=b64decode(found.get("data", "")),
        message_id=read_message_id(headers),
        stream=LOG,
        sequence=found["seq"],
        deliveries=1,
        stored_at=read_original_time(headers, found["seq"], parse_nanoseconds(found["time"])) / 1e9,
        traceparent=headers.get("traceparent"),
        is_moved=MOVED in headers,
    )


async def read_stored_messages(
    connection: Client, stream: str, pattern: str, after: int, most: int = PAGE
) -> AsyncGenerator[list[Msg], None]:
    """Yield the messages of a subject pattern beyond the position `after`, up to `most` at a time.

    The messages are as the server sends them: subject, position and time are in the headers `Nats-Subject`,
    `Nats-Sequence` and `Nats-Time-Stamp`.

    Raises:
        nats.errors.Error: the server does not answer, or the stream is absent.
    """
    inbox = connection.new_inbox()
    answers = await connection.subscribe(inbox)
    try:
        more = True
        while more:
            request = {"seq": after + 1, "next_by_subj": pattern, "batch": most, "max_bytes": PAGE_BYTES}
            await connection.publish(
                f"$JS.API.DIRECT.GET.{stream}", json.dumps(request).encode(), reply=inbox
            )
            page: list[Msg] = []
            while "Nats-Sequence" in (headers := (message := await answers.next_msg(TIMEOUT)).headers or {}):
                page.append(message)
            if headers.get(Header.STATUS) == _UNAVAILABLE:
                raise NoRespondersError
            if page:
                after = int((page[-1].headers or {})["Nats-Sequence"])
                yield page
            more = bool(page) and headers.get("Nats-Num-Pending", "0") != "0"
    finally:
        await answers.unsubscribe()


async def read_events(
    connection: Client, pattern: str, after: int
) -> AsyncGenerator[tuple[Delivery, Address, Event], None]:
    """Yield the events of a subject pattern beyond the log position `after`, in log order.

    Each event comes with the address that its subject names.

    Raises:
        nats.errors.Error: the server does not answer.
        InvalidSubject, UnknownEvent, InvalidBody: a message is not a valid event.
    """
    async with aclosing(read_event_pages(connection, pattern, after)) as answers:
        async for page in answers:
            for delivery in page:
                address = parse_subject(delivery.subject)
                yield delivery, address, decode_event(address, delivery.body)


def parse_delivery(message: Msg) -> Delivery:
    """Return a message from `read_stored_messages` as the delivery that a consumer would get."""
    headers = message.headers or {}
    return Delivery(
        subject=headers["Nats-Subject"],
        body=message.data or b"",
        message_id=read_message_id(headers),
        stream=headers["Nats-Stream"],
        sequence=int(headers["Nats-Sequence"]),
        deliveries=1,
        stored_at=read_original_time(
            headers, int(headers["Nats-Sequence"]), parse_nanoseconds(headers["Nats-Time-Stamp"])
        )
        / 1e9,
        traceparent=headers.get("traceparent"),
        is_moved=MOVED in headers,
    )


def parse_nanoseconds(stamp: str) -> int:
    """Convert a time of the server to nanoseconds since 1970.

    No digit may be lost: a time that differs by a microsecond makes a different row of the same event.
    """
    seconds = int(datetime.fromisoformat(stamp).replace(microsecond=0).timestamp())
    fraction = stamp.partition(".")[2].removesuffix("Z")
    return int(f"{seconds}{fraction:0<9}")
