"""Traces: an event's way from the bot's publish through all consumers, and a request's to its reply.

What is carried from one to the next is the W3C header `traceparent`. An event that came without one has a
trace all the same, which follows from its place in the log: every consumer comes to the same. Nothing is
imported, and next to nothing done, where no collector is named.
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
"""What comes from outside may be anything."""

_AT_A_TIME: Final = 25
"""Spans that are made before whoever else waits has a turn: two milliseconds."""

_ENDPOINTS: Final = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"

_spans: "SpanFactory | None" = None
"""None where nothing is traced."""


def wanted(environment: Mapping[str, str]) -> bool:
    """Whether a collector is named, and nobody has switched it off, by OpenTelemetry's own variables."""
    is_off = (
        environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
        or environment.get("OTEL_TRACES_EXPORTER", "otlp").lower() == "none"
    )
    return not is_off and any(environment.get(name) for name in _ENDPOINTS)


@asynccontextmanager
async def traced(consumers: Sequence[str]) -> AsyncIterator[None]:
    """Trace what this process does, where it is wanted, until the end of the block."""
    global _spans
    if not wanted(os.environ):
        yield
        return
    try:
        from mnemon_infra.telemetry.spans import SpanFactory
    except ImportError:
        log.warning("tracing disabled, package missing: pip install 'mnemon[otel]'")
        yield
        return
    _spans = spans = SpanFactory(version("mnemon"), consumers)
    try:
        yield
    finally:
        _spans = None
        await asyncio.to_thread(spans.close)


def is_on() -> bool:
    """Whether anything is traced: asked before what costs something."""
    return _spans is not None


def current() -> str | None:
    """The `traceparent` for what is made now; None outside of a trace."""
    return None if _spans is None else _spans.current()


def headers() -> dict[str, str]:
    """The same as headers of a message."""
    traceparent = current()
    return {} if traceparent is None else {TRACEPARENT: traceparent}


def logged() -> dict[str, str]:
    """The same as a log line has it."""
    return {} if _spans is None else _spans.logged()


def logged_of(delivery: "Delivery") -> dict[str, str]:
    """The same for a line about an event of the log."""
    traceparent = of_event(delivery)
    return {} if traceparent is None else {"trace_id": traceparent[3:35]}


@contextmanager
def span(name: str, traceparent: str | None, **attributes: str | int) -> Iterator[None]:
    """A piece of work that goes on with a trace; without one it is not traced."""
    if _spans is None or traceparent is None:
        yield
        return
    with _spans.span(name, traceparent, attributes):
        yield


def of_event(delivery: "Delivery") -> str | None:
    """The trace of an event of the log: that which it came with, else one of its own.

    None where nothing is traced, and for a trigger, which may be of many.
    """
    if _spans is None:
        return None
    if delivery.traceparent and _VALID.fullmatch(delivery.traceparent):
        return delivery.traceparent
    if delivery.stream != LOG:
        return None
    # The second is the log's: two deployments have the same positions.
    place = f"{delivery.stream}:{delivery.sequence}:{int(delivery.stored_at)}"
    own = blake2b(place.encode(), digest_size=24).hexdigest()
    return f"00-{own[:32]}-{own[32:]}-{'01' if _spans.is_sampled(own[:32]) else '00'}"


async def record(
    consumer: str, deliveries: Sequence["Delivery"], ends: Sequence[str], begun: float, ended: float
) -> None:
    """Note in the trace of each event what a consumer did with it.

    Args:
        consumer: the durable.
        deliveries: a batch.
        ends: how each ended, as `mnemon_infra.telemetry.metrics` names it.
        begun: in seconds since 1970.
        ended: the same.
    """
    for place, (delivery, end) in enumerate(zip(deliveries, ends, strict=True)):
        if place % _AT_A_TIME == 0:
            await asyncio.sleep(0)
        traceparent = of_event(delivery)
        if _spans is not None and traceparent is not None:
            _spans.handled(traceparent, consumer, delivery, end, len(deliveries), (begun, ended))


class RequestTrace(Protocol):
    """A request in hand: what is done within its `with` block belongs to its trace."""

    @property
    def headers(self) -> Mapping[str, str]:
        """For the reply."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def end(self, error: str | None) -> None:
        """The reply is made; `error` is its code."""


class _Untraced:
    headers: Mapping[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def end(self, error: str | None) -> None:
        pass


_UNTRACED: Final = _Untraced()


def serving(verb: str, received: Mapping[str, str] | None) -> RequestTrace:
    """A request, as part of the trace that its headers name."""
    if _spans is None:
        return _UNTRACED
    traceparent = (received or {}).get(TRACEPARENT, "")
    return _spans.serving(verb, traceparent if _VALID.fullmatch(traceparent) else None)
