"""Removing all that streams hold of a user, for good; and what is left of it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from nats.aio.client import Client

from contracts.base import InvalidBody
from contracts.decode import UnknownEvent, decode
from contracts.memory import UserErasedV1
from contracts.streams import DEAD, LOG, WORK
from contracts.subjects import letter_filters, parse, thing_filter, trigger_filters, user_filters
from infra.broker.log_reader import last_position, pages, stored

Owner = tuple[str, str]
"""A tenant and a user."""

AT_ONCE: Final = 50
"""Texts that are written over before somebody else has a turn."""

EVERYWHERE: Final = 2**63 - 1
"""Beyond every log position."""


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


async def purge(connection: Client, owner: Owner, up_to: int) -> bool:
    """Remove a user's events below a log position, all dead letters of the user's, and all triggers.

    Texts are written over, one after another, which takes 5 to 20 ms each: what is only purged stays on the
    disk. The triggers say nothing; they are derived again from whatever the user says next.

    Returns:
        Whether that is all; after `AT_ONCE` it is not, and is to be asked for again: others wait, too.

    Raises:
        nats.errors.Error: not all of it is removed; it may be done again.
    """
    stream_context = connection.jetstream()
    for pattern in trigger_filters(*owner):
        await stream_context.purge_stream(WORK, subject=pattern)
    places = [(LOG, each, up_to) for each in user_filters(*owner)]
    places += [(DEAD, each, EVERYWHERE) for each in letter_filters(*owner)]
    left = AT_ONCE
    for stream, pattern, below in places:
        async with aclosing(_positions(connection, stream, pattern, below)) as positions:
            async for position in positions:
                if not left:
                    return False
                await stream_context.delete_msg(stream, position)
                left -= 1
    return True


async def _positions(connection: Client, stream: str, pattern: str, below: int) -> AsyncGenerator[int, None]:
    """Where a stream has something of a subject pattern below a position."""
    async with aclosing(stored(connection, stream, pattern, 0, AT_ONCE)) as answers:
        async for page in answers:
            for message in page:
                position = int((message.headers or {})["Nats-Sequence"])
                if position >= below:
                    return
                yield position


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
    async with aclosing(_positions(connection, LOG, pattern, below)) as positions:
        return len([position async for position in positions])
