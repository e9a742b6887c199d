"""Answers to requests that fail: results of tools, and protocol errors of prompts."""

from typing import Any, cast

import pytest
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    TextContent,
)

from mnemon.mcp.server import PROMPT, McpTarget, create_server
from mnemon.mcp.tools import NEW_CONVERSATION
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import PublishFailed


class FailingClient:
    """A client whose events the server does not store."""

    def __init__(self, *, retryable: bool) -> None:
        self.retryable = retryable

    async def start(self, user: str, *, discard_previous: bool) -> int:
        raise PublishFailed("e1", "the server says no", retryable=self.retryable)


@pytest.mark.parametrize(("retryable", "code"), [(True, "unavailable"), (False, "refused")])
async def test_tool_tells_a_refused_event_from_an_absent_server(retryable: bool, code: str) -> None:
    memory = cast("MemoryClient", FailingClient(retryable=retryable))
    handler = create_server(lambda _: McpTarget(memory, "u1")).get_request_handler("tools/call")
    assert handler
    context = cast("ServerRequestContext[Any]", None)

    result = await handler.handler(context, CallToolRequestParams(name=NEW_CONVERSATION.name))

    assert isinstance(result, CallToolResult)
    assert result.is_error
    [content] = result.content
    assert isinstance(content, TextContent)
    assert content.text.startswith(f"{code}: event 'e1' is not known to be stored")
    assert ("Try again" in content.text) is retryable


async def test_prompt_with_an_unstorable_message_is_an_invalid_parameter() -> None:
    memory = cast("MemoryClient", FailingClient(retryable=False))
    handler = create_server(lambda _: McpTarget(memory, "u1")).get_request_handler("prompts/get")
    assert handler
    context = cast("ServerRequestContext[Any]", None)
    with pytest.raises(MCPError) as refused:
        await handler.handler(
            context, GetPromptRequestParams(name=PROMPT, arguments={"message": "To\0 Porto?"})
        )
    assert refused.value.error.code == INVALID_PARAMS
    assert "U+0000" in refused.value.error.message
