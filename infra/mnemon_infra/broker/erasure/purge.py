"""Permanent removal of the messages in an erasure's scope from all streams, and counts of those left."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import NotFoundError

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent, decode_event
from mnemon_contracts.events.erasure import UserErasedV1
from mnemon_contracts.streams import DEAD, LOG, WORK
from mnemon_contracts.subjects import (
    InvalidSubject,
    Owner,
    build_thing_filter,
    build_user_filters,
    build_user_letter_filters,
    find_letter_origin,
    parse_subject,
)
from mnemon_infra.broker.dead_letters.listing import (
    Letter,
    parse_letter,
    read_letter_subjects,
    remove_message,
)
from mnemon_infra.broker.dead_letters.redrive import find_original
from mnemon_infra.broker.erasure.scope import (
    ErasedConversation,
    Erasures,
    ErasureScope,
    LogRange,
    escape_as_json,
)
from mnemon_infra.broker.streams.log_reader import (
    parse_delivery,
    read_event_pages,
    read_last_position,
    read_stored_messages,
)
from mnemon_infra.broker.streams.triggers import list_trigger_subjects
from mnemon_infra.delivery import Delivery

AT_ONCE: Final = 50
"""Maximum number of events and dead letters that a request reads, or a call of `purge_messages` removes."""


async def read_erasures(connection: Client, owner: Owner) -> Erasures:
    """Return the erasures of a user and of their conversations, from the events `user.erased` in the log.

    Events that cannot be decoded are left out.
    """
    pattern = build_thing_filter(*owner, "user")
    if not await read_last_position(connection, pattern):  # the usual case
        return Erasures()
    erased = Erasures()
    async with aclosing(read_event_pages(connection, pattern, 0)) as answers:
        async for page in answers:
            for delivery in page:
                try:
                    event = decode_event(parse_subject(delivery.subject), delivery.body)
                except (InvalidSubject, UnknownEvent, InvalidBody):
                    continue  # persist makes a dead letter of it
                if isinstance(event, UserErasedV1):
                    erased = _add_erasure(erased, owner, event, delivery)
    return erased


def _add_erasure(erased: Erasures, owner: Owner, event: UserErasedV1, delivery: Delivery) -> Erasures:
    if event.conversation is None:
        return erased._replace(below=max(erased.below, min(event.up_to_seq, delivery.sequence)))
    at = datetime.fromtimestamp(delivery.stored_at, UTC)
    new = ErasedConversation.from_event(owner, event, event.id or "", delivery.sequence, at)
    return erased._replace(conversations=(*erased.conversations, new))


async def purge_messages(connection: Client, erased: ErasureScope) -> bool:
    """Remove the events, dead letters and triggers in the scope of an erasure.

    Events and dead letters are deleted one by one, in 5 to 20 ms each: the server overwrites a deleted
    message on the disk, but not a purged one.

    Returns:
        True if all messages are removed. False if messages are left after `AT_ONCE` removals, so that other
        work proceeds; then the caller has to call again.

    Raises:
        nats.errors.Error: some messages are left; the call can be repeated.
    """
    for pattern in erased.list_trigger_patterns():
        await connection.jetstream().purge_stream(WORK, subject=pattern)
    left = AT_ONCE
    async with aclosing(_find_messages(connection, erased)) as taken:
        async for stream, position in taken:
            if not left:
                return False
            await remove_message(connection, stream, position)
            left -= 1
    return True


async def _find_messages(connection: Client, erased: ErasureScope) -> AsyncGenerator[tuple[str, int], None]:
    """Yield stream and position of each event and dead letter in the scope of an erasure."""
    for place in erased.list_log_ranges():
        async with aclosing(_read_range(connection, place)) as deliveries:
            async for delivery in deliveries:
                if erased.removes(delivery):
                    yield LOG, delivery.sequence
    places = tuple(place.pattern.removesuffix(">") for place in erased.list_log_ranges())
    async with aclosing(_read_letters(connection, erased.owner)) as letters:
        async for letter in letters:
            if not erased.removes_letter(letter):
                continue
            # Remove the log's copy first: only the letter leads to a subject with another spelling.
            if not letter.subject.startswith(places) and await _find_event(connection, letter):
                yield LOG, letter.sequence
            yield DEAD, letter.id


async def _read_letters(connection: Client, owner: Owner) -> AsyncGenerator[Letter, None]:
    """Yield a user's dead letters, with any spelling of the ids in their subjects."""
    for pattern in [*build_user_letter_filters(*owner), *await _find_other_spellings(connection, owner)]:
        async with aclosing(read_stored_messages(connection, DEAD, pattern, 0, AT_ONCE)) as answers:
            async for page in answers:
                for letter in map(parse_letter, page):
                    if letter.owner == owner:
                        yield letter


