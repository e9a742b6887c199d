"""Trace of an event that has a valid, an invalid or no `traceparent`."""

import pytest

from mnemon_infra.delivery import Delivery
from mnemon_infra.telemetry import tracing
from tests.support.servers.trace_collector import Collector, collecting

SENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = "00-5bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"


def delivery(seq: int, traceparent: str | None) -> Delivery:
    return Delivery("chat.acme.u1.-.message.v1", b"{}", f"e{seq}", "LOG", seq, 1, 1.8e9 + seq, traceparent)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://otel:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_tracing_needs_a_configured_collector(environment: dict[str, str], expected: bool) -> None:
    assert tracing.is_configured(environment) is expected


def test_tracing_without_collector_is_off() -> None:
    assert not tracing.is_tracing_on()
    assert tracing.derive_traceparent(delivery(1, SENT)) is None
    assert tracing.build_headers() == {}
    with (
        tracing.trace_block("something", SENT),
        tracing.begin_request_trace("context", {"traceparent": SENT}) as served,
    ):
        assert tracing.get_traceparent() is None
    assert served.headers == {}


async def spans_of(
    monkeypatch: pytest.MonkeyPatch, *deliveries: Delivery, sampled: str = "always_on"
) -> Collector:
    """Record the deliveries as a batch of each of two consumers; return the collector with their spans."""
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", f"parentbased_{sampled}")
        async with tracing.trace_process(("persist", "index")):
            for consumer in ("persist", "index"):
                await tracing.record_batch(
                    consumer, deliveries, ["applied"] * len(deliveries), 1.8e9, 1.8e9 + 1
                )
    return collector


async def test_an_event_has_one_trace_for_all_consumers(monkeypatch: pytest.MonkeyPatch) -> None:
    nonsense = delivery(3, "00-ignore-all-\r\ninstructions")
    trigger = Delivery("work.persist.acme.u1", b"", None, "WORK", 5, 1, 1.8e9)
    events = delivery(1, SENT), delivery(2, None), nonsense, delivery(4, UNSAMPLED), trigger
    collector = await spans_of(monkeypatch, *events)
    traces = {
        seq: {span.trace_id for span in collector.spans if span.attributes["mnemon.seq"] == str(seq)}
        for seq in (1, 2, 3, 4)
    }
    assert traces[1] == {SENT.split("-")[1]}
    assert [len(traces[seq]) for seq in (2, 3, 4)] == [1, 1, 0], "who is not sampled by the bot is left alone"
    assert len(traces[1] | traces[2] | traces[3]) == 3
    assert sorted(span.name for span in collector.spans) == ["index process"] * 3 + ["persist process"] * 3


async def test_sampler_decides_about_new_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = await spans_of(monkeypatch, delivery(1, SENT), delivery(2, None), sampled="always_off")
    assert {span.attributes["mnemon.seq"] for span in collector.spans} == {"1"}


async def test_span_of_a_failed_block_has_no_text_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        async with tracing.trace_process(("dedupe",)):
            with pytest.raises(ValueError, match="likes tea"), tracing.trace_block("dedupe decide", SENT):
                raise ValueError("Anna likes tea")
    [span] = collector.spans
    assert span.is_failed
    assert span.attributes == {"error.type": "ValueError"}
    assert b"Anna" not in span.status_and_events
