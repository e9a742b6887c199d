"""Trace of an event that is in the log already, so that later readers can continue it."""

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.streams.log_reader import read_delivery
from mnemon_infra.telemetry import tracing

log = structlog.get_logger("broker")


async def read_trace(connection: Client, position: int) -> str | None:
    """Return the trace of the event at a log position.

    The result is None if tracing is off, the log has no event at the position, or the server does not answer.
    """
    if not tracing.is_tracing_on():
        return None
    try:
        return tracing.derive_traceparent(await read_delivery(connection, position))
    except NotFoundError:
        return None
    except (nats.errors.Error, TimeoutError) as error:
        log.warning("trace context read failed", stream=LOG, seq=position, error=repr(error))
        return None
