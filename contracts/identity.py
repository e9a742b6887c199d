"""Ids that follow from other ids, so that every replay gives the same ones."""

from uuid import UUID, uuid5

_CONVERSATIONS = UUID("6f0d1f3a-4a53-5c0e-9d5b-0d0a3c0f7e11")


def event_identity(header: str | None, body: str | None, stream: str, sequence: int) -> str:
    """An event's id: the header `Nats-Msg-Id`, else `id` of the body, else `<stream>:<sequence>`."""
    return header or body or f"{stream}:{sequence}"


def first_conversation(tenant: str, user: str) -> str:
    """The conversation of whatever a user said before any conversation was started."""
    return str(uuid5(_CONVERSATIONS, f"{tenant}\0{user}"))


def started_conversation(tenant: str, user: str, event_id: str) -> str:
    """The conversation that a `started` event on `-` starts."""
    return str(uuid5(_CONVERSATIONS, f"{tenant}\0{user}\0{event_id}"))
