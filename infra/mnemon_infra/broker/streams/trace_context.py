"""The trace of an event that is in the log already: who reads it later goes on with it."""

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.streams.log_reader import delivery_at
from mnemon_infra.telemetry import tracing

log = structlog.get_logger("broker")


async def trace_at(connection: Client, position: int) -> str | None:
    """The trace of the event at a log position; None where nothing is traced, or there is no such event."""
    if not tracing.is_on():
        return None
    try:
        return tracing.of_event(await delivery_at(connection, position))
    except NotFoundError:
        return None
    except (nats.errors.Error, TimeoutError) as error:
        log.warning("trace context not read", stream=LOG, seq=position, error=repr(error))
        return None
