"""Chat events on their way to the log: who they belong to, and how they are spelled on the wire."""

import re
from functools import lru_cache
from typing import NamedTuple

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1
from mnemon_contracts.identity import scoped
from mnemon_contracts.registry import EVENTS
from mnemon_contracts.subjects import InvalidId, chat_subject, encode_token

# What NATS would strip or fold in a header, and so silently make another id of.
_UNFIT_FOR_HEADER = re.compile(r"^\s|\s$|[\x00-\x1f\x7f]")

_VERSIONS = {
    contract: (event.name, number)
    for event in EVENTS.values()
    if event.space == "chat"
    for number, contract in enumerate(event.versions, 1)
}


class ChatEvent(NamedTuple):
    """A chat event and where it belongs.

    Args:
        user: whose conversation it is.
        event: the event; with an `id`, publishing it twice changes nothing, for ever.
        conversation: None is the user's current one.
    """

    user: str
    event: MessageV1 | StartedV1 | ClearedV1
    conversation: str | None = None


class Encoded(NamedTuple):
    """An event as it goes on the wire."""

    subject: str
    id: str
    message_id: str
    body: bytes


def encode(tenant: str, chat_event: ChatEvent, event_id: str) -> Encoded:
    """Spell an event for the wire; `event_id` serves where it has none of its own.

    Raises:
        InvalidId: the tenant, user or conversation cannot be an id; the message names which.
        InvalidBody: the event's id cannot stand in a header, or the body is too large.
    """
    event = chat_event.event
    if event.id and _UNFIT_FOR_HEADER.search(event.id):
        raise InvalidBody("id", "must not begin or end with white space, nor hold control characters")
    subject = _subject(tenant, chat_event.user, chat_event.conversation, *_VERSIONS[type(event)])
    message_id = scoped(tenant, chat_event.user, event.id) if event.id else event_id
    return Encoded(subject, event.id or event_id, message_id, event.body())


@lru_cache(maxsize=4096)
def _subject(tenant: str, user: str, conversation: str | None, event: str, version: int) -> str:
    try:
        return chat_subject(tenant, user, conversation, event, version)
    except (InvalidId, TypeError):
        check_id("tenant", tenant)
        check_id("user", user)
        if conversation is not None:
            check_id("conversation", conversation)
        raise


def check_id(field: str, identifier: str) -> None:
    """Refuse what cannot be an id.

    Raises:
        InvalidId: it cannot; the message names the field.
    """
    if not isinstance(identifier, str):
        raise InvalidId(f"{field}: must be a string, not {identifier!r}")
    try:
        encode_token(identifier)
    except InvalidId as error:
        raise InvalidId(f"{field}: {error}") from error
