"""Removing all that streams hold of a user, for good; and what is left of it."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Final

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from contracts.base import InvalidBody
from contracts.decode import UnknownEvent, decode
from contracts.erasure import UserErasedV1
from contracts.streams import DEAD, LOG, WORK
from contracts.subjects import letter_filters, parse, thing_filter, user_filters
from infra.broker.delivery import Delivery
from infra.broker.letters import letter_of, remove
from infra.broker.log_reader import delivery_of, last_position, pages, stored
from infra.broker.triggers import waiting
from infra.erased import ErasedConversation, Erasures, Owner, Place, Taking

AT_ONCE: Final = 50
"""Texts that are written over before somebody else has a turn."""


async def erasures_of(connection: Client, owner: Owner) -> Erasures:
    """What the log says of a user that is gone.

    Raises:
        nats.errors.Error: the log does not answer.
    """
    pattern = thing_filter(*owner, "user")
    if not await last_position(connection, pattern):  # nearly always
        return Erasures()
    erased = Erasures()
    async with aclosing(pages(connection, pattern, 0)) as answers:
        async for page in answers:
            for delivery in page:
                try:
                    event = decode(parse(delivery.subject), delivery.body)
                except (UnknownEvent, InvalidBody):
                    continue  # persist makes a dead letter of it
                if isinstance(event, UserErasedV1):
                    erased = _with(erased, owner, event, delivery)
    return erased


def _with(erased: Erasures, owner: Owner, event: UserErasedV1, delivery: Delivery) -> Erasures:
    if event.conversation is None:
        return erased._replace(below=max(erased.below, min(event.up_to_seq, delivery.sequence)))
    at = datetime.fromtimestamp(delivery.stored_at, UTC)
    new = ErasedConversation.of(owner, event, event.id or "", delivery.sequence, at)
    return erased._replace(conversations=(*erased.conversations, new))


async def purge(connection: Client, erased: Taking) -> bool:
    """Remove the events, dead letters and triggers that an erasure takes.

    Texts are written over, one after another, which takes 5 to 20 ms each: what is only purged stays on the
    disk.

    Returns:
        Whether that is all; after `AT_ONCE` it is not, and is to be asked for again: others wait, too.

    Raises:
        nats.errors.Error: not all of it is removed; it may be done again.
    """
    for pattern in erased.triggers():
        await connection.jetstream().purge_stream(WORK, subject=pattern)
    left = AT_ONCE
    async with aclosing(_taken(connection, erased)) as taken:
        async for stream, position in taken:
            if not left:
                return False
            await remove(connection, stream, position)
            left -= 1
    return True


async def _taken(connection: Client, erased: Taking) -> AsyncGenerator[tuple[str, int], None]:
    """The events and the dead letters that an erasure takes: in which stream, and where."""
    for place in erased.places():
        async with aclosing(_within(connection, place)) as deliveries:
            async for delivery in deliveries:
                if erased.takes(delivery):
                    yield LOG, delivery.sequence
    for pattern in letter_filters(*erased.owner):
        async with aclosing(stored(connection, DEAD, pattern, 0, AT_ONCE)) as answers:
            async for page in answers:
                for letter in map(letter_of, page):
                    if erased.takes_letter(letter):
                        yield DEAD, letter.id


async def _within(connection: Client, place: Place) -> AsyncGenerator[Delivery, None]:
    async with aclosing(stored(connection, LOG, place.pattern, place.begin - 1, AT_ONCE)) as answers:
        async for page in answers:
            for delivery in map(delivery_of, page):
                if delivery.sequence >= place.end:
                    return
                yield delivery


async def left_of(connection: Client, erased: Taking) -> dict[str, int]:
    """How many messages there are of what an erasure takes, by store.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    counts = {LOG: 0, DEAD: 0}
    async with aclosing(_taken(connection, erased)) as taken:
        async for stream, _ in taken:
            counts[stream] += 1
    work = [await _count_triggers(connection, each, erased.at) for each in erased.triggers()]
    return {"log": counts[LOG], "dead_letters": counts[DEAD], "work": sum(work)}


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


async def _count_triggers(connection: Client, pattern: str, before: datetime) -> int:
    """There is one of each subject."""
    count = 0
    for subject in await waiting(connection, pattern):
        with suppress(NotFoundError):  # somebody has taken it
            at = (await connection.jetstream().get_last_msg(WORK, subject)).time
            count += at is not None and at < before
    return count
