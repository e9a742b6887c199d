"""Encoding of imported records as events of the log: subject, body and id."""

from mnemon.operations.imports.records import Incoming, RefusedRecord
from mnemon_contracts.base import Event, InvalidBody
from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1
from mnemon_contracts.identity import scoped
from mnemon_contracts.registry import EVENTS
from mnemon_contracts.subjects import InvalidId, memory_subject
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_producers.events import ChatEvent, encode

_NAMES = {contract.latest: contract.name for contract in EVENTS.values()}


def get_event_name(event: Event) -> str:
    """Return the name of an event, such as `fact.saved`."""
    return _NAMES[type(event)]


def encode_event(tenant: str, incoming: Incoming) -> LogEvent | RefusedRecord:
    """Return the event for the log, or the refusal if an id is invalid or the body is too large."""
    event, event_id = incoming.event, str(incoming.event.id)
    try:
        if isinstance(event, MessageV1 | StartedV1 | ClearedV1):
            sent = encode(tenant, ChatEvent(incoming.user, event, incoming.conversation), event_id)
            return LogEvent(sent.subject, sent.body, sent.message_id)
        subject = memory_subject(
            tenant, incoming.user, get_event_name(event), len(EVENTS[get_event_name(event)].versions)
        )
        return LogEvent(subject, event.body(), scoped(tenant, incoming.user, event_id))
    except InvalidBody as error:
        return RefusedRecord(incoming.place, error.field, error.problem, incoming.source)
    except InvalidId as error:
        return RefusedRecord(incoming.place, "user", str(error), incoming.source)
