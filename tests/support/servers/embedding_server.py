"""Local server with the wire format of OpenAI's embeddings, and with faults that a test sets."""

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mnemon_infra.config import Deployment

KEY = "sk-one-that-must-not-be-seen"
DIMENSION = 8

Body = dict[str, Any]
EndpointT = TypeVar("EndpointT", bound="Endpoint")


def vector(text: str, dimension: int = DIMENSION) -> NDArray[np.float32]:
    """Return the server's vector of a text; its length is not 1."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return np.random.default_rng(seed).normal(size=dimension).astype(np.float32)


@dataclass(frozen=True)
class EndpointAnswer:
    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict)


def right(request: Body) -> EndpointAnswer:
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(vector(text).tobytes()).decode()
            if request["encoding_format"] == "base64"
            else vector(text).tolist(),
        }
        for index, text in enumerate(request["input"])
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return EndpointAnswer(200, {"object": "list", "model": request["model"], "data": data, "usage": usage})


def refusal(status: int, headers: Mapping[str, str] | None = None) -> EndpointAnswer:
    """Return an error in OpenAI's format, whose message contains the whole API key."""
    return EndpointAnswer(
        status, {"error": {"message": f"no: {KEY}", "type": "x", "code": None}}, headers or {}
    )


class Endpoint:
    """A server on a free port.

    Attributes:
        faults: functions that give the next answers; after them, `build_answer` gives the answers.
        released: event that answers wait for, set at first.
    """

    path = "/v1/embeddings"

    def __init__(self) -> None:
        self.faults: list[Callable[[Body], EndpointAnswer]] = []
        self.requests: list[Body] = []
        self.keys: list[str | None] = []
        self.in_flight = self.most_in_flight = 0
        self.released = threading.Event()
        self.released.set()
        self._lock = threading.Lock()
        endpoint = self

        class EndpointHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = endpoint.answer(self.path, self.headers.get("Authorization"), request)
                body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_request(self, *_: object) -> None:
                pass

        class EndpointServer(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """Ignore errors: clients close connections when they time out."""

        self.server = EndpointServer(("127.0.0.1", 0), EndpointHandler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def answer(self, path: str, key: str | None, request: Body) -> EndpointAnswer:
        with self._lock:
            self.requests.append(request)
            self.keys.append(key)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            fault = self.faults.pop(0) if self.faults else self.build_answer
        try:
            self.released.wait(60)
            return fault(request) if path == self.path else refusal(404)
        finally:
            with self._lock:
                self.in_flight -= 1

    def build_answer(self, request: Body) -> EndpointAnswer:
        """Return the answer without a fault."""
        return right(request)

    @property
    def deployment(self) -> Deployment:
        return Deployment(embedding_url=self.url, embedding_api_key=KEY)


@contextmanager
def serve_embeddings() -> Iterator[Endpoint]:
    """Run an embedding server in a thread for the duration of the block."""
    with serve_endpoint(Endpoint()) as endpoint:
        yield endpoint


@contextmanager
def serve_endpoint(endpoint: EndpointT) -> Iterator[EndpointT]:
    """Run a server in a thread for the duration of the block."""
    serving = threading.Thread(target=endpoint.server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    yield endpoint
    endpoint.released.set()
    endpoint.server.shutdown()
    serving.join()
    endpoint.server.server_close()
