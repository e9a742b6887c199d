"""HTTP endpoint of a process: its liveness and readiness, with the reasons if it is not ready."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from http.client import HTTPConnection
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from structlog.testing import capture_logs

from mnemon_infra.telemetry import endpoint, metrics
from mnemon_infra.telemetry.endpoint import MetricsPortTaken, serve_http
from tests.support.servers.ports import free_port


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
    async with serve_http("127.0.0.1", port, look):
        base = f"http://127.0.0.1:{port}"
        assert await asyncio.to_thread(got, f"{base}/readyz") == (200, '{"ready": true, "reasons": []}\n')
        reasons.append("the database does not answer")
        status, body = await asyncio.to_thread(got, f"{base}/readyz?verbose")
        assert (status, json.loads(body)) == (503, {"ready": False, "reasons": reasons})
        assert (await asyncio.to_thread(got, f"{base}/healthz"))[0] == 200
        assert "# TYPE mnemon_events_total counter" in (await asyncio.to_thread(got, f"{base}/metrics"))[1]
        assert (await asyncio.to_thread(got, f"{base}/"))[0] == 404
        with pytest.raises(MetricsPortTaken, match=f"{port}.*MNEMON_METRICS_PORT"):
            async with serve_http("127.0.0.1", port, look):
                pass


async def test_requests_for_headers_only_have_no_body() -> None:
    reasons = ["the database does not answer"]

    async def look() -> Sequence[str]:
        return reasons

    port = free_port()

    def ask_both() -> Iterator[tuple[int, str | None, bytes]]:
        connection = HTTPConnection("127.0.0.1", port)
        with closing(connection):
            for method in (
                "HEAD",
                "GET",
            ):  # over one connection: a body after HEAD would be taken for the second response
                connection.request(method, "/readyz")
                response = connection.getresponse()
                yield response.status, response.headers["Content-Length"], response.read()

    async with serve_http("127.0.0.1", port, look):
        head, whole = await asyncio.to_thread(lambda: list(ask_both()))
    assert head == (503, whole[1], b"")
    assert whole[:2] == (503, str(len(whole[2])))


@pytest.mark.parametrize(("path", "question"), [("healthz", "alive"), ("readyz", "ready")])
async def test_blocked_event_loop_is_neither_alive_nor_ready(
    monkeypatch: pytest.MonkeyPatch, path: str, question: str
) -> None:
    monkeypatch.setattr(endpoint, "PROBE_TIMEOUT", 0.1)
    monkeypatch.setattr(metrics.READY, "values", {(): 1.0})
    port = free_port()

    async def look() -> Sequence[str]:
        return []

    async with serve_http("127.0.0.1", port, look):
        found: list[tuple[int, str]] = []
        urls = [f"http://127.0.0.1:{port}/{each}" for each in (path, "metrics")]
        asking = threading.Thread(target=lambda: found.extend(got(url) for url in urls))
        with capture_logs() as lines:
            asking.start()
            asking.join()  # blocks the event loop, which runs in this thread
        again = await asyncio.to_thread(got, urls[0])
    (status, body), (_, series) = found
    said = json.loads(body)
    assert (status, said[question]) == (503, False)
    assert "the event loop has been blocked for 0.1 s at" in said["reasons"][0]
    assert "asking.join()" in lines[0]["stack"]
    assert "mnemon_ready 0.0" in series
    assert 'mnemon_faults{consumer="",fault="event_loop"} 1.0' in series
    assert again[0] == 200


async def test_process_whose_probe_fails_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics.READY, "values", {(): 1.0})
    port = free_port()

    async def fail() -> Sequence[str]:
        raise RuntimeError("the disk cannot be read")

    async with serve_http("127.0.0.1", port, fail):
        with capture_logs() as lines:
            status, body = await asyncio.to_thread(got, f"http://127.0.0.1:{port}/readyz")
        _, series = await asyncio.to_thread(got, f"http://127.0.0.1:{port}/metrics")
    assert (status, "the disk cannot be read" in body) == (503, True)
    assert "health probe failed" in {line["event"] for line in lines}
    assert "mnemon_ready 0.0" in series


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
    async with serve_http(listens_at, port, look):
        url = f"http://127.0.0.1:{port}/metrics"
        assert (await asyncio.to_thread(lambda: got(url, Host=host)))[0] == status
