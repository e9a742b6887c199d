"""Collector of traces that are sent with OTLP over HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status


class ReceivedSpan(NamedTuple):
    """A span; `process` has the names of the consumers in the process that sent the span.

    `status_and_events` has both as serialized bytes.
    """

    trace_id: str
    name: str
    service: str
    process: tuple[str, ...]
    attributes: dict[str, str]
    is_failed: bool
    status_and_events: bytes


class Collector:
    """Address of a collector on this machine, and the spans that it has received."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.spans: list[ReceivedSpan] = []

    def of(self, trace_id: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.trace_id == trace_id]

    def take(self, body: bytes) -> None:
        for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
            of = {each.key: each.value for each in sent.resource.attributes}
            process = tuple(each.string_value for each in of["mnemon.consumers"].array_value.values)
            self.spans += [
                ReceivedSpan(
                    span.trace_id.hex(),
                    span.name,
                    of["service.name"].string_value,
                    process,
                    {
                        each.key: each.value.string_value or str(each.value.int_value)
                        for each in span.attributes
                    },
                    span.status.code == Status.STATUS_CODE_ERROR,
                    b"".join(part.SerializeToString() for part in (span.status, *span.events)),
                )
                for scope in sent.scope_spans
                for span in scope.spans
            ]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector on a free port for the duration of the block."""

    class TraceHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), TraceHandler) as server:
        collector = Collector(server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
