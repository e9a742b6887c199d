"""Decides which events of a batch to index and which users' points to sweep. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent, find_contract, upcast_body
from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1
from mnemon_contracts.events.erasure import UserErasedV1
from mnemon_contracts.events.fact_comparison import FactMergedV1
from mnemon_contracts.events.memory import (
    DocumentAddedV1,
    DocumentRemovedV1,
    FactEvictedV1,
    FactExpiredV1,
    FactForgottenV1,
    FactSavedV1,
    FactUpdatedV1,
    SummaryMergedV1,
    SummaryWrittenV1,
)
from mnemon_contracts.subjects import InvalidSubject, Owner, parse_subject
from mnemon_infra.broker.outcomes import ACK, Ack, DeliveryOutcome
from mnemon_infra.broker.streams.restored_log import FILLER_SUBJECT
from mnemon_infra.database.projections import message_parser
from mnemon_infra.database.projections.rows import get_event_id
from mnemon_infra.delivery import Delivery
from mnemon_infra.vectors.vector_index import SearchableItem, build_message_item, build_summary_item

NOTHING: Final = Ack("the event has no searchable text")
POISON: Final = Ack("persist stores a dead letter for the event")

_SWEPT = (
    FactSavedV1,
    FactUpdatedV1,
    FactMergedV1,
    FactForgottenV1,
    FactExpiredV1,
    FactEvictedV1,
    DocumentRemovedV1,
)


class IndexedDocument(NamedTuple):
    """A document to index, with the id of its event."""

    owner: Owner
    event_id: str
    document: DocumentAddedV1


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """Content to index, users to sweep, and an outcome for each delivery.

    Attributes:
        sweeps: maps each user to sweep to the log position of the last event that makes the sweep necessary.
        outcomes: the outcome of each delivery, in the order of the deliveries.
    """

    messages: list[SearchableItem] = field(default_factory=list)
    documents: list[IndexedDocument] = field(default_factory=list)
    summaries: list[SearchableItem] = field(default_factory=list)
    sweeps: dict[Owner, int] = field(default_factory=dict)
    outcomes: list[DeliveryOutcome] = field(default_factory=list)


def plan_batch(deliveries: Sequence[Delivery], seen: int = 0) -> IndexPlan:
    """Decide which events of a batch to index, and which users to sweep.

    Facts are not indexed from events: only the projections know which facts are live.

    Args:
        deliveries: the batch.
        seen: log position up to which events may have been indexed before, and their points removed since.
    """
    batch = IndexPlan()
    for delivery in deliveries:
        try:
            batch.outcomes.append(_add_event(batch, delivery, seen))
        except (InvalidSubject, UnknownEvent, InvalidBody):
            batch.outcomes.append(POISON)
    return batch


def _add_event(batch: IndexPlan, delivery: Delivery, seen: int) -> DeliveryOutcome:
    if delivery.subject == FILLER_SUBJECT:
        return NOTHING
    address = parse_subject(delivery.subject)
    owner = address.owner
    if delivery.deliveries > 1 or delivery.sequence <= seen:
        _add_sweep(batch, owner, delivery)  # may have been indexed before, and removed later
    contract = find_contract(address)
    if contract.latest is MessageV1 and address.version == 1:
        message = message_parser.parse_message(delivery.body)
        if message is not None:
            event_id = get_event_id(delivery, address, message.id)
            moment = message.compute_sent_time()
            sent_at = datetime.fromtimestamp(delivery.stored_at if moment is None else moment, UTC)
            batch.messages.append(
                build_message_item(owner, event_id, delivery.sequence, message.content, message.name, sent_at)
            )
            return ACK
    event = upcast_body(contract, address.version, delivery.body)
    event_id = get_event_id(delivery, address, event.id)
    match event:
        case MessageV1():
            sent_at = event.sent_at or datetime.fromtimestamp(delivery.stored_at, UTC)
            batch.messages.append(
                build_message_item(owner, event_id, delivery.sequence, event.content, event.name, sent_at)
            )
        case DocumentAddedV1():
            batch.documents.append(IndexedDocument(owner, event_id, event))
            _add_sweep(batch, owner, delivery)  # the former version may have more chunks
        case SummaryWrittenV1() | SummaryMergedV1():
            batch.summaries.append(build_summary_item(owner, event.summary_id, event_id, event.text))
            # The summary may replace others, or cover messages that were removed meanwhile.
            _add_sweep(batch, owner, delivery)
        case ClearedV1() | StartedV1(discard_previous=True) | UserErasedV1():
            _add_sweep(batch, owner, delivery)
        case _ if isinstance(event, _SWEPT):
            _add_sweep(batch, owner, delivery)
        case _:
            return NOTHING
    return ACK


def _add_sweep(batch: IndexPlan, owner: Owner, delivery: Delivery) -> None:
    batch.sweeps[owner] = max(delivery.sequence, batch.sweeps.get(owner, 0))
