"""Messages and answers, read from the formats of OpenAI and Anthropic."""

import json
from typing import Any

import pytest

from mnemon.gateway.proxy.answers import Answer, EventStream
from mnemon.gateway.proxy.anthropic_format import AnthropicFormat
from mnemon.gateway.proxy.messages import CalledTool, ChatMessage
from mnemon.gateway.proxy.openai_format import OpenAIFormat
from mnemon.gateway.proxy.wire_format import WireFormat
from mnemon_contracts.events.memory import Tokens


def chunk(delta: dict[str, Any], reason: str | None = None, index: int = 0) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    return {"id": "c1", "model": "a-model", "choices": [choice]}


def read(wire_format: WireFormat, events: list[dict[str, Any]]) -> Answer:
    parts = wire_format.create_answer_builder()
    for event in events:
        parts.add(event)
    return parts.build_answer()


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_events_are_read_from_bytes_that_are_cut_anywhere(size: int, end: str) -> None:
    sent = [{"text": "Привет"}, {"text": "a\nb"}]
    lines = [": comment", *(f"data: {json.dumps(each, ensure_ascii=False)}" for each in sent), "data: [DONE]"]
    data = "".join(f"{line}{end}{end}" for line in lines).encode()
    stream = EventStream()
    cut = [data[at : at + size] for at in range(0, len(data), size)]
    assert [event for each in cut for event in stream.feed(each)] == sent


def test_streamed_completion_is_put_together() -> None:
    begun = {"index": 0, "id": "t1", "function": {"name": "find", "arguments": '{"a"'}}
    events = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "A "}),
        chunk({"content": "cello."}),
        chunk({"tool_calls": [begun]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}),
        chunk({}, "tool_calls"),
        {
            "id": "c1",
            "choices": [],
            "usage": {
                "prompt_tokens": 1200,
                "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 1024},
            },
        },
    ]
    answer = read(OpenAIFormat(), events)
    said = ChatMessage("assistant", "A cello.", (CalledTool("t1", "find", '{"a": 1}'),))
    assert answer == Answer(said, "a-model", Tokens(input=1200, cached=1024, output=7), "c1")


def test_completion_that_does_not_end_has_no_message() -> None:
    assert read(OpenAIFormat(), [chunk({"content": "A "})]).message is None


def test_one_of_several_choices_is_no_answer() -> None:
    events = [chunk({"content": "A"}, "stop"), chunk({"content": "B"}, "stop", index=1)]
    assert read(OpenAIFormat(), events).message is None
    choice = {"message": {"content": "A"}}
    assert OpenAIFormat().parse_answer({"choices": [choice, choice]}).message is None


def test_openai_messages_are_parsed() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    call = {"id": "t1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    messages = OpenAIFormat().parse_messages(
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "developer", "content": "Be polite."},
                {
                    "role": "user",
                    "name": "Ann",
                    "content": [{"type": "text", "text": "What is this?"}, image],
                },
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "t1", "content": "found"},
            ]
        }
    )
    asked, called, found = messages
    assert (asked.role, asked.text, asked.name, asked.attachments) == ("user", "What is this?", "Ann", 1)
    assert called == ChatMessage("assistant", "", (CalledTool("t1", "find", "{}"),))
    assert found == ChatMessage("tool", "found", tool_call_id="t1")


@pytest.mark.parametrize("body", [{}, {"messages": 1}, {"messages": [1]}, {"messages": [{}]}, []])
def test_invalid_bodies_raise_the_errors_of_the_port(body: Any) -> None:
    for wire_format in (OpenAIFormat(), AnthropicFormat()):
        with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
            wire_format.parse_messages(body)


def test_anthropic_messages_are_parsed() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    use = {"type": "tool_use", "id": "t1", "name": "find", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "found"}]}
    messages = AnthropicFormat().parse_messages(
        {
            "messages": [
                {"role": "user", "content": [image, {"type": "text", "text": "What is this?"}]},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, use]},
                {"role": "user", "content": [result, {"type": "text", "text": "And?"}]},
            ]
        }
    )
    asked, called, found, more = messages
    assert (asked.text, asked.attachments) == ("What is this?", 1)
    assert called == ChatMessage("assistant", "", (CalledTool("t1", "find", '{"a": 1}'),))
    assert found == ChatMessage("tool", "found", tool_call_id="t1")
    assert more == ChatMessage("user", "And?")


def test_streamed_anthropic_message_is_put_together() -> None:
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "model": "claude",
                "usage": {
                    "input_tokens": 100,
                    "cache_creation_input_tokens": 76,
                    "cache_read_input_tokens": 1024,
                    "output_tokens": 1,
                },
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "A "}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "cello."}},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "t1", "name": "find", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": "{"},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": "}"},
        },
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
    ]
    assert read(AnthropicFormat(), events).message is None
    answer = read(AnthropicFormat(), [*events, {"type": "message_stop"}])
    said = ChatMessage("assistant", "A cello.", (CalledTool("t1", "find", "{}"),))
    assert answer == Answer(said, "claude", Tokens(input=1200, cached=1024, output=7), "msg_1")
