"""Giving back what became a dead letter, to be handled once more as what it was; or giving it up for good."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent, decode
from mnemon_contracts.streams import DEAD, LOG, WORK
from mnemon_contracts.subjects import InvalidSubject, parse
from mnemon_infra.broker.dead_letters.listing import Letter, remove, stored_at
from mnemon_infra.broker.outcomes import HEADROOM
from mnemon_infra.broker.streams.log_reader import delivery_of
from mnemon_infra.broker.streams.triggers import decode_given_up, given_up_subject
from mnemon_infra.delivery import Delivery

IsApplied = Callable[[Delivery], Awaitable[bool | None]]
"""Whether something is kept of an event, such as since the log was read anew; None: there is no telling."""

TIMEOUT: Final = 5.0

PROJECTING: Final = "persist"
"""Where this consumer gives an event up, nothing is known of it: it can take another position in the log."""


@dataclass(frozen=True, slots=True)
class GivenBack:
    """It will be handled again. `sequence` is where it is now, in the stream that it came from."""

    sequence: int


@dataclass(frozen=True, slots=True)
class AlreadyApplied:
    """A newer version had handled it already, where it was in the log: only the letter was left."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The letter is still there. `why` is for a person."""

    why: str


async def original_of(connection: Client, letter: Letter) -> Msg | None:
    """The event that a letter is about, as the log has it; None when the log no longer has it.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    # By position alone: a subject that became a dead letter may be none that can be asked for.
    message = await stored_at(connection, LOG, ">", letter.sequence)
    # Clients strip headers: of a subject that ends in white space the letter lacks that.
    if message is None or (message.headers or {})["Nats-Subject"].strip() != letter.subject:
        return None
    return message


async def redrive(
    connection: Client, letter: Letter, is_applied: IsApplied
) -> GivenBack | AlreadyApplied | Kept:
    """Give back what a letter is about, then remove the letter.

    Whatever ends this in between, it can be done again: an event keeps its identity, and a trigger says the
    same however often it comes.

    Raises:
        nats.errors.Error: it is not known how far it came.
    """
    match letter.kind:
        case "event":
            return await _event(connection, letter, is_applied)
        case "trigger":
            return await _trigger(connection, letter)
        case "answer":
            return await _window(connection, letter)


async def drop(connection: Client, letter: Letter, is_applied: IsApplied) -> None:
    """Remove a letter for good, and the event of which nothing could be made.

    Were the event left, the letter would be there again as soon as somebody reads the log from its beginning.

    Raises:
        nats.errors.Error: it is not known how far it came.
    """
    if letter.kind == "event" and letter.consumer == PROJECTING:
        original = await original_of(connection, letter)
        if original is not None and await is_applied(delivery_of(original)) is False:
            await remove(connection, LOG, letter.sequence)
    await remove(connection, DEAD, letter.id)


async def _event(
    connection: Client, letter: Letter, is_applied: IsApplied
) -> GivenBack | AlreadyApplied | Kept:
    """Have the event at the end of the log, instead of where it was.

    It is not left where it was too: whoever reads the log from its beginning after the fix would find it
    there, and put it before what users were shown until now.
    """
    original = await original_of(connection, letter)
    if original is None:
        return Kept("the log no longer has the event: it was erased, or was given back before")
    if await is_applied(delivery_of(original)):
        await remove(connection, DEAD, letter.id)
        return AlreadyApplied()
    headers = _headers(original, letter)
    if _size(headers, original.data) > connection.max_payload:
        return Kept("with its identity it is larger than what the server takes")
    acknowledged = await connection.jetstream().publish(
        letter.subject, original.data, headers=headers, stream=LOG, timeout=TIMEOUT
    )
    if acknowledged.seq == letter.sequence:
        return Kept("it is so new that the server takes it for a repetition: try again in two minutes")
    if letter.consumer == PROJECTING:
        await remove(connection, LOG, letter.sequence)
    await remove(connection, DEAD, letter.id)
    return GivenBack(acknowledged.seq)


async def _trigger(connection: Client, letter: Letter) -> GivenBack | Kept:
    if letter.left_out:
        return Kept(f"the letter had no room for {letter.left_out} of the trigger")
    acknowledged = await connection.jetstream().publish(
        letter.subject, letter.body, stream=WORK, timeout=TIMEOUT
    )
    await remove(connection, DEAD, letter.id)
    return GivenBack(acknowledged.seq)


async def _window(connection: Client, letter: Letter) -> GivenBack | Kept:
    """Have the window asked for once more that the letter was written for."""
    if not letter.is_given_up or letter.owner is None:
        return Kept("what was proposed of the answer is in the log, and the rest is in the letter only")
    try:
        window = decode_given_up(letter.body)
    except InvalidBody:
        return Kept("the letter does not say which messages the model was to read")
    acknowledged = await connection.jetstream().publish(
        given_up_subject(*letter.owner, window), msgspec.json.encode(window), stream=WORK, timeout=TIMEOUT
    )
    await remove(connection, DEAD, letter.id)
    return GivenBack(acknowledged.seq)


def _headers(original: Msg, letter: Letter) -> dict[str, str]:
    """What the bot sent with it, and its identity where that followed from its position."""
    sent = original.headers or {}
    # All else of NATS' own told the server what to do with it then.
    headers = {name: value for name, value in sent.items() if not name.startswith("Nats-")}
    if message_id := sent.get("Nats-Msg-Id"):
        headers["Nats-Msg-Id"] = message_id
    elif not _own_id(letter.subject, original.data):
        headers["Nats-Msg-Id"] = f"{letter.stream}:{letter.sequence}"
    return headers


def _own_id(subject: str, body: bytes) -> object:
    """The id in the body, as far as the body can be read."""
    try:
        return decode(parse(subject), body).id
    except (InvalidSubject, UnknownEvent, InvalidBody):
        pass
    try:
        loose = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return loose.get("id") if isinstance(loose, dict) else None


def _size(headers: dict[str, str], body: bytes) -> int:
    return HEADROOM + len(body) + sum(len(name) + len(value.encode()) + 4 for name, value in headers.items())
