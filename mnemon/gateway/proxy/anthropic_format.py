"""Requests and answers of Anthropic's Messages API."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mnemon.gateway.proxy.answers import Answer
from mnemon.gateway.proxy.messages import CalledTool, ChatMessage, Speaker, digest_parts
from mnemon.gateway.proxy.placement import PlacedContext
from mnemon.gateway.proxy.wire_format import RequestBody
from mnemon_contracts.events.memory import Tokens

Block = Mapping[str, Any]


class AnthropicFormat:
    """Wire format of Anthropic's Messages API."""

    provider = "anthropic"

    def find_user(self, body: RequestBody) -> str | None:
        """Return `metadata.user_id` of the body; None if it is absent, empty or not a string."""
        metadata = body.get("metadata")
        user = metadata.get("user_id") if isinstance(metadata, dict) else None
        return user if isinstance(user, str) and user else None

    def parse_messages(self, body: RequestBody) -> Sequence[ChatMessage]:
        """Return the messages; each result of a tool becomes a message of its own."""
        return [
            parsed
            for each in body["messages"]
            if each["role"] in ("user", "assistant")
            for parsed in _parse_message(each["role"], each["content"])
        ]

    def place_context(self, body: RequestBody, context: PlacedContext) -> RequestBody:
        """Return a body whose system prompt and last user message have the context.

        A message with results of tools does not count as a user message.
        """
        placed = dict(body)
        if context.stable:
            system = body.get("system")
            if isinstance(system, list):
                placed["system"] = [*system, {"type": "text", "text": context.stable}]
            else:
                placed["system"] = f"{system}\n\n{context.stable}" if system else context.stable
        if context.found:
            messages = list(body["messages"])
            asked = max((at for at, each in enumerate(messages) if _is_question(each)), default=None)
            if asked is not None:
                content = messages[asked]["content"]
                if isinstance(content, str):
                    content = f"{context.found}\n\n{content}"
                else:
                    content = [{"type": "text", "text": context.found}, *content]
                messages[asked] = {**messages[asked], "content": content}
            placed["messages"] = messages
        return placed

    def parse_answer(self, body: Mapping[str, Any]) -> Answer:
        """Return the answer in a response that is not streamed."""
        message = _build_message("assistant", body["content"])
        return Answer(message, body.get("model") or "", _parse_usage(body.get("usage")), body.get("id") or "")

    def create_answer_builder(self) -> "MessageBuilder":
        """Return a builder for the answer of a streamed message."""
        return MessageBuilder()


class MessageBuilder:
    """Builder of an answer from the events of a streamed message."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        self._usage: dict[str, Any] = {}
        self._has_ended = False
        self._answer = Answer()

    def add(self, event: dict[str, Any]) -> None:
        kind, index = event.get("type"), event.get("index") or 0
        if kind == "message_start":
            message = event["message"]
            self._answer = Answer(model=message.get("model") or "", id=message.get("id") or "")
            self._usage.update(message.get("usage") or {})
        elif kind == "content_block_start":
            self._blocks[index] = {**event["content_block"], "written": ""}
        elif kind == "content_block_delta":
            self._add_delta(self._blocks[index], event["delta"])
        elif kind == "message_delta":
            self._usage.update({key: each for key, each in (event.get("usage") or {}).items() if each})
        elif kind == "message_stop":
            self._has_ended = True

    def build_answer(self) -> Answer:
        """Return the answer. Its message is None unless the model finished the message."""
        answer = self._answer._replace(tokens=_parse_usage(self._usage))
        if not self._has_ended:
            return answer
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        return answer._replace(message=_build_message("assistant", blocks))

    def _add_delta(self, block: dict[str, Any], delta: Mapping[str, Any]) -> None:
        if delta["type"] == "text_delta":
            block["text"] = (block.get("text") or "") + delta["text"]
        elif delta["type"] == "input_json_delta":
            block["written"] += delta["partial_json"]


def _parse_message(role: Speaker, content: str | Sequence[Block]) -> Iterator[ChatMessage]:
    if isinstance(content, str):
        yield ChatMessage(role, content)
        return
    for block in content:
        if block["type"] == "tool_result":
            yield _build_message("tool", _list_blocks(block.get("content")))._replace(
                tool_call_id=block["tool_use_id"]
            )
    said = [block for block in content if block["type"] != "tool_result"]
    if said:
        yield _build_message(role, said)


def _build_message(role: Speaker, blocks: Sequence[Block]) -> ChatMessage:
    """Return the message of content blocks; of an assistant's, only texts and calls of the client's tools."""
    others = [each for each in blocks if role != "assistant" and each["type"] != "text"]
    return ChatMessage(
        role=role,
        text="\n".join(each["text"] for each in blocks if each["type"] == "text" and each.get("text")),
        tool_calls=tuple(
            CalledTool(each["id"], each["name"], each.get("written") or json.dumps(each.get("input") or {}))
            for each in blocks
            if each["type"] == "tool_use"
        ),
        attachments=len(others),
        attachments_digest=digest_parts(others),
    )


def _list_blocks(content: str | Sequence[Block] | None) -> Sequence[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or ()


def _is_question(message: Mapping[str, Any]) -> bool:
    """Return whether a message is from the user and has no results of tools.

    Results of tools must come first in their message, so no context can be put before them.
    """
    content = message["content"]
    return message["role"] == "user" and (
        isinstance(content, str) or all(block["type"] != "tool_result" for block in content)
    )


def _parse_usage(usage: Mapping[str, Any] | None) -> Tokens | None:
    if not usage:
        return None
    cached = usage.get("cache_read_input_tokens") or 0
    fresh = (usage.get("input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
    return Tokens(input=fresh + cached, cached=cached, output=usage.get("output_tokens") or 0)
