"""Triggers: messages of the stream `WORK` that name users with something to do, or a window of `extract`.

Users may have new messages, or content to sweep; a window is requested once more.
"""

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated, Final, Literal

import msgspec
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import (
    InvalidId,
    Owner,
    build_message_trigger_subject,
    build_trigger_subject,
    encode_token,
)
from mnemon_infra.broker.streams.applied_position import read_applied_position

_NO_MESSAGE: Final = 10037
"""Error code of nats-server for an absent message; an absent stream has another code."""

_Position = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class GivenUpWindow(msgspec.Struct, frozen=True):
    """A window that was given up and is requested once more.

    `attempts` is the number of failed attempts before the one after which the window was given up.
    """

    conversation: str
    from_seq: _Position
    to_seq: _Position
    attempts: _Count = 0


USERS: Final = 1000
"""Maximum number of users that one trigger names: all users of a usual batch of messages."""

KEPT: Final = "24h"
"""Lifetime of a trigger of `publish_user_triggers`, so that triggers without a consumer do not pile up.

A user's next message names the user again.
"""


async def publish_user_triggers(
    connection: Client, consumers: Iterable[str], users: Mapping[tuple[str, str], int]
) -> None:
    """Publish triggers that name users, at most `USERS` in each.

    The function does not wait until a trigger is stored: the server handles the messages of a connection in
    order, so it handles the trigger before the acknowledgements that follow. Only a server that dies at this
    moment loses the trigger; then the user's next message names the user again, or the next scan of `extract`
    finds the user.

    Args:
        connection: connection to the server.
        consumers: the consumers that get the triggers.
        users: log position of the last message of each user, by tenant and user. The subject of a trigger has
            the highest position of its users.

    Raises:
        nats.errors.Error: the connection is closed, or its buffer of messages to send is full.
    """
    left = iter(users.items())
    while some := list(islice(left, USERS)):
        seq, body = max(seq for _, seq in some), encode_users(owner for owner, _ in some)
        for consumer in consumers:
            await connection.publish(
                build_message_trigger_subject(consumer, seq), body, headers={"Nats-TTL": KEPT}
            )


async def list_trigger_subjects(connection: Client, pattern: str) -> list[str]:
    """Return the subjects of a pattern with a stored trigger or schedule.

    After a kill of the server, triggers that were acknowledged may be stored again: see `has_waiting_sweep`.

    Raises:
        nats.errors.Error: the server does not answer, or the stream is absent.
    """
    info = await connection.jetstream().stream_info(WORK, subjects_filter=pattern)
    return list(info.state.subjects or ())


async def has_waiting_sweep(
    connection: Client, consumer: Literal["persist", "index"], owner: Owner | None = None
) -> bool:
    """Return whether a trigger waits for a sweep of a user, or of any user if `owner` is None.

    Triggers up to the position that the durable has acknowledged do not count: a killed server may have them
    again, and delivers them to no consumer.

    Raises:
        nats.errors.Error: the server does not answer, or the stream is absent.
    """
    stream_context = connection.jetstream()
    pattern = f"work.{consumer}.>" if owner is None else build_trigger_subject(consumer, *owner)
    handled = await read_applied_position(stream_context, f"{consumer}-sweep", WORK)
    try:
        await stream_context.get_msg(WORK, handled + 1, pattern, next=True)
    except NotFoundError as error:
        if error.err_code != _NO_MESSAGE:
            raise
        return False
    return True


def encode_users(users: Iterable[tuple[str, str]]) -> bytes:
    """Encode the body of a trigger that names `users`, which are pairs of tenant and user."""
    return msgspec.json.encode({"users": list(users)})


def decode_users(body: bytes) -> list[tuple[str, str]]:
    """Decode the users that a trigger names, as pairs of tenant and user.

    Raises:
        InvalidBody: the body is not a list of tenants and users with valid ids.
    """
    try:
        return [_parse_owner(named) for named in json.loads(body)["users"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidBody("users", "must be a list of pairs [tenant, user] of valid ids") from error


def build_given_up_window_subject(tenant: str, user: str, window: GivenUpWindow) -> str:
    """Return the subject of the trigger that requests one window again.

    Each window has a subject of its own, because the stream keeps one message of each subject.
    """
    return f"{build_trigger_subject('batches', tenant, user, window.conversation)}.{window.from_seq}"


def decode_given_up_window(body: bytes) -> GivenUpWindow:
    """Decode the window that a trigger, or a dead letter of `extract`, names.

    Raises:
        InvalidBody: the body does not name a window, or the id of its conversation is invalid.
    """
    try:
        window = msgspec.json.decode(body, type=GivenUpWindow)
        encode_token(window.conversation)
    except (msgspec.DecodeError, InvalidId, RecursionError) as error:
        raise InvalidBody(
            "window",
            "must be an object with a valid id as `conversation`, and the positions `from_seq` and `to_seq`",
        ) from error
    return window


def _parse_owner(named: object) -> tuple[str, str]:
    match named:
        case [str(tenant), str(user)] if encode_token(tenant) and encode_token(user):
            return tenant, user
    raise TypeError
