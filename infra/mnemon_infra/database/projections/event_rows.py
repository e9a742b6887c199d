"""Rows of events that are neither messages nor memory events: tables and values.

All functions are pure.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from mnemon_contracts.base import Event
from mnemon_contracts.events.chat import ClearedV1, StartedV1
from mnemon_contracts.events.erasure import UserErasedV1
from mnemon_contracts.events.memory import ModelCalledV2, ProfileSetV1
from mnemon_contracts.identity import derive_started_conversation
from mnemon_contracts.subjects import Address
from mnemon_infra.delivery import Delivery

EventRowKey = tuple[str, str, str]

Projected = tuple[str, Mapping[str, Any]]
"""Name of a table, and the values of a row of it besides key and log position."""


def _project_started(event: Event, address: Address, key: EventRowKey, delivery: Delivery) -> Projected:
    assert isinstance(event, StartedV1)
    conversation = address.conversation or derive_started_conversation(*key)
    return "starts", {"conversation": conversation, "discard_previous": event.discard_previous}


def _project_cleared(event: Event, address: Address, key: EventRowKey, delivery: Delivery) -> Projected:
    return "clears", {"conversation": address.conversation}


def _project_profile_set(event: Event, address: Address, key: EventRowKey, delivery: Delivery) -> Projected:
    assert isinstance(event, ProfileSetV1)
    return "profile_sets", {"fields": event.fields}


def _project_erased(event: Event, address: Address, key: EventRowKey, delivery: Delivery) -> Projected:
    assert isinstance(event, UserErasedV1)
    # Messages after the event belong to a new user, whatever position the event names.
    up_to = min(event.up_to_seq, delivery.sequence)
    values = {"up_to": up_to, "at": datetime.fromtimestamp(delivery.stored_at, UTC)}
    if event.conversation is None:
        return "erasures", values
    spans = [f"[{each.from_seq},{each.to_seq})" for each in event.spans if each.from_seq < each.to_seq]
    return "conversation_erasures", {
        **values,
        "conversation": event.conversation,
        "spans": f"{{{','.join(spans)}}}",
        "discarded": event.discarded_seq,
        "derived": list(event.derived),
        "is_settled": False,
    }


def _project_model_called(event: Event, address: Address, key: EventRowKey, delivery: Delivery) -> Projected:
    assert isinstance(event, ModelCalledV2)
    return "model_calls", {
        "at": datetime.fromtimestamp(delivery.stored_at, UTC),
        "provider": event.provider,
        "model": event.model,
        "purpose": event.purpose,
        "in_batch": event.batch_id is not None,
        "input_tokens": event.tokens.input,
        "cached_tokens": event.tokens.cached,
        "output_tokens": event.tokens.output,
        "usd": event.usd,
    }


PROJECTIONS: Final[Mapping[type[Event], Callable[[Event, Address, EventRowKey, Delivery], Projected]]] = {
    StartedV1: _project_started,
    ClearedV1: _project_cleared,
    ProfileSetV1: _project_profile_set,
    ModelCalledV2: _project_model_called,
    UserErasedV1: _project_erased,
}
"""Projection function of each event type that this module covers."""
