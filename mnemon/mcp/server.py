"""MCP server for the memory of users."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Final, NamedTuple

from cachetools import LRUCache
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from mnemon.mcp.tools import CONTEXT, MCP_TOOLS, NEW_CONVERSATION
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.function_tools import define_mcp_tool
from mnemon_contracts.subjects import InvalidId
from mnemon_contracts.verbs.ask import ContextReplyV1, Reply
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed, PublishFailed

CONTEXT_URI: Final = "mnemon://context"
PROMPT: Final = "with_memory"

INSTRUCTIONS: Final = (
    "This server is the long-term memory of one user. Call memory_context with the user's message before you "
    "answer, and memory_save when you learn something about them that will still matter next month."
)

MAX_REMEMBERED_USERS: Final = 10_000
"""Maximum number of users whose last change a server remembers."""


class McpTarget(NamedTuple):
    """The memory that a request is about; `may_change` tells whether the request may change it."""

    memory: MemoryClient
    user: str
    may_change: bool = True


TargetResolver = Callable[[ServerRequestContext[Any]], McpTarget]
"""Function that returns the memory that a request is about.

Raises:
    NoUser: the request names no user.
    NotPermitted: the key of the request, or the server, does not permit the request.
"""


class NoUser(Exception):
    """A request names no user."""


class NotPermitted(Exception):
    """The key of a request, or the server, does not permit the request."""


def create_server(resolve_target: TargetResolver) -> Server[Any]:
    """Return a server that answers each request with the memory that `resolve_target` returns for it."""
    offer = _MemoryHandlers(resolve_target)
    return Server(
        "mnemon",
        version=version("mnemon"),
        title="Memory",
        instructions=INSTRUCTIONS,
        on_list_tools=offer.list_tools,
        on_call_tool=offer.call_tool,
        on_list_resources=offer.list_resources,
        on_read_resource=offer.read_resource,
        on_list_prompts=offer.list_prompts,
        on_get_prompt=offer.get_prompt,
    )


class _MemoryHandlers:
    """Handlers of the server. A reply includes the user's earlier changes through this server.

    The position of the last change is kept for `MAX_REMEMBERED_USERS` users.
    """

    def __init__(self, resolve_target: TargetResolver) -> None:
        self._resolve_target = resolve_target
        self._changed: LRUCache[tuple[MemoryClient, str], int] = LRUCache(MAX_REMEMBERED_USERS)

    async def list_tools(self, context: ServerRequestContext[Any], params: object) -> types.ListToolsResult:
        tools = [types.Tool.model_validate(define_mcp_tool(tool)) for tool in MCP_TOOLS.values()]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool. Errors that the model can correct, or has to know, become results of the tool.

        Raises:
            MCPError: there is no tool with this name.
        """
        if params.name not in MCP_TOOLS:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool {params.name!r}: list the tools with `tools/list`"
            )
        try:
            reply = await self._send_request(
                self._resolve_target(context), params.name, params.arguments or {}
            )
        except (InvalidBody, InvalidId, NoUser) as error:
            return _build_result(f"bad_request: {error}", is_error=True)
        except NotPermitted as error:
            return _build_result(f"forbidden: {error}", is_error=True)
        except AskFailed as failed:
            return _build_result(_describe_failure(str(failed), failed.retryable), is_error=True)
        except PublishFailed as failed:
            code = "unavailable" if failed.retryable else "refused"
            return _build_result(_describe_failure(f"{code}: {failed}", failed.retryable), is_error=True)
        if isinstance(reply, ContextReplyV1):
            return _build_result(_format_context(reply))
        return _build_result(
            reply.model_dump_json(exclude_none=True), reply.model_dump(mode="json", exclude_none=True)
        )

    async def list_resources(
        self, context: ServerRequestContext[Any], params: object
    ) -> types.ListResourcesResult:
        resource = types.Resource(
            uri=CONTEXT_URI,
            name="context",
            title="Memory of the user",
            description="Facts, the user's data, summaries and the latest messages.",
            mime_type="text/markdown",
        )
        return types.ListResourcesResult(resources=[resource])

    async def read_resource(
        self, context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if params.uri != CONTEXT_URI:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {params.uri!r}: read {CONTEXT_URI}")
        text = await self._load_context(context, {})
        contents = types.TextResourceContents(uri=CONTEXT_URI, mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(
        self, context: ServerRequestContext[Any], params: object
    ) -> types.ListPromptsResult:
        question = types.PromptArgument(
            name="message", description="Message or question for the model.", required=True
        )
        prompt = types.Prompt(
            name=PROMPT,
            title="Ask with memory",
            description="Your message, with the context from your memory before it.",
            arguments=[question],
        )
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(
        self, context: ServerRequestContext[Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        message = (params.arguments or {}).get("message")
        if params.name != PROMPT or not message:
            raise MCPError(
                types.INVALID_PARAMS,
                f"unknown prompt {params.name!r}: request {PROMPT!r}"
                if params.name != PROMPT
                else f"the prompt {PROMPT!r} needs the argument `message`: send the user's message",
            )
        known = await self._load_context(context, {"query": message})
        text = f"What is known about me:\n\n{known}\n\nMy message:\n\n{message}"
        said = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(messages=[said])

    async def _load_context(self, context: ServerRequestContext[Any], arguments: dict[str, Any]) -> str:
        """Return the context as text, for requests whose errors must be protocol errors.

        Raises:
            MCPError: the arguments or the user are invalid, the request has no permission, or the memory
                gives no result.
        """
        try:
            reply = await self._send_request(self._resolve_target(context), CONTEXT.name, arguments)
        except (InvalidBody, InvalidId, NoUser, NotPermitted) as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        except AskFailed as failed:
            raise MCPError(types.INTERNAL_ERROR, _describe_failure(str(failed), failed.retryable)) from failed
        assert isinstance(reply, ContextReplyV1)
        return _format_context(reply)

    async def _send_request(self, target: McpTarget, tool: str, arguments: dict[str, Any]) -> Reply:
        memory, user, may_change = target
        if MCP_TOOLS[tool].changes and not may_change:
            raise NotPermitted("the key lacks the scope `write`; ask the operator for a key with this scope")
        changed = self._changed.get((memory, user))
        if tool == CONTEXT.name:
            wanted = CONTEXT.build_request(arguments).model_dump(exclude_unset=True)
            # `memory.context` never raises, but the model has to know that it did not get the context.
            return await memory.ask(user, "context", **wanted, min_seq=changed)
        if tool == NEW_CONVERSATION.name:
            NEW_CONVERSATION.build_request(arguments)
            reply = Reply(seen_seq=await memory.start(user, discard_previous=True))
        else:
            reply = await memory.call(user, tool, arguments, min_seq=changed)
        if MCP_TOOLS[tool].changes:
            self._changed[memory, user] = max(changed or 0, reply.seen_seq)
        return reply


def _format_context(reply: ContextReplyV1) -> str:
    missing = f"(These parts did not answer: {', '.join(reply.degraded)}.)" if reply.degraded else ""
    known = (reply.text or "").strip()
    return "\n\n".join(filter(None, [known, missing])) or "Nothing is known about the user yet."


def _describe_failure(problem: str, retryable: bool) -> str:
    again = " Try again in a moment; if it fails again, continue without it." if retryable else ""
    return f"{problem}.{again}"


def _build_result(
    text: str, value: dict[str, Any] | None = None, *, is_error: bool = False
) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=text)]
    return types.CallToolResult(content=content, structured_content=value, is_error=is_error)
