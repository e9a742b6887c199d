"""Redrive of dead letters: publish the original again for its consumer, or remove the letter."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent, decode_event
from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.streams import DEAD, LOG, WORK
from mnemon_contracts.subjects import InvalidSubject, parse_subject
from mnemon_infra.broker.dead_letters.listing import Letter, find_message, remove_message
from mnemon_infra.broker.outcomes import measure_message
from mnemon_infra.broker.streams.log_reader import parse_delivery
from mnemon_infra.broker.streams.triggers import build_given_up_window_subject, decode_given_up_window
from mnemon_infra.delivery import MOVED, Delivery, read_message_id

IsApplied = Callable[[Delivery], Awaitable[bool | None]]
"""Function that returns whether the projections contain an event, for example since a replay of the log.

None stands for an event of a kind that has no rows.
"""

TIMEOUT: Final = 5.0

PROJECTING: Final = "persist"
"""The consumer that projects events.

The projections contain nothing of an event that is a dead letter of this consumer, so the event can move to
another position in the log.
"""


@dataclass(frozen=True, slots=True)
class RedrivenLetter:
    """Result of a redrive that published a message, at the position `sequence` of its stream.

    The message is the original or, for a window, a trigger.
    """

    sequence: int


@dataclass(frozen=True, slots=True)
class AppliedLetter:
    """Result of a redrive: the projections had the event already, so only the letter was removed."""


@dataclass(frozen=True, slots=True)
class KeptLetter:
    """Result of a redrive that left the letter in place. `why` is a sentence for an operator."""

    why: str


RedriveResult = RedrivenLetter | AppliedLetter | KeptLetter


async def find_original(connection: Client, letter: Letter) -> Msg | None:
    """Return the event that became a dead letter, from its position in the log.

    Returns:
        None if the log has no event at this position, or an event with another subject.
    """
    # Find the event by its position alone: no request can name the subjects of some dead letters.
    message = await find_message(connection, LOG, letter.sequence)
    # Clients strip headers, so the letter lacks white space at the end of a subject.
    if message is None or (message.headers or {})["Nats-Subject"].strip() != letter.subject:
        return None
    return message


async def redrive_letter(connection: Client, letter: Letter, is_applied: IsApplied) -> RedriveResult:
    """Publish the original of a letter again, or a trigger for a window, then remove the letter.

    If the projections have the event already, only the letter is removed. A letter whose original cannot be
    published stays. A redrive that is interrupted can be repeated: an event keeps its identity, and a trigger
    that is sent twice has the effect of one.

    Raises:
        nats.errors.Error: it is unknown which steps were done.
    """
    match letter.kind:
        case "event":
            return await _redrive_event(connection, letter, is_applied)
        case "trigger":
            return await _redrive_trigger(connection, letter)
        case "answer":
            return await _redrive_window(connection, letter)


async def drop_letter(connection: Client, letter: Letter, is_applied: IsApplied) -> None:
    """Remove a letter permanently, and with a letter of `persist` the event, if the projections lack its row.

    If the event stayed, `persist` would make the letter again when it reads the log from the start. An event
    of a kind that has no rows stays.

    Raises:
        nats.errors.Error: it is unknown which steps were done.
    """
    if letter.kind == "event" and letter.consumer == PROJECTING:
        original = await find_original(connection, letter)
        if original is not None and await is_applied(parse_delivery(original)) is False:
            await remove_message(connection, LOG, letter.sequence)
    await remove_message(connection, DEAD, letter.id)


async def _redrive_event(connection: Client, letter: Letter, is_applied: IsApplied) -> RedriveResult:
    """Publish the event again, at the end of the log.

    An event that is a dead letter of `persist` is removed from its former position: if it stayed there, a
    replay of the log after the fix would apply it before later events whose effects users have already seen.
    """
    original = await find_original(connection, letter)
    if original is None:
        return KeptLetter(
            "the log no longer has the event, which was erased or was redriven before: drop the letter"
        )
    if await is_applied(parse_delivery(original)):
        await remove_message(connection, DEAD, letter.id)
        return AppliedLetter()
    headers = _build_headers(original, letter)
    if measure_message(headers, original.data) > connection.max_payload:
        return KeptLetter(
            "the event with its headers exceeds the maximum size of a message at the server: raise "
            "`max_payload` of the server, then redrive again"
        )
    acknowledged = await connection.jetstream().publish(
        letter.subject, original.data, headers=headers, stream=LOG, timeout=TIMEOUT
    )
    if acknowledged.seq == letter.sequence:
        return KeptLetter(
            "the event is so new that the server regards it as a duplicate: try again in two minutes"
        )
    if letter.consumer == PROJECTING:
        await remove_message(connection, LOG, letter.sequence)
    await remove_message(connection, DEAD, letter.id)
    return RedrivenLetter(acknowledged.seq)


async def _redrive_trigger(connection: Client, letter: Letter) -> RedrivenLetter | KeptLetter:
    if letter.left_out:
        return KeptLetter(f"the letter had no room for {letter.left_out} of the trigger: drop the letter")
    acknowledged = await connection.jetstream().publish(
        letter.subject, letter.body, stream=WORK, timeout=TIMEOUT
    )
    await remove_message(connection, DEAD, letter.id)
    return RedrivenLetter(acknowledged.seq)


async def _redrive_window(connection: Client, letter: Letter) -> RedrivenLetter | KeptLetter:
    """Publish a trigger that makes `extract` request the letter's window from a model again."""
    if letter.owner is None:
        return KeptLetter("the letter does not name the user of the window: drop the letter")
    if not letter.is_given_up:
        return KeptLetter(
            "the answer was read: the log has the facts that were proposed, and only this letter has the "
            "rest; read it, then drop the letter"
        )
    try:
        window = decode_given_up_window(letter.body)
    except InvalidBody:
        return KeptLetter("the letter does not name the messages of the window: drop the letter")
    acknowledged = await connection.jetstream().publish(
        build_given_up_window_subject(*letter.owner, window),
        msgspec.json.encode(window),
        stream=WORK,
        timeout=TIMEOUT,
    )
    await remove_message(connection, DEAD, letter.id)
    return RedrivenLetter(acknowledged.seq)


def _build_headers(original: Msg, letter: Letter) -> dict[str, str]:
    """Return the headers of a redriven event: those of the original, without those that NATS or a move added.

    If the event's id came from its position, the headers get this id, because the position changes.
    """
    sent = original.headers or {}
    # The other headers of NATS applied to the first publish only.
    headers = {name: value for name, value in sent.items() if not name.startswith("Nats-") and name != MOVED}
    if message_id := read_message_id(sent):
        headers[MESSAGE_ID] = message_id
    elif not _find_own_id(letter.subject, original.data):
        headers[MESSAGE_ID] = f"{letter.stream}:{letter.sequence}"
    return headers


def _find_own_id(subject: str, body: bytes) -> object:
    """Return the id in the body; None if the body has no readable id."""
    try:
        return decode_event(parse_subject(subject), body).id
    except (InvalidSubject, UnknownEvent, InvalidBody):
        pass
    try:
        loose = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return loose.get("id") if isinstance(loose, dict) else None
