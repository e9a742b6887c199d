"""Traces: of an event from the bot's publish through all consumers, and of a request to its reply.

The W3C header `traceparent` carries a trace from one process to the next. An event without the header has a
trace too, which every consumer derives from the event's position in the log. If no collector is configured,
OpenTelemetry is not imported, and no span is made.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from hashlib import blake2b
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, Protocol, Self

import structlog

from mnemon_contracts.streams import LOG

if TYPE_CHECKING:
    from mnemon_infra.delivery import Delivery
    from mnemon_infra.telemetry.spans import SpanFactory

log = structlog.get_logger("telemetry")

TRACEPARENT: Final = "traceparent"

_VALID: Final = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
"""Format of a valid `traceparent`: clients may send any text."""

_AT_A_TIME: Final = 25
"""Maximum number of spans that are made before other tasks run: two milliseconds of work."""

_ENDPOINTS: Final = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"

_spans: "SpanFactory | None" = None
"""Factory of the spans of this process; None if tracing is off."""


def is_configured(environment: Mapping[str, str]) -> bool:
    """Return whether OpenTelemetry's variables name a collector and do not switch tracing off."""
    is_off = (
        environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
        or environment.get("OTEL_TRACES_EXPORTER", "otlp").lower() == "none"
    )
    return not is_off and any(environment.get(name) for name in _ENDPOINTS)


@asynccontextmanager
async def trace_process(consumers: Sequence[str]) -> AsyncIterator[None]:
    """Trace this process until the end of the block, if the environment configures a collector.

    If OpenTelemetry is not installed, log a warning and run the block untraced.
    """
    global _spans
    if not is_configured(os.environ):
        yield
        return
    try:
        from mnemon_infra.telemetry.spans import SpanFactory
    except ImportError:
        log.warning("tracing disabled, package missing", install="pip install 'mnemon[otel]'")
        yield
        return
    _spans = spans = SpanFactory(version("mnemon"), consumers)
    try:
        yield
    finally:
        _spans = None
        await asyncio.to_thread(spans.close)


def is_tracing_on() -> bool:
    """Return whether tracing is on. Call this function before work that only tracing needs."""
    return _spans is not None


def get_traceparent() -> str | None:
    """Return the `traceparent` for events and requests that are made now; None outside of a trace."""
    return None if _spans is None else _spans.get_traceparent()


def build_headers() -> dict[str, str]:
    """Return the current trace as headers of a message; empty outside of a trace."""
    traceparent = get_traceparent()
    return {} if traceparent is None else {TRACEPARENT: traceparent}


def build_log_fields() -> dict[str, str]:
    """Return the ids of the current trace and span as fields of a log line; empty outside of a trace."""
    return {} if _spans is None else _spans.build_log_fields()


def build_event_log_fields(delivery: "Delivery") -> dict[str, str]:
    """Return the id of the trace of an event as a field of a log line.

    The result is empty if tracing is off, and for a trigger without a trace.
    """
    traceparent = derive_traceparent(delivery)
    return {} if traceparent is None else {"trace_id": traceparent[3:35]}


@contextmanager
def trace_block(name: str, traceparent: str | None, **attributes: str | int) -> Iterator[None]:
    """Run the block as a span of the trace that `traceparent` names.

    Without a `traceparent`, or if tracing is off, run the block untraced.
    """
    if _spans is None or traceparent is None:
        yield
        return
    with _spans.trace_block(name, traceparent, attributes):
        yield


def derive_traceparent(delivery: "Delivery") -> str | None:
    """Return the `traceparent` of an event: that in its headers if valid, else one derived from its position.

    Return None if tracing is off, and for a trigger without a trace, which may be about many events.
    """
    if _spans is None:
        return None
    if delivery.traceparent and _VALID.fullmatch(delivery.traceparent):
        return delivery.traceparent
    if delivery.stream != LOG:
        return None
    # The trace depends on the second of storage too, since two deployments have the same positions.
    place = f"{delivery.stream}:{delivery.sequence}:{int(delivery.stored_at)}"
    own = blake2b(place.encode(), digest_size=24).hexdigest()
    return f"00-{own[:32]}-{own[32:]}-{'01' if _spans.is_sampled(own[:32]) else '00'}"


async def record_batch(
    consumer: str, deliveries: Sequence["Delivery"], ends: Sequence[str], begun: float, ended: float
) -> None:
    """Record in the trace of each event how a consumer handled it.

    `ends` has the outcome of each delivery, in the words of `mnemon_infra.telemetry.metrics`. `begun` and
    `ended` are the begin and the end of the batch, in seconds since 1970.
    """
    for place, (delivery, end) in enumerate(zip(deliveries, ends, strict=True)):
        if place % _AT_A_TIME == 0:
            await asyncio.sleep(0)
        traceparent = derive_traceparent(delivery)
        if _spans is not None and traceparent is not None:
            _spans.record_delivery(traceparent, consumer, delivery, end, len(deliveries), (begun, ended))


class RequestTrace(Protocol):
    """Trace of a request that is being answered: work within its `with` block belongs to the trace."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the reply, which name the trace; empty if tracing is off."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def end(self, error: str | None) -> None:
        """End the trace when the reply is made; `error` is the reply's error code, None if it has none."""


class _Untraced:
    headers: Mapping[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def end(self, error: str | None) -> None:
        pass


_UNTRACED: Final = _Untraced()


def begin_request_trace(verb: str, received: Mapping[str, str] | None) -> RequestTrace:
    """Begin to trace a request in the trace that its headers `received` name, else in a new trace.

    If tracing is off, the result does nothing.
    """
    if _spans is None:
        return _UNTRACED
    traceparent = (received or {}).get(TRACEPARENT, "")
    return _spans.begin_request(verb, traceparent if _VALID.fullmatch(traceparent) else None)
