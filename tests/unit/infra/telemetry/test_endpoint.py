"""A process over HTTP: whether it is alive and ready, and why not."""

import asyncio
import json
import threading
from collections.abc import Sequence
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from mnemon_infra.telemetry import endpoint
from mnemon_infra.telemetry.endpoint import MetricsPortTaken, answering_http
from tests.support.ports import free_port


def got(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urlopen(Request(url, headers=headers)) as response:
            return response.status, response.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def test_endpoint_reports_readiness_and_cause() -> None:
    reasons: list[str] = []

    async def look() -> Sequence[str]:
        return reasons

    port = free_port()
    async with answering_http("127.0.0.1", port, look):
        base = f"http://127.0.0.1:{port}"
        assert await asyncio.to_thread(got, f"{base}/readyz") == (200, '{"ready": true, "reasons": []}\n')
        reasons.append("the database does not answer")
        status, body = await asyncio.to_thread(got, f"{base}/readyz?verbose")
        assert (status, json.loads(body)) == (503, {"ready": False, "reasons": reasons})
        assert (await asyncio.to_thread(got, f"{base}/healthz"))[0] == 200
        assert "# TYPE mnemon_events_total counter" in (await asyncio.to_thread(got, f"{base}/metrics"))[1]
        assert (await asyncio.to_thread(got, f"{base}/"))[0] == 404
        with pytest.raises(MetricsPortTaken, match=f"{port}.*MNEMON_METRICS_PORT"):
            async with answering_http("127.0.0.1", port, look):
                pass


async def test_blocked_event_loop_is_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "PATIENCE", 0.1)
    port = free_port()

    async def look() -> Sequence[str]:
        return []

    async with answering_http("127.0.0.1", port, look):
        found: list[tuple[int, str]] = []
        asking = threading.Thread(target=lambda: found.append(got(f"http://127.0.0.1:{port}/healthz")))
        asking.start()
        asking.join()  # in the loop's own thread: it does not turn meanwhile
    assert [status for status, _ in found] == [503]
    assert json.loads(found[0][1])["alive"] is False


@pytest.mark.parametrize(
    ("listens_at", "host", "status"),
    [
        ("127.0.0.1", "evil.example", 421),
        ("127.0.0.1", "evil.example:9100", 421),
        ("127.0.0.1", "[", 421),
        ("127.0.0.1", "localhost:9100", 200),
        ("127.0.0.1", "[::1]", 200),
        ("0.0.0.0", "mnemon.internal:9100", 200),
    ],
)
async def test_a_site_whose_name_means_this_machine_reads_no_metrics(
    listens_at: str, host: str, status: int
) -> None:
    async def look() -> Sequence[str]:
        return []

    port = free_port()
    async with answering_http(listens_at, port, look):
        url = f"http://127.0.0.1:{port}/metrics"
        assert (await asyncio.to_thread(lambda: got(url, Host=host)))[0] == status
