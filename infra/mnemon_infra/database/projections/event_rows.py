"""Rows of events that are neither messages nor memory events: tables and values.

All functions are pure.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mnemon_contracts.base import Event
from mnemon_contracts.events.chat import ClearedV1, StartedV1
from mnemon_contracts.events.erasure import UserErasedV1
from mnemon_contracts.events.memory import ModelCalledV2, ProfileSetV1
from mnemon_contracts.identity import derive_started_conversation
from mnemon_contracts.subjects import Address
from mnemon_infra.delivery import Delivery

EventKey = tuple[str, str, str]
"""Identity of an event: tenant, user and event id."""


def project_event(
    event: Event, address: Address, key: EventKey, delivery: Delivery
) -> tuple[str, Mapping[str, Any]] | None:
    """Return the table of an event, and the values of its row besides key and log position.

    Return None if events of this type have no row of their own.
    """
    match event:
        case StartedV1():
            conversation = address.conversation or derive_started_conversation(*key)
            return "starts", {"conversation": conversation, "discard_previous": event.discard_previous}
        case ClearedV1():
            return "clears", {"conversation": address.conversation}
        case ProfileSetV1():
            return "profile_sets", {"fields": event.fields}
        case ModelCalledV2():
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
        case UserErasedV1():
            return _project_erasure(event, delivery)
    return None


def _project_erasure(event: UserErasedV1, delivery: Delivery) -> tuple[str, Mapping[str, Any]]:
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
