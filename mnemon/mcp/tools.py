"""What a client's model is offered: the memory tools, and the context as one more."""

from collections.abc import Mapping
from typing import Final

from contracts.function_tools import TOOLS, FunctionTool

CONTEXT: Final = FunctionTool(
    "memory_context",
    "Get what is known about the user before you answer: lasting facts, the user's data, summaries and the "
    "latest of what was said, and what fits the query among them. Call it first, with the user's message.",
    "context",
    ("query", "budget"),
    fixed={"format": "markdown"},
    changes=False,
)

OFFERED: Final[Mapping[str, FunctionTool]] = {CONTEXT.name: CONTEXT, **TOOLS}
