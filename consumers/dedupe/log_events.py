"""Conversion of events between the log, the projections and decisions."""

import json
from typing import Any

from consumers.dedupe.decide import Decided
from contracts.base import Event
from contracts.identity import scoped
from contracts.registry import EVENTS
from contracts.subjects import memory_subject
from infra.broker.appending import LogEvent
from infra.telemetry import tracing
from infra.vectors.port import Owner


def event_of(name: str, body: dict[str, Any]) -> Event:
    """Read an event from the body that the projections keep."""
    return EVENTS[name].latest.model_validate_json(json.dumps(body))


def log_event(owner: Owner, decided: Decided) -> LogEvent:
    """Turn a decision into an event for the log, in the current trace."""
    name, event = decided
    event_id = scoped(*owner, str(event.id))
    return LogEvent(memory_subject(*owner, name), event.body(), event_id, tracing.current())
