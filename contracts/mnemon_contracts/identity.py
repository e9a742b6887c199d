"""Ids that are derived from other ids, so that every replay gives the same ids."""

import re
from functools import lru_cache
from hashlib import sha256
from typing import Final
from uuid import UUID, uuid5

from mnemon_contracts.base import check_identifier

MESSAGE_ID: Final = "Nats-Msg-Id"
"""Header that carries the id of an event."""

# NATS clients strip or fold these characters in a header.
_UNFIT_FOR_HEADER = re.compile(r"\s\Z|[\x00-\x1f\x7f]")

_CONVERSATIONS = UUID("6f0d1f3a-4a53-5c0e-9d5b-0d0a3c0f7e11")
_DERIVED = UUID("0e6d3c59-7c5b-5b34-9a4f-5b8f0f2f9d11")
_POINTS = UUID("b1c7a2b4-6c1e-5d0f-8a39-3f0c6a1d9e20")


def identify_event(
    tenant: str, user: str, header: str | None, body: str | None, stream: str, sequence: int
) -> str:
    """Return an event's id: the header `Nats-Msg-Id`, else `id` of the body, else `<stream>:<sequence>`.

    For a header that `scope_event_id` made from the body's id, the result is the body's id.

    Raises:
        InvalidBody: the header cannot be an id.
    """
    if not header:
        return body or f"{stream}:{sequence}"
    if body and header == scope_event_id(tenant, user, body):
        return body
    return check_identifier(MESSAGE_ID, header)


@lru_cache(maxsize=65_536)
def _hash_owner(tenant: str, user: str) -> str:
    return sha256(f"{tenant}\0{user}".encode()).hexdigest()[:12]


def scope_event_id(tenant: str, user: str, event_id: str) -> str:
    """Return the `Nats-Msg-Id` of an event that has an id of its own.

    JetStream looks for duplicates in the whole stream: without a scope, JetStream would drop another user's
    event with the same id within two minutes. An id that a header cannot hold is hashed.
    """
    if _UNFIT_FOR_HEADER.search(event_id):
        event_id = sha256(event_id.encode()).hexdigest()
    return f"{_hash_owner(tenant, user)}:{event_id}"


@lru_cache(maxsize=4096)
def derive_first_conversation(tenant: str, user: str) -> str:
    """Return the id of a user's first conversation: that of messages on `-` before another starts."""
    return str(uuid5(_CONVERSATIONS, f"{tenant}\0{user}"))


def derive_started_conversation(tenant: str, user: str, event_id: str) -> str:
    """Return the id of the conversation that a `started` event starts, if its subject has `-` for an id."""
    return str(uuid5(_CONVERSATIONS, f"{tenant}\0{user}\0{event_id}"))


def derive_id(tenant: str, user: str, *parts: str) -> str:
    """Return the id of a derived event; a repeated derivation gives the same id."""
    return str(uuid5(_DERIVED, "\0".join((tenant, user, *parts))))


def derive_point_id(tenant: str, user: str, *parts: str) -> UUID:
    """Return the id of the point of a user's item; `parts` name the item, such as `fact` and its id."""
    return uuid5(_POINTS, "\0".join((tenant, user, *parts)))
