"""Traces and metrics of a running stack: one trace leads from a bot's message to the reply."""

import asyncio
import json
import shutil
from itertools import count
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg
from opentelemetry.sdk.trace import TracerProvider

from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Compaction, Extraction
from mnemon_infra.settings.store import write_settings
from mnemon_infra.telemetry.panels import ROWS
from mnemon_producers.client import MemoryClient
from tests.support.patience import PATIENT
from tests.support.processes.stack import TIMEOUT, Up, until
from tests.support.servers.ports import free_port
from tests.support.servers.prometheus import Prometheus, prometheus
from tests.support.servers.trace_collector import Collector, collecting

TRACED = {
    "persist process",
    "index process",
    "dedupe process",
    "dedupe decide",
    "extract ask",
    "extract answer",
}


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_running_stack_exports_one_trace_and_metrics(up: Up, tmp_path: Path) -> None:
    port = free_port(1)
    with collecting() as collector:
        await up.start(
            "--no-admin",
            "--metrics-port",
            str(port),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
            OTEL_BSP_SCHEDULE_DELAY="100",
        )
        await one_trace(up, collector)
        if shutil.which("prometheus") is None:
            pytest.skip("there is no Prometheus: apt-get install prometheus; the trace was followed")
        async with prometheus(tmp_path, [f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}"]) as watching:
            await all_panels(up, watching)


async def one_trace(up: Up, collector: Collector) -> None:
    """Check that a message, its facts and the reply belong to one trace over both processes."""
    assert up.endpoints
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("bot")
    learned: asyncio.Queue[Msg] = asyncio.Queue()
    async with (
        await nats.connect(up.endpoints.nats) as client,
        MemoryClient.connect(up.endpoints.nats, tenant="acme", timeouts=PATIENT) as memory,
    ):
        settings = SettingsV1(
            extraction=Extraction(mode="online", idle_seconds=1),
            compaction=Compaction(after_messages=2, messages=1),
        )
        await write_settings(client, settings)
        await client.subscribe("memory.acme.u1.>", cb=learned.put)
        await client.flush()
        events: dict[str, Msg] = {}
        with tracer.start_as_current_span("turn") as turn:
            for text in ("My sister's name is Vera.", "She lives in Lisbon.", "It is sunny there."):
                await memory.publish("u1", "user", text)
            async with asyncio.timeout(TIMEOUT):
                while not {"fact.saved", "summary.written"} <= events.keys():
                    event = await learned.get()
                    events[".".join(event.subject.split(".")[3:5])] = event
            await memory.save("u1", "The user likes green tea.")
            context = await memory.context("u1", query="What is my sister's name?")
            assert "Vera" in context.model_dump_json()
            trace_id = f"{turn.get_span_context().trace_id:032x}"
            asked = {"traceparent": f"00-{trace_id}-{turn.get_span_context().span_id:016x}-01"}
        while not learned.empty():
            events[str(len(events))] = learned.get_nowait()
        assert len(events) > 4
        for event in events.values():
            assert (event.headers or {})["traceparent"].split("-")[1] == trace_id, event.subject
        reply = await client.request("ask.acme.u1.read.v1", b"{}", timeout=TIMEOUT, headers=asked)
        assert (reply.headers or {})["traceparent"].split("-")[1] == trace_id
        assert (reply.headers or {})["traceparent"] != asked["traceparent"], "it is the answer's own span"
    wanted = {*TRACED, "compact", "ask save", "ask context", "ask read"}
    await until(lambda: wanted <= {span.name for span in collector.of(trace_id)})
    # A process exports spans when they end, and `persist` may handle the proposal late.
    await until(lambda: {"applied", "nothing"} <= list_outcomes(collector, trace_id))
    spans = collector.of(trace_id)
    assert {span.service for span in spans} == {"mnemon"}
    assert len({span.process for span in spans}) == 2, "of the process that answers, and of the other"
    assert list_outcomes(collector, trace_id) == {"applied", "nothing"}, "a proposal is no row"
    assert all("Vera" not in value for span in spans for value in span.attributes.values())
    await logged_with_its_trace(up, trace_id)


def list_outcomes(collector: Collector, trace_id: str) -> set[str]:
    """Return the outcomes of the events that `persist` has handled."""
    spans = [span for span in collector.of(trace_id) if span.name == "persist process"]
    return {str(span.attributes["mnemon.outcome"]) for span in spans}


async def logged_with_its_trace(up: Up, trace_id: str) -> None:
    """Check that the log message about an invalid event has its event id, position, consumer and trace."""
    assert up.endpoints
    headers = {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01", "Nats-Msg-Id": "telegram:7"}
    async with await nats.connect(up.endpoints.nats) as client:
        said = await client.jetstream().publish("chat.acme.u1.-.message.v1", b"no JSON", headers=headers)
    await until(lambda: '"event": "dead letter stored"' in up.log)
    line = json.loads(next(line for line in up.log.splitlines() if '"event": "dead letter stored"' in line))
    known = {"event_id": "telegram:7", "seq": said.seq, "consumer": "persist", "trace_id": trace_id}
    assert known.items() <= line.items()


async def all_panels(up: Up, watching: Prometheus) -> None:
    """Check that each query of the dashboard has data and each alert rule is evaluated while bots publish."""
    assert up.endpoints
    left = {
        query.replace("$__rate_interval", "1m")
        for _, panels in ROWS
        for panel in panels
        for query, _ in panel.queries
    }
    assert len(left) > 30
    async with (
        MemoryClient.connect(up.endpoints.nats, tenant="acme", timeouts=PATIENT) as memory,
        asyncio.timeout(TIMEOUT),
    ):
        for number in count():
            user = f"u{number}"
            seq = await memory.publish(user, "user", "I like green tea.")
            await memory.context(user, min_seq=seq)
            left -= {query for query in left if await watching.has_data(query)}
            if not left:
                break
            await asyncio.sleep(1)
    async with asyncio.timeout(TIMEOUT):
        rules = await watching.rules()
        while any(rule["health"] == "unknown" for rule in rules.values()):
            await asyncio.sleep(0.2)
            rules = await watching.rules()
    assert {rule["health"] for rule in rules.values()} == {"ok"}, rules
    assert [name for name, rule in rules.items() if rule["state"] == "firing"] == []
    async with await nats.connect(up.endpoints.nats) as client, asyncio.timeout(TIMEOUT):
        await client.jetstream().publish("chat.acme.u1.-.message.v1", b"no JSON")
        while (await watching.rules())["MnemonDeadLetters"]["state"] != "firing":
            await asyncio.sleep(0.2)
