"""Events of a moved tenant as the other log gets them. No I/O."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from nats.aio.msg import Msg

from mnemon.operations.backup.segments import select_headers
from mnemon.operations.tenant_move.positions import (
    Body,
    PositionMap,
    list_positions,
    map_event_positions,
    parse_body_with_positions,
)
from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import InvalidSubject, parse_subject
from mnemon_infra.broker.provisioning.restoration import ExactMessage
from mnemon_infra.delivery import MOVED, Delivery, MovedFrom, read_message_id


class _BodyWithId(msgspec.Struct):
    """The part of a body that identifies its event."""

    id: str | None = None


class SourceEvent(NamedTuple):
    """An event of the log that a tenant leaves.

    Attributes:
        name: name of the event; "" for an invalid subject.
        fields: the parsed body if it may name log positions; None otherwise.
    """

    message: Msg
    delivery: Delivery
    name: str
    fields: Body | None

    @property
    def position(self) -> int:
        return self.delivery.sequence

    @property
    def last_reference(self) -> int:
        """Highest position that the event names, at most its own position minus 1; 0 if it names none."""
        if self.fields is None:
            return 0
        named = list_positions(self.name, self.fields)
        return max((min(each, self.position - 1) for each in named), default=0)


def parse_source_event(message: Msg, delivery: Delivery) -> SourceEvent:
    """Parse the subject of an event, and its body if it may name log positions."""
    try:
        address = parse_subject(delivery.subject)
    except InvalidSubject:
        return SourceEvent(message, delivery, "", None)
    fields = parse_body_with_positions(delivery.body) if address.space == "memory" else None
    return SourceEvent(message, delivery, address.name, fields)


def build_copy_prefix(move_id: str, *, is_returning: bool) -> str:
    """Return the beginning of the message ids of the copies that a move, or its revert, stores."""
    return f"{move_id}{'r' if is_returning else ''}:"


def has_prefix(headers: Mapping[str, str] | None, prefix: str) -> bool:
    """Return whether the message id in these headers begins with the prefix of copies."""
    return (headers or {}).get(MESSAGE_ID, "").startswith(prefix)


def build_moved_message(event: SourceEvent, positions: PositionMap, prefix: str) -> ExactMessage:
    """Return the copy of an event for the other log, with the original position and time in a header.

    The header also has the original id, unless only the body has that id.

    `positions` has the positions of all events before this one. The `Nats-Msg-Id` of the copy begins with
    `prefix`, by which later runs recognise the copies of this move.
    """
    delivery, headers = event.delivery, dict(event.message.headers or {})
    event_id = read_message_id(headers) or (None if _has_id(delivery.body) else f"{LOG}:{event.position}")
    moved = MovedFrom(event.position, round_time(delivery), event_id)
    kept = {name: value for name, value in select_headers(headers).items() if name not in (MESSAGE_ID, MOVED)}
    body = delivery.body
    if event.fields is not None:
        mapped = map_event_positions(event.name, event.fields, event.position, positions)
        if mapped != event.fields:
            body = json.dumps(mapped, ensure_ascii=False, separators=(",", ":")).encode()
    return ExactMessage(
        delivery.subject, {MESSAGE_ID: f"{prefix}{event.position}", MOVED: moved.format(), **kept}, body
    )


def round_time(delivery: Delivery) -> int:
    """Return the time of an event in nanoseconds since 1970, rounded to the precision of a float."""
    return round(delivery.stored_at * 1e9)


def _has_id(body: bytes) -> bool:
    try:
        return bool(msgspec.json.decode(body, type=_BodyWithId).id)
    except (msgspec.MsgspecError, RecursionError):
        return False