async def _find_other_spellings(connection: Client, owner: Owner) -> list[str]:
    """Return the subjects of a user's dead letters that no filter of `build_user_letter_filters` matches."""
    usual = tuple(f".{each.removesuffix('>')}" for each in build_user_filters(*owner))
    async with aclosing(read_letter_subjects(connection)) as subjects:
        others = [each async for each in subjects if not any(prefix in each for prefix in usual)]
    return [each for each in others if (origin := find_letter_origin(each)) and origin.owner == owner]


async def _find_event(connection: Client, letter: Letter) -> Msg | None:
    return await find_original(connection, letter) if letter.kind == "event" else None


async def _read_range(connection: Client, place: LogRange) -> AsyncGenerator[Delivery, None]:
    async with aclosing(
        read_stored_messages(connection, LOG, place.pattern, place.begin - 1, AT_ONCE)
    ) as answers:
        async for page in answers:
            for delivery in map(parse_delivery, page):
                if delivery.sequence >= place.end:
                    return
                yield delivery


async def count_remaining_messages(connection: Client, erased: ErasureScope) -> dict[str, int]:
    """Count the messages in the scope of an erasure that are left, as `log`, `dead_letters` and `work`."""
    counts = {LOG: 0, DEAD: 0}
    async with aclosing(_find_messages(connection, erased)) as taken:
        async for stream, _ in taken:
            counts[stream] += 1
    work = [await _count_triggers(connection, each, erased.at) for each in erased.list_trigger_patterns()]
    return {"log": counts[LOG], "dead_letters": counts[DEAD], "work": sum(work)}


async def count_matches(connection: Client, owner: Owner, words: str) -> dict[str, int]:
    """Count the events and dead letters of a user that contain the text `words`, in any letter case.

    The counts have the keys `log` and `dead_letters`.
    """
    counts = {LOG: 0, DEAD: 0}
    texts = [each.lower() for each in (words, *escape_as_json(words))]
    usual = build_user_filters(*owner)
    for pattern in usual:
        async with aclosing(read_stored_messages(connection, LOG, pattern, 0)) as answers:
            async for page in answers:
                counts[LOG] += sum(_contains_any(message.data, texts) for message in page)
    async with aclosing(_read_letters(connection, owner)) as letters:
        async for letter in letters:
            counts[DEAD] += _contains_any(letter.body, texts)
            if not letter.subject.startswith(tuple(each.removesuffix(">") for each in usual)):
                event = await _find_event(connection, letter)
                counts[LOG] += event is not None and _contains_any(event.data, texts)
    return {"log": counts[LOG], "dead_letters": counts[DEAD]}


def _contains_any(body: bytes, texts: Sequence[str]) -> bool:
    r"""Return whether a body contains one of `texts`, which are in lower case.

    Letter case in the body, and escapes in its JSON such as `\u00e9`, make no difference.
    """
    try:
        plain = json.dumps(json.loads(body), ensure_ascii=False).lower()
    except (ValueError, RecursionError):
        plain = body.decode(errors="replace").lower()
    return any(each in plain for each in texts)


async def _count_triggers(connection: Client, pattern: str, before: datetime) -> int:
    """Count the triggers of `pattern` that were stored before the time `before`, at most one per subject."""
    count = 0
    for subject in await list_trigger_subjects(connection, pattern):
        with suppress(NotFoundError):  # a consumer has taken it meanwhile
            at = (await connection.jetstream().get_last_msg(WORK, subject)).time
            count += at is not None and at < before
    return count
