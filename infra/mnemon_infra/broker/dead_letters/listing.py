"""Dead letters as values: listing, filters and lookups."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import Final, Literal

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import APIError

from mnemon_contracts.streams import DEAD, LOG, WORK
from mnemon_contracts.subjects import (
    InvalidSubject,
    build_dead_letter_filter,
    build_user_filters,
    decode_token,
    find_origin,
)
from mnemon_infra.broker.streams.log_reader import TIMEOUT, read_stored_messages

LetterKind = Literal["event", "trigger", "answer"]
"""Kind of an original: an event of the log, a trigger, or the outcome of a request to a model.

An outcome, such as an answer that cannot be read, is in no stream.
"""

_FIRST_RANGE: Final = 64
"""Positions in the first range that `read_newest_letters` reads; each further range is twice as long."""

_WRITES_ROWS: Final = "persist"

_KINDS: Final[Mapping[str, LetterKind]] = {LOG: "event", WORK: "trigger"}


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter: a message that a consumer could not handle, with the reason.

    `id` is the letter's position in the stream of dead letters. `subject`, `stream` and `sequence` are the
    subject, the stream and the position of the original; stream "" and position 0 if it is in no stream.
    `left_out` names the parts of the original that the letter lacks, because they had no room or are
    confidential; None if it lacks none. If the original is an event, the log still has these parts.
    """

    id: int
    at: datetime
    consumer: str
    reason: str
    error: str
    subject: str
    stream: str
    sequence: int
    left_out: str | None
    headers: Mapping[str, str]
    body: bytes

    @property
    def kind(self) -> LetterKind:
        return _KINDS.get(self.stream, "answer")

    @property
    def is_given_up(self) -> bool:
        """True if the letter is about a window that was given up: no answer about it could be used."""
        return self.kind == "answer" and self.reason != "too_many_facts"

    @property
    def owner(self) -> tuple[str, str] | None:
        """Tenant and user of the original; None if its subject does not name a user."""
        if origin := find_origin(self.subject):
            return origin.owner
        match self.subject.split("."):
            case ["work", _, tenant, user, *_]:
                try:
                    return decode_token(tenant), decode_token(user)
                except InvalidSubject:
                    return None
        return None


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Conditions on dead letters. A field of None sets no condition."""

    consumer: str | None = None
    reason: str | None = None
    tenant: str | None = None
    user: str | None = None
    since: datetime | None = None

    def covers(self, letter: Letter) -> bool:
        """Return whether a letter meets all conditions."""
        tenant, user = letter.owner or (None, None)
        return (
            self.consumer in (None, letter.consumer)
            and self.reason in (None, letter.reason)
            and self.tenant in (None, tenant)
            and self.user in (None, user)
            and (self.since is None or letter.at >= self.since)
        )


async def read_letters(
    connection: Client, letter_filter: LetterFilter, after: int = 0
) -> AsyncGenerator[Letter, None]:
    """Yield the letters with ids above `after` that match the filter, oldest first.

    Raises:
        nats.errors.Error: the server does not answer, or the stream of dead letters is absent.
    """
    async with aclosing(read_stored_messages(connection, DEAD, ">", after)) as pages:
        async for page in pages:
            for message in page:
                letter = parse_letter(message)
                if letter_filter.covers(letter):
                    yield letter


async def read_letter_subjects(connection: Client) -> AsyncGenerator[str, None]:
    """Yield each subject in the stream of dead letters once.

    Raises:
        nats.errors.Error: the server does not answer, or the stream of dead letters is absent.
    """
    offset, total = 0, 1
    while offset < total:
        request = json.dumps({"subjects_filter": ">", "offset": offset}).encode()
        reply = await connection.request(f"$JS.API.STREAM.INFO.{DEAD}", request, timeout=TIMEOUT)
        answer = json.loads(reply.data)
        if "error" in answer:
            raise APIError.from_error(answer["error"])
        subjects = answer["state"].get("subjects") or {}
        for subject in subjects:
            yield subject
        offset, total = offset + len(subjects), answer.get("total", 0) if subjects else 0


async def read_newest_letters(
    connection: Client, letter_filter: LetterFilter, before: int | None, most: int
) -> list[Letter]:
    """Return the newest letters that match the filter, at most `most`, newest first.

    The function reads the stream from its end, in growing ranges, until it has enough letters.

    Only letters with ids below `before` count; None sets no limit.

    Raises:
        nats.errors.Error: the server does not answer, or the stream of dead letters is absent.
    """
    state = (await connection.jetstream().stream_info(DEAD)).state
    end = state.last_seq if before is None else min(before - 1, state.last_seq)
    length, found = _FIRST_RANGE, list[Letter]()
    while end >= state.first_seq and len(found) < most:
        begin = max(end - length, state.first_seq - 1)
        found += reversed(await _read_last_between(connection, letter_filter, begin, end, most - len(found)))
        end, length = begin, length * 2
    return found


async def read_rejected_events(connection: Client, tenant: str, user: str) -> list[Letter]:
    """Return the dead letters of `persist` about a user's events, in log order, without bodies.

    Letters of other users are not read.

    Raises:
        nats.errors.Error: the server does not answer, or the stream of dead letters is absent.
    """
    found = list[Letter]()
    for pattern in build_user_filters(tenant, user):
        async with aclosing(
            read_stored_messages(connection, DEAD, build_dead_letter_filter(_WRITES_ROWS, pattern), 0)
        ) as pages:
            async for page in pages:
                # Bodies may be large.
                found += [replace(parse_letter(message), body=b"") for message in page]
    return sorted(found, key=attrgetter("sequence"))


async def _read_last_between(
    connection: Client, letter_filter: LetterFilter, after: int, up_to: int, most: int
) -> deque[Letter]:
    found: deque[Letter] = deque(maxlen=most)
    async with aclosing(read_letters(connection, letter_filter, after)) as following:
        async for each in following:
            if each.id > up_to:
                break
            found.append(each)
    return found


async def read_letter(connection: Client, letter_id: int) -> Letter | None:
    """Return one letter; None when no letter has this id.

    Raises:
        nats.errors.Error: the server does not answer, or the stream of dead letters is absent.
    """
    message = await find_message(connection, DEAD, letter_id)
    return None if message is None else parse_letter(message)


async def find_message(connection: Client, stream: str, sequence: int) -> Msg | None:
    """Return the message at a position of a stream; None if the position has no message.

    Raises:
        nats.errors.Error: the server does not answer, or the stream is absent.
    """
    async with aclosing(read_stored_messages(connection, stream, ">", sequence - 1, most=1)) as pages:
        async for page in pages:
            found = int((page[0].headers or {})["Nats-Sequence"])
            return page[0] if found == sequence else None
    return None


async def remove_message(connection: Client, stream: str, sequence: int) -> None:
    """Remove a message from a stream permanently. An absent message counts as removed.

    Raises:
        nats.errors.Error: the message is not removed, or its removal is not confirmed.
    """
    try:
        await connection.jetstream().delete_msg(stream, sequence)
    except APIError:
        if await find_message(connection, stream, sequence) is not None:
            raise


def parse_letter(message: Msg) -> Letter:
    """Return the letter that a message from `read_stored_messages` contains."""
    headers = message.headers or {}
    subject = headers["Nats-Subject"]
    _, consumer, *original = subject.split(".")
    return Letter(
        id=int(headers["Nats-Sequence"]),
        at=datetime.fromisoformat(headers["Nats-Time-Stamp"]).astimezone(UTC),
        consumer=headers.get("Mnemon-Consumer", consumer),
        reason=headers.get("Mnemon-Reason", ""),
        error=headers.get("Mnemon-Error", ""),
        subject=headers.get("Mnemon-Subject", ".".join(original)),
        stream=headers.get("Mnemon-Stream", ""),
        sequence=int(headers.get("Mnemon-Sequence", 0)),
        left_out=headers.get("Mnemon-Left-Out"),
        headers=json.loads(headers.get("Mnemon-Headers", "{}")),
        body=message.data or b"",
    )
