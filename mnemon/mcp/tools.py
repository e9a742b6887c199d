"""Tools for the model of a client: the memory tools, the context, and a new conversation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mnemon_contracts.base import Contract
from mnemon_contracts.events.chat import StartedV1
from mnemon_contracts.function_tools import TOOLS, FunctionTool

CONTEXT: Final = FunctionTool(
    "memory_context",
    "Get the memory of the user before you answer: facts, the user's data, summaries, the latest messages, "
    "and items that fit the query. Call this tool first, with the user's message.",
    "context",
    ("query", "preceding", "budget"),
    fixed={"format": "markdown"},
    changes=False,
)


@dataclass(frozen=True, slots=True)
class ConversationTool(FunctionTool):
    """A tool that publishes the start of a conversation instead of sending a request."""

    @property
    def request(self) -> type[Contract]:
        return StartedV1


NEW_CONVERSATION: Final = ConversationTool(
    "new_conversation",
    "Begin a new conversation, when the user asks for it, for example by /new. All earlier messages, in "
    "every conversation, are removed from memory; facts stay. It cannot be undone.",
    "started",
    fixed={"discard_previous": True},
)

MCP_TOOLS: Final[Mapping[str, FunctionTool]] = {
    CONTEXT.name: CONTEXT,
    NEW_CONVERSATION.name: NEW_CONVERSATION,
    **TOOLS,
}
