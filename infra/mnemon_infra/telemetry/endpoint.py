"""HTTP endpoint of a process: `/metrics` for Prometheus, `/healthz` and `/readyz` for its supervisor.

The endpoint runs in a thread of its own, so that it answers and reports the fault while the event loop hangs:
`/healthz` and `/readyz` then answer 503 after `PROBE_TIMEOUT` seconds, and `mnemon_ready` is 0.
"""

import asyncio
import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Event, Thread, get_ident
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from mnemon_infra.telemetry import metrics
from mnemon_infra.telemetry.exposition import build_registry
from mnemon_infra.telemetry.host_header import is_address_or_localhost, is_loopback, parse_host_name

log = structlog.get_logger("telemetry")

PROBE_TIMEOUT: Final = 5.0
"""Maximum seconds for the event loop to answer a health probe."""

_POLL: Final = 0.1
"""Seconds between checks of the thread whether it has to end."""

HealthProbe = Callable[[], Coroutine[Any, Any, Sequence[str]]]
"""Function that checks the process and returns the reasons why it cannot work; empty if there is none."""


class MetricsPortTaken(Exception):
    """The endpoint cannot listen on its address, for example because the port is in use."""


@asynccontextmanager
async def serve_http(host: str, port: int, probe: HealthProbe) -> AsyncIterator[None]:
    """Serve HTTP until the end of the block; port 0 takes a free port. The probe also updates the gauges.

    Raises:
        MetricsPortTaken: the server cannot listen on this address.
    """
    loop = asyncio.get_running_loop()
    handler = partial(
        _MetricsHandler,
        ask=partial(_run_probe, loop, get_ident()),
        probe=probe,
        registry=build_registry(),
        is_local=is_loopback(host),
    )
    try:
        server = _MetricsServer((host, port), handler)
    except OSError as error:
        raise MetricsPortTaken(
            f"the metrics endpoint cannot listen on {host}:{port}: {error.strerror}. "
            "Choose another port (--metrics-port or MNEMON_METRICS_PORT), or another address "
            "(MNEMON_METRICS_HOST)"
        ) from error
    Thread(target=server.serve_forever, args=(_POLL,), name="metrics", daemon=True).start()
    try:
        yield
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()


def _run_probe(loop: asyncio.AbstractEventLoop, thread: int, probe: HealthProbe) -> Sequence[str]:
    """Run a health probe on the event loop, from another thread.

    Return the reasons why the process cannot work; empty if there is none. If the probe fails, is cancelled,
    or does not end within `PROBE_TIMEOUT` seconds, that is the only reason.
    """
    turned = Event()
    loop.call_soon_threadsafe(turned.set)
    asked = asyncio.run_coroutine_threadsafe(probe(), loop)
    try:
        return asked.result(PROBE_TIMEOUT)
    except TimeoutError:
        asked.cancel()
        reason = (
            f"the health probe did not end within {PROBE_TIMEOUT:g} s"
            if turned.is_set()
            else _report_blocked_loop(thread)
        )
    except CancelledError:
        reason = "the process is ending"
    except Exception as error:  # a probe that fails is a reason, too
        log.exception("health probe failed")
        reason = (
            f"the health probe failed with {type(error).__name__}: {error}; report the traceback in its log "
            "message `health probe failed`"
        )
    metrics.READY.set(0)
    return [reason]


def _report_blocked_loop(thread: int) -> str:
    """Set the metric of a blocked event loop, log the loop's stack, and return the fault and next step."""
    metrics.FAULTS.replace_series({("event_loop", ""): 1})
    frame = sys._current_frames().get(thread)
    stack = traceback.extract_stack(frame) if frame else []
    place = f"{stack[-1].filename}:{stack[-1].lineno} in {stack[-1].name}" if stack else "an unknown place"
    log.error("event loop blocked", seconds=PROBE_TIMEOUT, stack="".join(traceback.format_list(stack)))
    return (
        f"the event loop has been blocked for {PROBE_TIMEOUT:g} s at {place}: restart the process, and "
        "report the stack in its log message `event loop blocked`"
    )


async def _report_alive() -> Sequence[str]:
    return []


class _MetricsServer(ThreadingHTTPServer):
    def server_bind(self) -> None:
        # HTTPServer would ask a name server for the host's name, and wait for it.
        TCPServer.server_bind(self)


class _MetricsHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def __init__(
        self,
        *arguments: Any,
        ask: Callable[[HealthProbe], Sequence[str]],
        probe: HealthProbe,
        registry: CollectorRegistry,
        is_local: bool,
    ) -> None:
        self._ask = ask
        self._probe = probe
        self._registry = registry
        self._is_local = is_local
        super().__init__(*arguments)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        # At another address, scrapers may use any name of the machine.
        if self._is_local and not is_address_or_localhost(parse_host_name(self.headers.get("Host", ""))):
            error = {"error": "the header Host names another machine: use an IP address, or localhost"}
            self._send_json(HTTPStatus.MISDIRECTED_REQUEST, error)
            return
        match urlsplit(self.path).path:
            case "/metrics":
                self._ask(self._probe)
                encode, content_type = choose_encoder(self.headers.get("Accept", ""))
                self._send_answer(HTTPStatus.OK, encode(self._registry), content_type)
            case "/healthz":
                self._send_reasons("alive", self._ask(_report_alive))
            case "/readyz":
                self._send_reasons("ready", self._ask(self._probe))
            case _:
                paths = ["/metrics", "/healthz", "/readyz"]
                self._send_json(HTTPStatus.NOT_FOUND, {"error": "unknown path", "paths": paths})

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Log nothing: otherwise each probe would write a line."""

    def _send_reasons(self, question: str, reasons: Sequence[str]) -> None:
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        self._send_json(status, {question: not reasons, "reasons": list(reasons)})

    def _send_json(self, status: HTTPStatus, value: object) -> None:
        self._send_answer(status, json.dumps(value).encode() + b"\n", "application/json")

    def _send_answer(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
