"""Dead letters: assesses whether a redrive can succeed, and redrives or drops several letters."""

from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent
from mnemon_contracts.subjects import InvalidSubject
from mnemon_infra.broker.dead_letters.listing import Letter, read_letter
from mnemon_infra.broker.dead_letters.redrive import RedriveResult, drop_letter, redrive_letter
from mnemon_infra.broker.streams.log_reader import parse_delivery
from mnemon_infra.database.engine import Database
from mnemon_infra.database.projections.row_positions import is_applied
from mnemon_infra.database.projections.rows import build_row


@dataclass(frozen=True, slots=True)
class RedriveAssessment:
    """Assessment of the redrive of a dead letter: whether the redrive can succeed, and the reason.

    Attributes:
        redrive: `now`; `after a fix` of the cause; or `never`.
    """

    redrive: Literal["now", "after a fix", "never"]
    reason: str


def assess_redrive(letter: Letter, original: Msg | None) -> RedriveAssessment:
    """Decide whether the redrive of a dead letter can succeed.

    `original` is the event that the letter is about; None if the log does not have the event.
    """
    match letter.kind:
        case "answer" if letter.is_given_up:
            return RedriveAssessment("after a fix", "the model is asked once more about the same messages")
        case "answer":
            return RedriveAssessment(
                "never",
                "the answer had too many facts: the letter has the facts above the limit, the log the others",
            )
        case "trigger" if letter.left_out:
            return RedriveAssessment("never", "the trigger is not known in full and cannot be redriven")
        case "trigger":
            return RedriveAssessment("after a fix", "the trigger is handled again unchanged")
    if original is None:
        return RedriveAssessment("never", "the log no longer has the event")
    try:
        build_row(parse_delivery(original))
    except (InvalidSubject, UnknownEvent, InvalidBody) as error:
        return RedriveAssessment("after a fix", f"this version cannot read it ({error})")
    return RedriveAssessment("now", "this version can read it; consumers can too if they run this version")


def get_letter_body(letter: Letter, original: Msg | None) -> bytes:
    """Return the body of the letter, or of the original event if parts were left out of the letter.

    Without an original, the body of the letter is returned, even if parts were left out.
    """
    return original.data if original is not None and letter.left_out else letter.body


async def redrive_letters(
    connection: Client, database: Database, ids: Iterable[int]
) -> AsyncGenerator[tuple[Letter, RedriveResult], None]:
    """Redrive dead letters, and yield each with the result; letters that no longer exist are left out.

    Raises:
        nats.errors.Error, DatabaseUnavailable: a server does not answer. The call can be repeated.
    """
    for letter_id in ids:
        if letter := await read_letter(connection, letter_id):
            yield letter, await redrive_letter(connection, letter, partial(is_applied, database))


async def drop_letters(connection: Client, database: Database, ids: Iterable[int]) -> int:
    """Drop dead letters permanently, as `drop_letter` does; return the number of letters that existed.

    Raises:
        nats.errors.Error, DatabaseUnavailable: a server does not answer. The call can be repeated.
    """
    dropped = 0
    for letter_id in ids:
        if letter := await read_letter(connection, letter_id):
            await drop_letter(connection, letter, partial(is_applied, database))
            dropped += 1
    return dropped
