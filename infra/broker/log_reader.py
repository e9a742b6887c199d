"""Reading one user's events straight from the log."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from contracts.streams import LOG
from contracts.subjects import user_filters
from infra.broker.delivery import Delivery

TAIL_LIMIT = 500
"""Events of one user that are read past the projections, at most."""


async def user_tail(stream_context: JetStreamContext, tenant: str, user: str, after: int) -> list[Delivery]:
    """The user's events beyond a log position, in log order, `TAIL_LIMIT` at most.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    tails = await asyncio.gather(
        *(_collect(stream_context, pattern, after) for pattern in user_filters(tenant, user))
    )
    return sorted((each for tail in tails for each in tail), key=lambda each: each.sequence)[:TAIL_LIMIT]


async def _collect(stream_context: JetStreamContext, pattern: str, after: int) -> list[Delivery]:
    found: list[Delivery] = []
    async for delivery in _events(stream_context, pattern, after):
        found.append(delivery)
        if len(found) == TAIL_LIMIT:
            break
    return found


async def _events(stream_context: JetStreamContext, pattern: str, after: int) -> AsyncIterator[Delivery]:
    while True:
        try:
            message = await stream_context.get_msg(
                LOG, seq=after + 1, subject=pattern, direct=True, next=True
            )
        except NotFoundError:
            return
        headers = message.headers or {}
        after = int(headers["Nats-Sequence"])
        yield Delivery(
            subject=headers["Nats-Subject"],
            body=message.data or b"",
            message_id=headers.get("Nats-Msg-Id"),
            stream=LOG,
            sequence=after,
            deliveries=1,
            stored_at=datetime.fromisoformat(headers["Nats-Time-Stamp"]).timestamp(),
        )
