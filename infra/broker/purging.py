"""Removing all that streams hold of a user, for good; and what is left of it."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Final

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from contracts.base import InvalidBody
from contracts.decode import UnknownEvent, decode
from contracts.memory import UserErasedV1
from contracts.streams import DEAD, LOG, WORK
from contracts.subjects import letter_filters, parse, thing_filter, trigger_filters, user_filters
from infra.broker.letters import remove
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
                await remove(connection, stream, position)
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


async def left_of(connection: Client, owner: Owner, erased: tuple[int, datetime] | None) -> dict[str, int]:
    """How many messages there are of a user, by store.

    Args:
        connection: where the streams are.
        owner: whose.
        erased: only those below that log position, and elsewhere from before that time; None: all.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    if erased is None:
        counting = {
            "log": [_count(connection, LOG, each) for each in user_filters(*owner)],
            "dead_letters": [_count(connection, DEAD, each) for each in letter_filters(*owner)],
            "work": [_count(connection, WORK, each) for each in trigger_filters(*owner)],
        }
    else:
        below, before = erased
        counting = {
            "log": [_count_below(connection, each, below) for each in user_filters(*owner)],
            "dead_letters": [_count_letters(connection, each, before) for each in letter_filters(*owner)],
            "work": [_count_triggers(connection, each, before) for each in trigger_filters(*owner)],
        }
    return {store: sum(await asyncio.gather(*counts)) for store, counts in counting.items()}


async def found_in(connection: Client, owner: Owner, words: str) -> dict[str, int]:
    """How many events and dead letters of a user hold some words, in whatever case.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    return {
        "log": sum([await _count_with(connection, LOG, each, words) for each in user_filters(*owner)]),
        "dead_letters": sum(
            [await _count_with(connection, DEAD, each, words) for each in letter_filters(*owner)]
        ),
    }


async def _count_with(connection: Client, stream: str, pattern: str, words: str) -> int:
    count = 0
    async with aclosing(stored(connection, stream, pattern, 0)) as answers:
        async for page in answers:
            count += sum(words.lower() in _plain(message.data).lower() for message in page)
    return count


def _plain(body: bytes) -> str:
    """What a body says, where it is JSON without its escapes."""
    try:
        return json.dumps(json.loads(body), ensure_ascii=False)
    except ValueError:
        return body.decode(errors="replace")


async def _count(connection: Client, stream: str, pattern: str) -> int:
    info = await connection.jetstream().stream_info(stream, subjects_filter=pattern)
    return sum((info.state.subjects or {}).values())


async def _count_letters(connection: Client, pattern: str, before: datetime) -> int:
    count = 0
    async with aclosing(stored(connection, DEAD, pattern, 0)) as answers:
        async for page in answers:
            times = [(message.headers or {})["Nats-Time-Stamp"] for message in page]
            count += sum(datetime.fromisoformat(time) < before for time in times)
    return count


async def _count_triggers(connection: Client, pattern: str, before: datetime) -> int:
    """There is one of each subject."""
    stream_context = connection.jetstream()
    subjects = (await stream_context.stream_info(WORK, subjects_filter=pattern)).state.subjects or {}
    count = 0
    for subject in subjects:
        with suppress(NotFoundError):  # somebody has taken it
            at = (await stream_context.get_last_msg(WORK, subject)).time
            count += at is not None and at < before
    return count


async def _count_below(connection: Client, pattern: str, below: int) -> int:
    async with aclosing(_positions(connection, LOG, pattern, below)) as positions:
        return len([position async for position in positions])
