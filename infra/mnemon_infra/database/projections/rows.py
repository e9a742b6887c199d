"""Conversion of an event to its row. All functions are pure: they use no connection and no clock."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any, Final, Self, TypeVar

import msgspec

from mnemon_contracts.base import Event, InvalidBody
from mnemon_contracts.decode import UnknownEvent, find_contract, upcast_body
from mnemon_contracts.events import memory
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.events.fact_comparison import FactComparedV1, FactMergedV1
from mnemon_contracts.identity import identify_event
from mnemon_contracts.registry import EventContract
from mnemon_contracts.subjects import Address, InvalidSubject, Owner, parse_subject
from mnemon_infra.database.projections import message_parser
from mnemon_infra.database.projections.event_rows import EventKey, project_event
from mnemon_infra.database.projections.unknown_fields import encode_body
from mnemon_infra.delivery import Delivery

ENDINGS: Final = ("fact.forgotten", "fact.expired", "fact.evicted")
"""Events that end a fact permanently: later events that name the fact do not bring it back."""

REMOVALS: Final = ("task.removed", "document.removed")
"""Events that remove an item, which a later event can add again."""

SWEPT_AFTER: Final = {
    *ENDINGS,
    *REMOVALS,
    *("fact.saved", "fact.updated", "fact.merged"),
    *("summary.written", "summary.merged"),
}
"""Memory events after which a user has to be swept.

These are endings, removals, and events that may reach the log after the end of their fact, or after
their messages were cleared or discarded.
"""

_REMOVING_TABLES: Final = {"clears", "erasures", "conversation_erasures"}
"""Tables of events that remove other events."""


class MessageRow(msgspec.Struct, frozen=True):
    """A message to write. `values` is the JSON object from which the database reads the message."""

    key: EventKey
    seq: int
    values: bytes


class MemoryRow(msgspec.Struct, frozen=True):
    """A memory event to write; `values` is JSON, as in `MessageRow`."""

    key: EventKey
    seq: int
    event: str
    values: bytes


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event to write that is neither a message nor a memory event, with its table."""

    key: EventKey
    seq: int
    table: str
    values: Mapping[str, Any]


Row = MessageRow | MemoryRow | EventRow
RowPlaceT = TypeVar("RowPlaceT", bound=Hashable)
AnyRow = TypeVar("AnyRow", MessageRow, MemoryRow, EventRow)


@dataclass(slots=True)
class Rows:
    """Rows to write together, one per event: the copy of an event with the lowest log position counts.

    Of an erasure of a user, every copy counts.
    """

    messages: dict[EventKey, MessageRow] = field(default_factory=dict)
    memories: dict[EventKey, MemoryRow] = field(default_factory=dict)
    events: dict[tuple[str, EventKey], EventRow] = field(default_factory=dict)

    @classmethod
    def from_deliveries(cls, deliveries: Iterable[Delivery]) -> Self:
        """Return the rows of events; invalid events have no rows."""
        rows = cls()
        for row in build_rows(deliveries):
            rows.add(row)
        return rows

    def add(self, row: Row) -> None:
        """Add a row, unless these rows contain a copy of its event with a lower log position."""
        if isinstance(row, MessageRow):  # most rows, so without a function call
            known = self.messages.get(row.key)
            if known is None or row.seq < known.seq:
                self.messages[row.key] = row
            return
        match row:
            case MemoryRow():
                _keep_first(self.memories, row.key, row)
            case EventRow(table="erasures"):
                # Each copy of an erasure erases rows below its own position, as if copies came one by one.
                _keep_first(self.events, (f"erasures {row.seq}", row.key), row)
            case EventRow():
                _keep_first(self.events, (row.table, row.key), row)

    def map_owners(self) -> dict[Owner, int]:
        """Return the users of these rows, each with the highest log position."""
        users: dict[Owner, int] = {}
        rows: Iterable[Row] = chain(self.messages.values(), self.memories.values(), self.events.values())
        for row in rows:
            owner = row.key[:2]
            users[owner] = max(row.seq, users.get(owner, 0))
        return users

    def find_watermarked_owners(self) -> set[Owner]:
        """Return the users who may now have content below a watermark, or of an item that has ended."""
        cleared = (
            row.key[:2]
            for row in self.events.values()
            if row.table in _REMOVING_TABLES or row.values.get("discard_previous")
        )
        return {*cleared, *(row.key[:2] for row in self.memories.values() if row.event in SWEPT_AFTER)}

    def find_discarding_owners(self) -> set[Owner]:
        """Return the users whose earlier messages these rows discard."""
        return {row.key[:2] for row in self.events.values() if row.values.get("discard_previous")}


def _keep_first(rows: dict[RowPlaceT, AnyRow], place: RowPlaceT, row: AnyRow) -> None:
    known = rows.get(place)
    if known is None or row.seq < known.seq:
        rows[place] = row


