"""Request and response bodies of OpenAI's chat completions, online and in a batch."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from mnemon_bench.provider_server.answers import ReceivedRequest
from mnemon_bench.provider_server.state import GeneratedAnswer, ProviderState

COMPLETIONS = "/v1/chat/completions"

_WORDS = re.compile(r"\S+\s*|\s+")


class UnsupportedParameter(ValueError):
    """A request has a parameter, or a value of a parameter, that the server does not support."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


def parse_request(body: Mapping[str, Any], state: ProviderState) -> ReceivedRequest:
    """Parse the JSON body of a request for a chat completion.

    Raises:
        UnsupportedParameter: `state` refuses a parameter of the body, or its value.
        ValueError, KeyError, TypeError: the body is not a request for a chat completion.
    """
    if unsupported := state.unsupported & body.keys():
        name = min(unsupported)
        raise UnsupportedParameter(name, f"Unsupported parameter: {name}; leave it out")
    format_ = body.get("response_format", {"type": "text"})
    kind = format_["type"]
    if kind != "text" and kind not in state.formats:
        raise UnsupportedParameter(
            "response_format", f"'response_format' of type {kind} is not supported; leave it out"
        )
    said = "".join(message["content"] for message in body["messages"])
    if kind == "json_object" and "JSON" not in said:
        raise UnsupportedParameter("messages", "'messages' must contain the word 'JSON'")
    instructions = "".join(
        message["content"] for message in body["messages"] if message["role"] in ("system", "developer")
    )
    text = "".join(message["content"] for message in body["messages"] if message["role"] == "user")
    schema = format_["json_schema"]["schema"] if kind == "json_schema" else None
    most_tokens = body.get("max_completion_tokens", body.get("max_tokens"))
    return ReceivedRequest(body["model"], instructions, text, schema, instructions, most_tokens)


def build_completion(question: ReceivedRequest, answered: GeneratedAnswer) -> dict[str, Any]:
    """Return the JSON body of a chat completion, for a request without streaming."""
    tokens = answered.tokens
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": question.model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answered.text, "refusal": None},
                "logprobs": None,
                "finish_reason": "length" if answered.is_cut else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": tokens.input,
            "completion_tokens": tokens.output,
            "total_tokens": tokens.input + tokens.output,
            "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def stream_completion(question: ReceivedRequest, answered: GeneratedAnswer) -> bytes:
    """Return a chat completion as server-sent events, with one chunk for each word of the answer."""
    whole = build_completion(question, answered)
    frame = {**whole, "object": "chat.completion.chunk"}
    pieces = [
        {"role": "assistant", "content": ""},
        *({"content": word} for word in _WORDS.findall(answered.text)),
    ]
    deltas = [{"index": 0, "delta": piece, "finish_reason": None} for piece in pieces]
    end = {"index": 0, "delta": {}, "finish_reason": whole["choices"][0]["finish_reason"]}
    chunks = [{**frame, "choices": [choice]} for choice in (*deltas, end)]
    events = [f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks]
    return "".join([*events, "data: [DONE]\n\n"]).encode()


def build_parameter_error(error: UnsupportedParameter) -> dict[str, Any]:
    """Return the body of OpenAI's error for an unsupported parameter."""
    return {
        "error": {
            "message": str(error),
            "type": "invalid_request_error",
            "param": error.parameter,
            "code": "unsupported_parameter",
        }
    }
