"""Chat events before they are published: their user, their conversation and their encoding."""

import json
import re
from functools import lru_cache
from typing import NamedTuple

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1
from mnemon_contracts.identity import scope_event_id
from mnemon_contracts.registry import EVENTS
from mnemon_contracts.subjects import InvalidId, build_chat_subject, encode_token

# Characters that NATS would strip or fold in a header, which would silently change the id.
_UNFIT_FOR_HEADER = re.compile(r"^\s|\s$|[\x00-\x1f\x7f]")

_VERSIONS = {
    contract: (event.name, number)
    for event in EVENTS.values()
    if event.space == "chat"
    for number, contract in enumerate(event.versions, 1)
}


class ChatEvent(NamedTuple):
    """A chat event with its user and conversation.

    Args:
        user: the user whose conversation it is.
        event: the event; with an `id`, publishing it again changes nothing.
        conversation: None means the user's current conversation.
    """

    user: str
    event: MessageV1 | StartedV1 | ClearedV1
    conversation: str | None = None


class EncodedEvent(NamedTuple):
    """An event encoded for the wire; its `id` is given or generated, `message_id` is its `Nats-Msg-Id`."""

    subject: str
    id: str
    message_id: str
    body: bytes


def encode_event(tenant: str, chat_event: ChatEvent, event_id: str) -> EncodedEvent:
    """Encode an event for the wire; `event_id` is used if the event has no id.

    Raises:
        InvalidId: the tenant, user or conversation cannot be an id; the message names the field.
        InvalidBody: the event's id cannot be a header value, or the body is too large or too deep.
    """
    event = chat_event.event
    if event.id and _UNFIT_FOR_HEADER.search(event.id):
        raise InvalidBody(
            "id",
            f"{json.dumps(event.id, ensure_ascii=False)} begins or ends with white space, or contains a "
            "control character; remove it",
        )
    subject = _build_subject(tenant, chat_event.user, chat_event.conversation, *_VERSIONS[type(event)])
    message_id = scope_event_id(tenant, chat_event.user, event.id) if event.id else event_id
    return EncodedEvent(subject, event.id or event_id, message_id, event.encode_body())


@lru_cache(maxsize=4096)
def _build_subject(tenant: str, user: str, conversation: str | None, event: str, version: int) -> str:
    try:
        return build_chat_subject(tenant, user, conversation, event, version)
    except (InvalidId, TypeError):
        check_id("tenant", tenant)
        check_id("user", user)
        if conversation is not None:
            check_id("conversation", conversation)
        raise


def check_id(field: str, identifier: str) -> None:
    """Check that `identifier` can be an id; `field` is the argument that the message names.

    Raises:
        InvalidId: `identifier` is not a string, or the string cannot be an id; the message names `field`.
    """
    if not isinstance(identifier, str):
        raise InvalidId(f"{field}: must be a string, not {identifier!r}")
    try:
        encode_token(identifier)
    except InvalidId as error:
        raise InvalidId(f"{field}: {error}") from error
