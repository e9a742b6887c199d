"""Response that passes a provider's response to the client, byte for byte, as it arrives."""

import asyncio
import json
from collections.abc import Callable
from contextlib import ExitStack, suppress
from http import HTTPStatus
from typing import Final

import httpx
import structlog
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from mnemon.gateway.problems import Problem
from mnemon.gateway.proxy.answers import MAX_ANSWER, Answer, EventStream
from mnemon.gateway.proxy.messages import UNREADABLE
from mnemon.gateway.proxy.upstreams import select_response_headers
from mnemon.gateway.proxy.wire_format import WireFormat

log = structlog.get_logger("proxy")

TIMEOUTS: Final = httpx.Timeout(600.0, connect=10.0)
"""Timeouts in seconds: 10 to connect, and 600 between two parts of a response, as in the official clients.
A client with shorter timeouts disconnects, which ends the request."""


class AnswerReader:
    """Reader of the answer in a response, from the bytes of the response."""

    def __init__(self, wire_format: WireFormat) -> None:
        self._format = wire_format
        self._builder = wire_format.create_answer_builder()
        self._events = EventStream()
        self._body = bytearray()
        self._is_stream = False
        self._is_readable = False
        self._size = 0

    def read_headers(self, response: httpx.Response) -> None:
        """Read from the headers whether the response is a stream, and whether it can be read."""
        self._is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        encoding = response.headers.get("content-encoding", "identity")
        self._is_readable = response.status_code == HTTPStatus.OK and encoding == "identity"

    def feed(self, data: bytes) -> None:
        """Add the next bytes of the response."""
        self._size += len(data)
        self._is_readable = self._is_readable and self._size <= MAX_ANSWER
        if not self._is_readable:
            return
        if not self._is_stream:
            self._body += data
            return
        try:
            for event in self._events.feed(data):
                self._builder.add(event)
        except UNREADABLE:
            self._is_readable = False

    def build_answer(self) -> Answer:
        """Return the answer; it has no message if the response is incomplete or cannot be read."""
        if not self._is_readable:
            return Answer()
        try:
            if self._is_stream:
                return self._builder.build_answer()
            return self._format.parse_answer(json.loads(self._body))
        except UNREADABLE:
            return Answer()


class Relay(Response):
    """Response to a client that passes on the response of a provider.

    Args:
        client: HTTP client.
        request: request to the provider.
        ends: resources to close after the response.
        reader: reader of the answer; None if the answer is not to be read.
        finish: function that is called with the answer; an incomplete answer has no message.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        request: httpx.Request,
        ends: ExitStack,
        reader: AnswerReader | None = None,
        finish: Callable[[Answer], None] = lambda _: None,
    ) -> None:
        super().__init__()
        self._client = client
        self._request = request
        self._ends = ends
        self._reader = reader
        self._finish = finish

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the response on until it ends or the client disconnects; then call `finish`.

        Without a reader, `finish` is not called. A client may disconnect when it has a whole answer, but
        before the stream ends.
        """
        try:
            with self._ends:
                passing = asyncio.create_task(self._pass_response(scope, receive, send))
                leaving = asyncio.create_task(_wait_for_disconnect(receive))
                try:
                    await asyncio.wait({passing, leaving}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    passing.cancel()
                    leaving.cancel()
                    await asyncio.wait({passing, leaving})
        finally:
            if self._reader:
                self._finish(self._reader.build_answer())
        for ended in (passing, leaving):
            with suppress(asyncio.CancelledError):
                ended.result()

    async def _pass_response(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._client.send(self._request, stream=True)
        except httpx.TimeoutException:
            await _build_unanswered_problem(HTTPStatus.GATEWAY_TIMEOUT, "timeout").to_response()(
                scope, receive, send
            )
            return
        except (httpx.HTTPError, httpx.InvalidURL) as error:  # the address of a redirect may be invalid
            log.warning("request to provider failed", host=self._request.url.host, error=type(error).__name__)
            await _build_unanswered_problem(HTTPStatus.BAD_GATEWAY, "unavailable").to_response()(
                scope, receive, send
            )
            return
        try:
            if self._reader:
                self._reader.read_headers(response)
            await send(
                {
                    "type": "http.response.start",
                    "status": response.status_code,
                    "headers": select_response_headers(response.headers.raw),
                }
            )
            async for data in response.aiter_raw():
                if self._reader:
                    self._reader.feed(data)
                await send({"type": "http.response.body", "body": data, "more_body": True})
        except httpx.HTTPError as error:
            # The server closes a connection whose response is not whole, as the provider did.
            log.warning(
                "provider response interrupted", host=self._request.url.host, error=type(error).__name__
            )
            return
        finally:
            await response.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _build_unanswered_problem(status: HTTPStatus, code: str) -> Problem:
    return Problem(
        status,
        code,
        "the provider of the model gives no usable answer; repeat the request later",
        retryable=True,
    )
