"""HTTP server with threads, from the standard library, in the process of a test or in a separate process.

A wire format is a module of this package with `ROUTES: Sequence[Route]`, which is added to `ROUTES` below.
A route's `answer(state, request)` makes a `ReceivedRequest` of the HTTP request, passes it to `state.ask`,
and turns the `GeneratedAnswer` into the provider's response. The routes of batches use `state.create_batch`,
`state.find_batch`, `state.list_batches`, `state.cancel_batch`, `state.poll_batch` and `state.list_results`.
Each request for the status of a batch calls `poll_batch`, and Anthropic's list of batches calls it for each
batch on the page; a batch ends at the call after the first `state.polls` calls.
`list_results` orders the lines, leaves lines out and names the damage to each line. The wire formats apply
the damage `hollow` and `failed`, and OpenAI's format also `twice`; `wire.build_results_file` applies `cut`
and `nameless`.

This module does what is the same for all wire formats: it checks the key against `state.key`, applies the
fault of a request, and answers 404 to an unknown path and 400 to a body for which the route raises
ValueError, KeyError or TypeError.
"""

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, unquote, urlsplit

from mnemon_bench.provider_server import anthropic, google, openai
from mnemon_bench.provider_server.state import ProviderState
from mnemon_bench.provider_server.wire import HttpRequest, HttpResponse, Route, build_refusal

ROUTES: Sequence[Route] = (*openai.ROUTES, *anthropic.ROUTES, *google.ROUTES)


def answer_request(state: ProviderState, request: HttpRequest) -> HttpResponse:
    """Return the response to a request, with the fault that applies to the request, if any."""
    route, request = _find_route(state, request)
    if route is None:
        return build_refusal(404, f"no {request.method} {request.path}")
    if state.key is not None and state.key not in _read_key(request):
        return route.refusal(401, f"Incorrect API key provided: {_read_key(request)}")
    with state.lock:
        state.requests.append(f"{request.method} {request.path}")
        fault = state.faults.take_fault(f"{request.method} {request.path}")
    if fault is not None and fault.status != 200:
        refused = route.refusal(fault.status, f"no: {_read_key(request)}")
        late = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
        body = refused.body if fault.body is None else fault.body
        return HttpResponse(body, refused.status, {**refused.headers, **late})
    try:
        response = route.answer(state, request)
    except (ValueError, KeyError, TypeError) as error:
        response = route.refusal(400, f"no request of that kind: {error!r}")
    if fault is not None:
        state.closing.wait(fault.seconds)
        body = _encode_body(response) if fault.body is None else fault.body
        if fault.is_half:
            body = _encode_body(response)[: len(_encode_body(response)) // 2]
        response = HttpResponse(body, response.status, response.headers, fault.is_dropped)
    return response


def _find_route(state: ProviderState, request: HttpRequest) -> tuple[Route | None, HttpRequest]:
    for route in ROUTES:
        matched = route.pattern.fullmatch(request.path)
        if matched and route.method == request.method and (state.has_batches or not route.of_batches):
            return route, request._replace(names=matched.groupdict())
    return None, request


def _read_key(request: HttpRequest) -> str:
    """Return the API key of a request, from the header of any provider; empty without a key."""
    key = request.headers.get("x-api-key") or request.headers.get("x-goog-api-key")
    return key or request.headers.get("authorization", "").removeprefix("Bearer ")


def _encode_body(response: HttpResponse) -> bytes:
    return response.body if isinstance(response.body, bytes) else json.dumps(response.body).encode()


class _ProviderHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together
    server: "_ProviderHttpServer"

    def do_GET(self) -> None:
        self._serve_request()

    def do_POST(self) -> None:
        self._serve_request()

    def do_PATCH(self) -> None:
        self._serve_request()

    def do_DELETE(self) -> None:
        self._serve_request()

    def log_request(self, *_: object) -> None:
        pass

    def _serve_request(self) -> None:
        address = urlsplit(self.path)
        request = HttpRequest(
            self.command,
            unquote(address.path),
            {},
            dict(parse_qsl(address.query, keep_blank_values=True)),
            {name.lower(): value for name, value in self.headers.items()},
            self._read_body(),
            self.server.url,
        )
        if self.server.state.closing.is_set():  # the connection was open before the server closed
            self.close_connection = True
            return
        response = answer_request(self.server.state, request)
        body = _encode_body(response)
        self.send_response(response.status)
        for name, value in {"Content-Type": "application/json", **response.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if response.is_dropped:
            body = body[: len(body) // 2]
            self.close_connection = True
        self.wfile.write(body)
        self.wfile.flush()

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))


class _ProviderHttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    state: ProviderState
    url: str

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: clients in tests close connections before they have read the response."""


class ProviderServer:
    """HTTP server that answers like providers of language models, on a port of 127.0.0.1.

    It runs for the duration of a `with` block.

    Attributes:
        state: state of the server, which a test reads and changes.
        url: address of the server, without a path.
        openai_url: base URL for OpenAI's SDK.
    """

    def __init__(self, state: ProviderState | None = None, port: int = 0) -> None:
        self.state = state or ProviderState()
        self._server = _ProviderHttpServer(("127.0.0.1", port), _ProviderHandler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.openai_url = f"{self.url}/v1"
        self._server.state, self._server.url = self.state, self.url
        self._serving = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    def __enter__(self) -> Self:
        self._serving.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Send delayed and held answers at once, and stop serving."""
        self.state.close()
        self._server.shutdown()
        self._serving.join()
        self._server.server_close()

    def wait(self) -> None:
        """Serve until the process is killed."""
        self._serving.join()
