"""Trace headers: requests and published events carry the bot's own trace as the W3C header `traceparent`."""

import sys


def build_trace_headers() -> dict[str, str]:
    """Return the header `traceparent` of the bot's current span; empty without a span.

    The function imports nothing: a bot that has a span has imported OpenTelemetry.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return {}
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return {}
    return {"traceparent": f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"}
