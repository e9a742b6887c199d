"""Memory for agents of LangChain and LangGraph.

    memory = MemoryMiddleware(client)          # a MemoryClient
    agent = create_agent(model, middleware=[memory], context_schema=MemoryUser)
    await agent.ainvoke({"messages": [("user", "Where do I live?")]}, context=MemoryUser("u42"))

What is said is kept, a model is shown the user's context, and it has the memory tools.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NotRequired, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.runtime import Runtime

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.chat import Role
from mnemon_contracts.verbs.ask import ContextReplyV1
from mnemon_contracts.verbs.function_tools import TOOLS, FunctionTool
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed, PublishFailed

log = logging.getLogger("mnemon.langchain")


PATIENCE: Final = 3.0
"""Seconds that a run waits until what was said is kept."""


@dataclass(frozen=True)
class MemoryUser:
    """Whose memory an agent's run is about: its runtime context, or what yours inherits."""

    user: str


class _State(AgentState[Any]):
    """With the log position of what the user said."""

    memory_seq: NotRequired[Annotated[int | None, PrivateStateAttr]]


class MemoryMiddleware(AgentMiddleware[_State, MemoryUser, Any]):
    """Gives an agent memory. It is asynchronous: `ainvoke` and `astream`.

    A model is shown the context, within its budget, in place of the messages of earlier runs: a checkpointer
    is not needed for them. While the memory is away, it is shown what the agent itself has.

    Args:
        memory: of the tenant that the users are of; open as long as the agent runs.
        budget: tokens of a context at most; None is what the settings say.
    """

    state_schema = _State

    def __init__(self, memory: MemoryClient, *, budget: int | None = None) -> None:
        super().__init__()
        self._memory = memory
        self._budget = budget
        self.tools: Sequence[BaseTool] = [self._tool(function) for function in TOOLS.values()]

    async def start_conversation(self, user: str) -> int:
        """Begin a new conversation, as `/new` does: no message from before is shown to a model again.

        Facts stay. A checkpointer of yours keeps its own messages, of which a model is shown only those of
        the present run.

        Returns:
            The log position.

        Raises:
            PublishFailed: it is not known to be stored.
        """
        return await self._memory.start(user, discard_previous=True)

    async def abefore_agent(self, state: _State, runtime: Runtime[MemoryUser]) -> dict[str, Any]:
        """Keep what the user said."""
        user, said = _user_of(runtime.context), state["messages"][-1]
        return {
            "memory_seq": await self._keep(user, "user", said) if isinstance(said, HumanMessage) else None
        }

    async def awrap_model_call(
        self,
        request: ModelRequest[MemoryUser],
        handler: Callable[[ModelRequest[MemoryUser]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Put the context before the model, and behind it what has come of this run."""
        begin = max(
            (at for at, each in enumerate(request.messages) if isinstance(each, HumanMessage)), default=0
        )
        run = request.messages[begin:]
        context = await self._memory.context(
            _user_of(request.runtime.context),
            query=run[0].text if run else None,
            min_seq=cast("_State", request.state).get("memory_seq"),
            budget=self._budget,
        )
        if context.error:
            return await handler(request)
        known, earlier = _parted(context, run)
        told = [request.system_message.text] if request.system_message else []
        system = "\n\n".join([*told, *known])
        return await handler(
            request.override(
                system_message=SystemMessage(system) if system else None, messages=[*earlier, *run]
            )
        )

    async def aafter_agent(self, state: _State, runtime: Runtime[MemoryUser]) -> None:
        """Keep what the agent answered."""
        answer = state["messages"][-1]
        if isinstance(answer, AIMessage):
            await self._keep(_user_of(runtime.context), "assistant", answer)

    async def _keep(self, user: str, role: Role, message: AnyMessage) -> int | None:
        """Its log position; None where there is nothing to keep, or it is not known to be kept."""
        if not message.text:
            return None
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._memory.publish(user, role, message.text, id=message.id)
        except (PublishFailed, TimeoutError) as error:
            log.warning("messages not confirmed: %s", error or "no answer in time")
            return None

    def _tool(self, function: FunctionTool) -> BaseTool:
        async def call(runtime: ToolRuntime[MemoryUser, Any], **arguments: Any) -> str:
            try:
                reply = await self._memory.call(_user_of(runtime.context), function.name, arguments)
            except (AskFailed, InvalidBody) as error:
                raise ToolException(str(error)) from error
            return reply.model_dump_json(exclude_none=True)

        return StructuredTool(
            name=function.name,
            description=function.description,
            args_schema=function.parameters(),
            coroutine=call,
            handle_tool_error=True,  # the model is told
        )


def _user_of(context: object) -> str:
    """Whose memory a run is about.

    Raises:
        ValueError: the run has no runtime context that names a user.
    """
    user = getattr(context, "user", None)
    if isinstance(user, str) and user:
        return user
    raise ValueError(
        f"the run does not say whose memory it is about: its runtime context is {context!r:.80}. Pass "
        '`context=MemoryUser("u42")` to `ainvoke` or `astream`, and `context_schema=MemoryUser` to '
        "`create_agent`"
    )


def _parted(context: ContextReplyV1, run: Sequence[AnyMessage]) -> tuple[list[str], list[AnyMessage]]:
    """What is known, and what was said before this run."""
    known = [each.content for each in context.messages if each.role in ("system", "tool")]
    said = [each for each in context.messages if each.role in ("user", "assistant")]
    if said and run and said[-1].role == "user" and said[-1].content.endswith(run[0].text):
        said.pop()
    kinds = {"user": HumanMessage, "assistant": AIMessage}
    return known, [kinds[each.role](each.content) for each in said]
