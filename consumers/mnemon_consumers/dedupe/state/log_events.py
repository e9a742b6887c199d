"""Conversion of events between the log, the projections and decisions."""

import json
from typing import Any

from mnemon_consumers.dedupe.decide import Decided
from mnemon_contracts.base import Event
from mnemon_contracts.identity import scoped
from mnemon_contracts.registry import EVENTS
from mnemon_contracts.subjects import Owner, memory_subject
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.telemetry import tracing


def event_of(name: str, body: dict[str, Any]) -> Event:
    """Read an event from the body that the projections keep."""
    return EVENTS[name].latest.model_validate_json(json.dumps(body))


def log_event(owner: Owner, decided: Decided) -> LogEvent:
    """Turn a decision into an event for the log, in the current trace."""
    name, event = decided
    event_id = scoped(*owner, str(event.id))
    return LogEvent(memory_subject(*owner, name), event.body(), event_id, tracing.current_traceparent())
