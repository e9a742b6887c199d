"""Replies as large as the server accepts, with the headers of a trace."""

import json

import pytest
from nats.aio.client import Client

from mnemon_infra.broker.admission import Admission, RequestLimits
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.service import AskService
from mnemon_infra.config import Deployment
from mnemon_infra.telemetry import tracing
from tests.support.servers.trace_collector import collecting


async def test_reply_that_exceeds_the_limit_with_its_headers_is_refused(
    deployment: Deployment, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(deployment, "test")
    service = AskService(broker, "test", "1.0.0", Admission(lambda _: RequestLimits(None, 8)))
    service.add_endpoint("status", lambda address, body: b"x" * connection.max_payload)
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        async with tracing.trace_process(("test",)), broker.connect(), broker.run():
            for _ in range(2):  # the server closes a connection that sends more
                reply = await connection.request("ask.acme.u1.status.v1", b"{}", timeout=10)
                assert json.loads(reply.data)["error"]["code"] == "refused"
