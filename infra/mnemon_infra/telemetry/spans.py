"""Spans of OpenTelemetry's SDK, sent by OTLP over HTTP. Imported only if tracing is on."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Token
from os import environ
from typing import Final, Self

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import Span, SpanKind, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from mnemon_infra.delivery import Delivery

_W3C: Final = TraceContextTextMapPropagator()
_SAMPLED: Final = 1


class SpanFactory:
    """Factory of the spans of this process. OpenTelemetry's variables set the sampler and the destination.

    No span contains a tenant, a user or a text, unless a bot puts one into the id of an event: the position
    and the id are enough to find the event.
    """

    def __init__(self, version: str, consumers: Sequence[str]) -> None:
        own = {SERVICE_VERSION: version, "mnemon.consumers": list(consumers)}
        name = {} if environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "mnemon"}
        self._provider = TracerProvider(resource=Resource.create({**own, **name}), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("mnemon", version)

    def close(self) -> None:
        """Send the spans that are not sent yet."""
        self._provider.shutdown()

    def is_sampled(self, trace_id: str) -> bool:
        """Return whether the sampler keeps a trace that begins in this process."""
        result = self._provider.sampler.should_sample(None, int(trace_id, 16), "event")
        return result.decision is Decision.RECORD_AND_SAMPLE

    def get_traceparent(self) -> str | None:
        """Return the `traceparent` of the current span; None outside of a span."""
        return _format_traceparent(get_current_span())

    def build_log_fields(self) -> dict[str, str]:
        """Return the ids of the current trace and span for a log line; empty outside of a span."""
        of = get_current_span().get_span_context()
        return {"trace_id": f"{of.trace_id:032x}", "span_id": f"{of.span_id:016x}"} if of.is_valid else {}

    @contextmanager
    def trace_block(self, name: str, traceparent: str, attributes: Mapping[str, str | int]) -> Iterator[None]:
        """Trace the block as a span of the trace that `traceparent` names."""
        with self._tracer.start_as_current_span(
            name,
            _parse_context(traceparent),
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except Exception as error:
                # The message and the traceback may quote a text.
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(StatusCode.ERROR)
                raise

    def record_delivery(
        self,
        traceparent: str,
        consumer: str,
        delivery: Delivery,
        end: str,
        batch_size: int,
        times: tuple[float, float],
    ) -> None:
        """Record how a consumer handled an event, as a span of the event's trace.

        Args:
            traceparent: the trace of the event; nothing is recorded unless its flag `sampled` is set.
            consumer: name of the durable.
            delivery: the delivery of the event.
            end: outcome of the delivery, in the words of `mnemon_infra.telemetry.metrics`.
            batch_size: number of events in the batch.
            times: begin and end of the batch, in seconds since 1970.
        """
        if not int(traceparent[-2:], 16) & _SAMPLED:
            return
        begun, ended = (int(time * 1e9) for time in times)
        attributes: dict[str, str | int] = {
            "messaging.system": "nats",
            "messaging.operation.type": "process",
            "messaging.destination.name": delivery.stream,
            "messaging.consumer.group.name": consumer,
            "messaging.message.id": delivery.message_id or f"{delivery.stream}:{delivery.sequence}",
            "messaging.batch.message_count": batch_size,
            "mnemon.seq": delivery.sequence,
            "mnemon.deliveries": delivery.deliveries,
            "mnemon.outcome": end,
        }
        span = self._tracer.start_span(
            f"{consumer} process",
            _parse_context(traceparent),
            SpanKind.CONSUMER,
            attributes,
            start_time=begun,
        )
        if end == "dead":
            span.set_status(StatusCode.ERROR)
        span.end(ended)

    def begin_request(self, verb: str, traceparent: str | None) -> "ServedSpan":
        """Begin a span for a request; without a `traceparent`, the span begins a trace."""
        context = _parse_context(traceparent) if traceparent else Context()
        attributes = {"rpc.system": "nats", "rpc.service": "mnemon", "rpc.method": verb}
        return ServedSpan(self._tracer.start_span(f"ask {verb}", context, SpanKind.SERVER, attributes))


class ServedSpan:
    """Span of a request; see `mnemon_infra.telemetry.tracing.RequestTrace`."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self._before: Token[Context] | None = None
        traceparent = _format_traceparent(span)
        self.headers = {"traceparent": traceparent} if traceparent else {}

    def __enter__(self) -> Self:
        self._before = contexts.attach(set_span_in_context(self._span))
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            contexts.detach(self._before)

    def end(self, error: str | None) -> None:
        if error is not None:
            self._span.set_attribute("error.type", error)
            self._span.set_status(StatusCode.ERROR)
        self._span.end()


def _parse_context(traceparent: str) -> Context:
    return _W3C.extract({"traceparent": traceparent}, Context())


def _format_traceparent(span: Span) -> str | None:
    of = span.get_span_context()
    if not of.is_valid:
        return None
    return f"00-{of.trace_id:032x}-{of.span_id:016x}-{of.trace_flags:02x}"
