"""Local server with the wire formats of OpenAI's chat completions and of Anthropic's messages.

It answers with parts that a test sets, and records the requests. It can stop in the middle of a stream;
`provider_server` of the benches always sends whole answers.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from mnemon.http.server import format_address, open_listening_socket, serve_http

USAGE = {
    "prompt_tokens": 1200,
    "completion_tokens": 7,
    "total_tokens": 1207,
    "prompt_tokens_details": {"cached_tokens": 1024},
}
ANTHROPIC_USAGE = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 76,
    "cache_read_input_tokens": 1024,
    "output_tokens": 7,
}


@dataclass(frozen=True)
class ReceivedCompletion:
    """A request that the server received; `body` is empty for a list of models."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages


@dataclass
class ChatModel:
    """Answers of the model, and the requests that it received.

    Attributes:
        parts: parts of the text of each answer.
        tool_calls: id, name and JSON arguments of the tool calls of each answer.
        refusal: status and body of the response in the place of an answer; None: the model answers.
        pause: event that a stream waits for shortly before its end; None: it does not wait.
        is_cut: whether the connection breaks before the end of a stream.
        received: requests, in the order of arrival.
        sent: bytes of the last stream.
        left: set when a client leaves a stream before its end.
    """

    parts: tuple[str, ...] = ("A ", "cello.")
    tool_calls: tuple[tuple[str, str, str], ...] = ()
    refusal: tuple[int, dict[str, Any]] | None = None
    pause: asyncio.Event | None = None
    is_cut: bool = False
    received: list[ReceivedCompletion] = field(default_factory=list)
    sent: bytes = b""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    @asynccontextmanager
    async def serve(self) -> AsyncIterator["ChatModel"]:
        """Serve on a free port for the duration of the block."""
        listening = open_listening_socket("127.0.0.1", 0)
        self.url = format_address(listening)
        async with serve_http(
            Starlette(
                routes=[
                    Route("/v1/chat/completions", self._complete, methods=["POST"]),
                    Route("/v1/models", self._list_models),
                    Route("/v1/messages", self._create_message, methods=["POST"]),
                ]
            ),
            listening,
        ):
            yield self

    async def _note(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = await request.json()
        self.received.append(ReceivedCompletion(request.url.path, dict(request.headers), body))
        return body

    async def _list_models(self, request: Request) -> Response:
        self.received.append(ReceivedCompletion(request.url.path, dict(request.headers), {}))
        return JSONResponse({"object": "list", "data": [{"id": "a-model", "object": "model"}]})

    async def _complete(self, request: Request) -> Response:
        body = await self._note(request)
        if self.refusal:
            return JSONResponse(self.refusal[1], self.refusal[0], {"x-request-id": "r-1"})
        common = {"id": f"chatcmpl-{len(self.received)}", "created": 1, "model": "a-model-2026"}
        calls: list[dict[str, Any]] = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id_, name, arguments in self.tool_calls
        ]
        reason = "tool_calls" if calls else "stop"
        if not body.get("stream"):
            said = {"role": "assistant", "content": "".join(self.parts) or None}
            message = said | ({"tool_calls": calls} if calls else {})
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return JSONResponse({**common, "object": "chat.completion", "choices": [choice], "usage": USAGE})

        def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            return {**common, "object": "chat.completion.chunk", "choices": [choice]}

        chunks = [chunk({"content": part}) for part in self.parts]
        for index, call in enumerate(calls):
            arguments = call["function"]["arguments"]
            begin = {**call, "index": index, "function": {**call["function"], "arguments": arguments[:3]}}
            rest = {"index": index, "function": {"arguments": arguments[3:]}}
            chunks += [chunk({"tool_calls": [begin]}), chunk({"tool_calls": [rest]})]
        chunks[0]["choices"][0]["delta"]["role"] = "assistant"
        usage = {**common, "object": "chat.completion.chunk", "choices": [], "usage": USAGE}
        ending = [chunk({}, reason), usage]
        lines = [f"data: {json.dumps(each)}\n\n" for each in chunks]
        return self._stream(
            lines, [*(f"data: {json.dumps(each)}\n\n" for each in ending), "data: [DONE]\n\n"]
        )

    async def _create_message(self, request: Request) -> Response:
        body = await self._note(request)
        if self.refusal:
            return JSONResponse(self.refusal[1], self.refusal[0], {"request-id": "r-1"})
        blocks: list[dict[str, Any]] = [{"type": "text", "text": "".join(self.parts)}] if self.parts else []
        blocks += [
            {"type": "tool_use", "id": id_, "name": name, "input": json.loads(arguments)}
            for id_, name, arguments in self.tool_calls
        ]
        reason = "tool_use" if self.tool_calls else "end_turn"
        message = {
            "id": f"msg_{len(self.received)}",
            "type": "message",
            "role": "assistant",
            "model": "claude-2026",
            "stop_sequence": None,
        }
        if not body.get("stream"):
            whole = {**message, "content": blocks, "stop_reason": reason, "usage": ANTHROPIC_USAGE}
            return JSONResponse(whole)
        begun: dict[str, Any] = {
            **message,
            "content": [],
            "stop_reason": None,
            "usage": {**ANTHROPIC_USAGE, "output_tokens": 1},
        }
        events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                empty: dict[str, Any] = {"type": "text", "text": ""}
                deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": part} for part in self.parts]
            else:
                empty = {**block, "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            events.append({"type": "content_block_start", "index": index, "content_block": empty})
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": index})
        delta = {"stop_reason": reason, "stop_sequence": None}
        ending: list[dict[str, Any]] = [
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}},
            {"type": "message_stop"},
        ]
        lines = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events]
        return self._stream(
            lines, [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in ending]
        )

    def _stream(self, lines: list[str], ending: list[str]) -> Response:
        self.sent = "".join([*lines, *ending]).encode()

        async def write() -> AsyncIterator[str]:
            try:
                for number, line in enumerate(lines):
                    if self.pause and number == len(lines) - 1:
                        await self.pause.wait()
                    yield line
                if self.is_cut:
                    raise ConnectionError("the model is cut off")
                for line in ending:
                    yield line
            except asyncio.CancelledError:
                self.left.set()
                raise

        return StreamingResponse(write(), media_type="text/event-stream")
