"""Removing all that streams hold of a user, for good; and what is left of it."""

import asyncio
from contextlib import aclosing

from nats.aio.client import Client

from contracts.base import InvalidBody
from contracts.decode import UnknownEvent, decode
from contracts.memory import UserErasedV1
from contracts.streams import DEAD, LOG, WORK
from contracts.subjects import letter_filters, parse, thing_filter, trigger_filters, user_filters
from infra.broker.log_reader import last_position, pages

Owner = tuple[str, str]
"""A tenant and a user."""


async def erased_up_to(connection: Client, owner: Owner) -> int:
    """The log position below which a user's events are gone, whether they are purged yet or not; 0: none is.

    Raises:
        nats.errors.Error: the log does not answer.
    """
    pattern = thing_filter(*owner, "user")
    if not await last_position(connection, pattern):  # nearly always
        return 0
    erased = 0
    async with aclosing(pages(connection, pattern, 0)) as answers:
        async for page in answers:
            for delivery in page:
                try:
                    event = decode(parse(delivery.subject), delivery.body)
                except (UnknownEvent, InvalidBody):
                    continue  # persist makes a dead letter of it
                if isinstance(event, UserErasedV1) and event.conversation is None:
                    erased = max(erased, min(event.up_to_seq, delivery.sequence))
    return erased


async def purge(connection: Client, owner: Owner, up_to: int) -> None:
    """Remove a user's events below a log position, all dead letters of the user's, and all triggers.

    The triggers say nothing; they are derived again from whatever the user says next.

    Raises:
        nats.errors.Error: not all of it is removed; it may be done again.
    """
    stream_context = connection.jetstream()
    for pattern in user_filters(*owner):
        await stream_context.purge_stream(LOG, seq=up_to, subject=pattern)
    for stream, patterns in ((DEAD, letter_filters(*owner)), (WORK, trigger_filters(*owner))):
        for pattern in patterns:
            await stream_context.purge_stream(stream, subject=pattern)


async def forget(connection: Client, seq: int) -> None:
    """Remove one event of the log; the server writes over it.

    Raises:
        nats.errors.Error: it may still be there.
    """
    await connection.jetstream().delete_msg(LOG, seq)


async def left_of(connection: Client, owner: Owner, below: int | None) -> dict[str, int]:
    """How many messages there are of a user, by store; of the log those below a position, or all for None.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    counting = [_count(connection, DEAD, each) for each in letter_filters(*owner)]
    counting_triggers = [_count(connection, WORK, each) for each in trigger_filters(*owner)]
    if below is None:
        events = [_count(connection, LOG, each) for each in user_filters(*owner)]
    else:
        events = [_count_below(connection, each, below) for each in user_filters(*owner)]
    return {
        "log": sum(await asyncio.gather(*events)),
        "dead_letters": sum(await asyncio.gather(*counting)),
        "work": sum(await asyncio.gather(*counting_triggers)),
    }


async def _count(connection: Client, stream: str, pattern: str) -> int:
    info = await connection.jetstream().stream_info(stream, subjects_filter=pattern)
    return sum((info.state.subjects or {}).values())


async def _count_below(connection: Client, pattern: str, below: int) -> int:
    count = 0
    async with aclosing(pages(connection, pattern, 0)) as answers:
        async for page in answers:
            old = sum(each.sequence < below for each in page)
            count += old
            if old < len(page):
                break
    return count