def build_row(delivery: Delivery) -> Row | None:
    """Return the row of an event; None if events of this name have no rows.

    Raises:
        InvalidSubject: the subject does not follow the grammar.
        UnknownEvent: no event has this name and version.
        InvalidBody: the body does not satisfy its contract, or the header `Nats-Msg-Id` cannot be an id.
    """
    address, contract, opening = _parse_route(delivery.subject)
    if contract.latest is MessageV1 and address.version == 1:
        message = message_parser.parse_message(delivery.body)
        if message is not None:
            return _build_message_row(
                delivery, address, opening, message.id, message.compute_sent_time(), delivery.body
            )
    event = upcast_body(contract, address.version, delivery.body)
    if isinstance(event, MessageV1):
        spoken_at = event.sent_at.timestamp() if event.sent_at else None
        return _build_message_row(delivery, address, opening, event.id, spoken_at, event.encode_body())
    key = address.tenant, address.user, get_event_id(delivery, address, event.id)
    if type(event) in _ITEMS:
        is_latest = address.version == len(contract.versions)
        body = encode_body(event, delivery.body) if is_latest else event.encode_body()
        return _build_memory_row(delivery, address, key, event, body)
    projected = project_event(event, address, key, delivery)
    return None if projected is None else EventRow(key, delivery.sequence, *projected)


def build_rows(deliveries: Iterable[Delivery]) -> Iterator[Row]:
    """Yield the rows of events. An invalid event has no row; `persist` stores a dead letter for it."""
    for delivery in deliveries:
        with suppress(InvalidSubject, UnknownEvent, InvalidBody):
            if (row := build_row(delivery)) is not None:
                yield row


def get_table(row: Row) -> str:
    """Return the name of the table that a row belongs to."""
    if isinstance(row, EventRow):
        return row.table
    return "memory_events" if isinstance(row, MemoryRow) else "messages"


def _build_message_row(
    delivery: Delivery,
    address: Address,
    opening: bytes,
    own_id: str | None,
    spoken_at: float | None,
    body: bytes,
) -> MessageRow:
    event_id = get_event_id(delivery, address, own_id)
    values = b'%b,"seq":%d,"event_id":%b,"sent_at":%f,"body":%b}' % (
        opening,
        delivery.sequence,
        msgspec.json.encode(event_id),
        delivery.stored_at if spoken_at is None else spoken_at,
        body,
    )
    return MessageRow((address.tenant, address.user, event_id), delivery.sequence, values)


def _build_memory_row(
    delivery: Delivery, address: Address, key: EventKey, event: Event, body: bytes
) -> MemoryRow:
    decision = event if isinstance(event, memory.FactRejectedV1) else getattr(event, "decision", None)
    if getattr(event, "by", None):
        decision = None  # the first decision remains the only one on the proposal
    tenant, user, event_id = key
    values = {
        "tenant": tenant,
        "user_id": user,
        "event_id": event_id,
        "seq": delivery.sequence,
        "at": get_event_time(event, delivery),
        "event": address.name,
        "item": getattr(event, _ITEMS[type(event)]),
        "proposal_id": decision.proposal_id if decision else None,
        "conversation": getattr(event, "conversation", None),
        "body": msgspec.Raw(body),
    }
    return MemoryRow(key, delivery.sequence, address.name, msgspec.json.encode(values))


@lru_cache(maxsize=65_536)
def _parse_route(subject: str) -> tuple[Address, EventContract, bytes]:
    """Return the address and contract of a subject, and the first bytes of the JSON rows of its messages."""
    address = parse_subject(subject)
    place = {"tenant": address.tenant, "user_id": address.user, "conversation": address.conversation}
    return address, find_contract(address), msgspec.json.encode(place)[:-1]


def decode_event(delivery: Delivery) -> tuple[Address, Event, str]:
    """Decode an event of the log.

    Returns:
        The address of the event, the event in its latest version, and its id.

    Raises:
        InvalidSubject: the subject does not follow the grammar.
        UnknownEvent: no event has this name and version.
        InvalidBody: the body does not satisfy its contract, or the header `Nats-Msg-Id` cannot be an id.
    """
    address = parse_subject(delivery.subject)
    event = upcast_body(find_contract(address), address.version, delivery.body)
    return address, event, get_event_id(delivery, address, event.id)


def get_event_time(event: Event, delivery: Delivery) -> float:
    """Return the time of an event in seconds since 1970.

    For an event of a fact that an import has published, this is the time of the original event, in `at`; for
    every other event, the time at which the log stored it.
    """
    at: datetime | None = getattr(event, "at", None)
    return delivery.stored_at if at is None else at.timestamp()


def get_event_id(delivery: Delivery, address: Address, own_id: str | None) -> str:
    """Return the id of an event, the same for every reader.

    Raises:
        InvalidBody: the header `Nats-Msg-Id` cannot be an id.
    """
    return identify_event(
        address.tenant, address.user, delivery.message_id, own_id, delivery.stream, delivery.sequence
    )


_ITEMS: Final[Mapping[type[Event], str]] = {
    **dict.fromkeys((memory.FactSavedV1, memory.FactUpdatedV1, memory.FactConfirmedV1), "fact_id"),
    **dict.fromkeys((FactComparedV1, FactMergedV1, memory.FactRejectedV1), "fact_id"),
    **dict.fromkeys((memory.FactForgottenV1, memory.FactExpiredV1, memory.FactEvictedV1), "fact_id"),
    **dict.fromkeys((memory.SummaryWrittenV1, memory.SummaryMergedV1), "summary_id"),
    **dict.fromkeys((memory.TaskAddedV1, memory.TaskDoneV1, memory.TaskRemovedV1), "task_id"),
    **dict.fromkeys((memory.DocumentAddedV1, memory.DocumentRemovedV1), "document_id"),
    **dict.fromkeys((memory.BatchIntendedV1, memory.BatchSubmittedV1, memory.BatchCompletedV1), "batch_id"),
    **dict.fromkeys((memory.BatchFailedV1, memory.WindowAnsweredV1), "batch_id"),
}
"""The memory events that become rows, each with the field that contains the id of its item."""
