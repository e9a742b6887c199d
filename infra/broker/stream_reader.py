"""Reading a stream from one end to the other, as fast as one reader can, in little memory."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Final

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.api import AckPolicy, ConsumerConfig, ConsumerInfo, DeliverPolicy
from nats.js.errors import NotFoundError

from infra.broker.delivery import Delivery

Read = tuple[Msg, Delivery]
"""A message as it was sent, and what the stream says of it."""

PAGE: Final = 1000
"""Messages of a page, at most."""

PAGE_BYTES: Final = 16 * 1024 * 1024
"""Bytes of a page, at most: more than the largest message that a server takes here."""

PATIENCE: Final = 5.0
"""Seconds for which a page may stand still before it is asked for anew."""

TRIES: Final = 6
"""How often it is begun anew without a single message."""

FORGOTTEN_AFTER: Final = 60.0
"""Seconds after which the server drops the place of a reader that is gone."""


async def whole(
    connection: Client, stream: str, *, up_to: int, headers_only: bool = False
) -> AsyncGenerator[list[Read], None]:
    """All messages of a stream up to a position, in its order, page by page; none twice, none left out.

    Args:
        connection: where the stream is.
        stream: its name.
        up_to: the last position that is read.
        headers_only: leave the bodies where they are.

    Raises:
        nats.errors.Error: the server does not answer, or there is no such stream.
    """
    after, tries = 0, 0
    while after < up_to and tries < TRIES:
        place = await _place(connection, stream, after, headers_only)
        tries += 1
        if not place.num_pending:
            return
        async with aclosing(_from(connection, place)) as pages:
            async for page in pages:
                after, tries = page[-1][1].sequence, 0
                if wanted := [each for each in page if each[1].sequence <= up_to]:
                    yield wanted
                if after >= up_to:
                    break
        with suppress(NotFoundError):
            await connection.jetstream().delete_consumer(stream, place.name)
    if after < up_to:
        raise nats.errors.TimeoutError


async def _place(connection: Client, stream: str, after: int, headers_only: bool) -> ConsumerInfo:
    """A place that the server keeps for this reader."""
    config = ConsumerConfig(
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=after + 1,
        ack_policy=AckPolicy.NONE,
        mem_storage=True,
        num_replicas=1,
        headers_only=headers_only or None,
        inactive_threshold=FORGOTTEN_AFTER,
    )
    return await connection.jetstream().add_consumer(stream, config)


async def _from(connection: Client, place: ConsumerInfo) -> AsyncGenerator[list[Read], None]:
    """The pages from a place on, until the stream is over or a message was lost on its way."""
    subject = f"$JS.API.CONSUMER.MSG.NEXT.{place.stream_name}.{place.name}"
    inbox = connection.new_inbox()
    answers = await connection.subscribe(inbox)
    taken, remaining = 0, place.num_pending or 0
    try:
        while remaining:
            wanted = min(PAGE, remaining)
            request = {"batch": wanted, "max_bytes": PAGE_BYTES, "expires": int(PATIENCE * 1e9)}
            await connection.publish(subject, json.dumps(request).encode(), reply=inbox)
            page = await _page(answers, wanted, taken)
            if not page:
                return
            yield page
            taken += len(page)
            remaining = _counted(page[-1][0])[1]
    finally:
        await answers.unsubscribe()


async def _page(answers: Subscription, wanted: int, taken: int) -> list[Read]:
    """What comes of one request; it ends early where the server says so, is silent, or one is left out."""
    page: list[Read] = []
    with suppress(nats.errors.TimeoutError):
        while len(page) < wanted:
            message = await answers.next_msg(PATIENCE)
            if not message.reply or _counted(message)[0] != taken + len(page) + 1:
                break
            page.append((message, Delivery.of(message)))
    return page


def _counted(message: Msg) -> tuple[int, int]:
    """The number of a message among all that were sent to this place, and how many are still to come."""
    fields = message.reply.split(".")
    if len(fields) > 9:  # with a domain, as in `Delivery.of`
        fields = fields[2:]
    return int(fields[6]), int(fields[8])
