"""Triggers that name users: who said something, many in one message."""

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated, Final

import msgspec
from nats.aio.client import Client

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import InvalidId, encode_token, said_subject, work_subject

_Position = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class GivenUp(msgspec.Struct, frozen=True):
    """A window that is to be asked for once more; `attempts` are those that failed."""

    conversation: str
    from_seq: _Position
    to_seq: _Position
    attempts: _Count = 0


USERS: Final = 1000
"""Users that one trigger names, at most: all of a usual batch of messages."""

KEPT: Final = "24h"
"""Where nobody takes them, triggers do not pile up for ever. Who says something again is named again."""


async def publish_said(
    connection: Client, consumers: Iterable[str], users: Mapping[tuple[str, str], int]
) -> None:
    """Tell consumers which users, by tenant and user, said something, and up to which log position each.

    Nobody waits until it is stored: the server takes what comes on a connection in its order, so what is
    acknowledged after it is told. Only a server that dies at this very moment loses it, and then the user's
    next message tells it again, or the next round of those who go by rounds.

    Raises:
        nats.errors.Error: the connection is closed, or too much waits for it.
    """
    left = iter(users.items())
    while some := list(islice(left, USERS)):
        seq, body = max(seq for _, seq in some), encode(owner for owner, _ in some)
        for consumer in consumers:
            await connection.publish(said_subject(consumer, seq), body, headers={"Nats-TTL": KEPT})


async def waiting(connection: Client, pattern: str) -> list[str]:
    """The subjects of the triggers of a pattern that nobody has taken yet.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    info = await connection.jetstream().stream_info(WORK, subjects_filter=pattern)
    return list(info.state.subjects or ())


def encode(users: Iterable[tuple[str, str]]) -> bytes:
    """The body of a trigger."""
    return msgspec.json.encode({"users": list(users)})


def decode(body: bytes) -> list[tuple[str, str]]:
    """The users that a trigger names, by tenant and user.

    Raises:
        InvalidBody: it names none.
    """
    try:
        return [_owner(named) for named in json.loads(body)["users"]]
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidBody("users", "expected a list of [tenant, user], each an id") from error


def given_up_subject(tenant: str, user: str, window: GivenUp) -> str:
    """The trigger for one window: of each its own waits."""
    return f"{work_subject('batches', tenant, user, window.conversation)}.{window.from_seq}"


def decode_given_up(body: bytes) -> GivenUp:
    """Read the window that a trigger, or a dead letter of `extract`, names.

    Raises:
        InvalidBody: it names none.
    """
    try:
        window = msgspec.json.decode(body, type=GivenUp)
        encode_token(window.conversation)
    except (msgspec.DecodeError, InvalidId) as error:
        raise InvalidBody("window", "expected conversation, from_seq and to_seq") from error
    return window


def _owner(named: object) -> tuple[str, str]:
    match named:
        case [str(tenant), str(user)] if encode_token(tenant) and encode_token(user):
            return tenant, user
    raise TypeError
