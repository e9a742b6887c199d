"""Memory for agents of LangChain and LangGraph.

    memory = MemoryMiddleware(client)          # a MemoryClient
    agent = create_agent(model, middleware=[memory], context_schema=MemoryUser)
    await agent.ainvoke({"messages": [("user", "Where do I live?")]}, context=MemoryUser("u42"))

The middleware publishes the messages of user and agent, puts the user's context before the model, and gives
the model the memory tools.
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
from mnemon_contracts.function_tools import TOOLS, FunctionTool
from mnemon_contracts.verbs.ask import ContextReplyV1
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed, PublishFailed

log = logging.getLogger("mnemon.langchain")


CONFIRMATION_TIMEOUT: Final = 3.0
"""Seconds that a run waits for the confirmation that a message is stored."""


@dataclass(frozen=True)
class MemoryUser:
    """The user whose memory an agent's run uses.

    Pass an instance as the runtime context, or derive your own class.
    """

    user: str


class _State(AgentState[Any]):
    """State of an agent, with the log position of the user's message."""

    memory_seq: NotRequired[Annotated[int | None, PrivateStateAttr]]


class MemoryMiddleware(AgentMiddleware[_State, MemoryUser, Any]):
    """Middleware that gives an agent memory. All of its hooks are asynchronous: use `ainvoke` and `astream`.

    A model sees the context, within its budget, instead of the messages of earlier runs, so no checkpointer
    has to keep those messages. While the memory does not answer, the model sees all messages of the agent.

    Args:
        memory: client of the tenant that the users belong to. The client must stay open as long as the agent
            runs.
        budget: maximum tokens of a context; None means the setting `context.budget`.
    """

    state_schema = _State

    def __init__(self, memory: MemoryClient, *, budget: int | None = None) -> None:
        super().__init__()
        self._memory = memory
        self._budget = budget
        self.tools: Sequence[BaseTool] = [self._create_tool(function) for function in TOOLS.values()]

    async def start_conversation(self, user: str) -> int:
        """Begin a new conversation: all earlier messages of the user are removed, facts stay.

        A checkpointer keeps the earlier messages of the agent, but a model sees only the context, the
        messages of the present run, and those of the user right before them that have no answer. While the
        memory does not answer, the model sees all messages of the agent.

        Returns:
            The log position of the start.

        Raises:
            PublishFailed: the server did not confirm that the start is stored.
            InvalidId: `user` cannot be an id.
        """
        return await self._memory.start(user, discard_previous=True)

    async def abefore_agent(self, state: _State, runtime: Runtime[MemoryUser]) -> dict[str, Any]:
        """Publish the messages of the user at the end of the state, which the agent has not answered.

        An agent that speaks first has none.
        """
        user, messages = _get_user(runtime.context), state["messages"]
        begin, end = _find_question(messages)
        until = asyncio.get_running_loop().time() + CONFIRMATION_TIMEOUT
        seq = None
        for said in messages[begin:] if end == len(messages) else ():
            seq = await self._publish_message(user, "user", said, until) or seq
        return {"memory_seq": seq}

    async def awrap_model_call(
        self,
        request: ModelRequest[MemoryUser],
        handler: Callable[[ModelRequest[MemoryUser]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Call the model with the context and this run's messages; if memory fails, with all messages."""
        begin, end = _find_question(request.messages)
        question, run = request.messages[begin:end], request.messages[begin:]
        context = await self._memory.context(
            _get_user(request.runtime.context),
            query=question[-1].text if question else None,
            min_seq=cast("_State", request.state).get("memory_seq"),
            budget=self._budget,
        )
        if context.error:
            return await handler(request)
        known, earlier = _split_context(context, question)
        told = [request.system_message.text] if request.system_message else []
        system = "\n\n".join([*told, *known])
        return await handler(
            request.override(
                system_message=SystemMessage(system) if system else None, messages=[*earlier, *run]
            )
        )

    async def aafter_agent(self, state: _State, runtime: Runtime[MemoryUser]) -> None:
        """Publish the last message of the state if it is an answer of the model."""
        answer = state["messages"][-1]
        if isinstance(answer, AIMessage):
            until = asyncio.get_running_loop().time() + CONFIRMATION_TIMEOUT
            await self._publish_message(_get_user(runtime.context), "assistant", answer, until)

    async def _publish_message(self, user: str, role: Role, message: AnyMessage, until: float) -> int | None:
        """Publish a message that has text; log a warning if it cannot be an event, or is not confirmed.

        Returns:
            The log position; None without text, without a confirmation until the time `until` of the event
            loop, or for a message that cannot be an event, such as one with U+0000.
        """
        if not message.text:
            return None
        try:
            async with asyncio.timeout_at(until):
                return await self._memory.publish(user, role, message.text, id=message.id)
        except (PublishFailed, InvalidBody, TimeoutError) as error:
            problem = str(error) or "no answer in time"
            log.warning("message not confirmed id=%s role=%s error=%s", message.id, role, problem)
            return None

    def _create_tool(self, function: FunctionTool) -> BaseTool:
        async def call_tool(runtime: ToolRuntime[MemoryUser, Any], **arguments: Any) -> str:
            try:
                reply = await self._memory.call(_get_user(runtime.context), function.name, arguments)
            except (AskFailed, InvalidBody) as error:
                raise ToolException(str(error)) from error
            return reply.model_dump_json(exclude_none=True)

        return StructuredTool(
            name=function.name,
            description=function.description,
            args_schema=function.build_parameters(),
            coroutine=call_tool,
            handle_tool_error=True,  # the model sees the error
        )


def _get_user(context: object) -> str:
    """Return the user whose memory a run uses.

    Raises:
        ValueError: the run has no runtime context that names a user.
    """
    user = getattr(context, "user", None)
    if isinstance(user, str) and user:
        return user
    raise ValueError(
        f"the run names no user: its runtime context is {context!r:.80}. Pass "
        '`context=MemoryUser("u42")` to `ainvoke` or `astream`, and `context_schema=MemoryUser` to '
        "`create_agent`"
    )


def _find_question(messages: Sequence[AnyMessage]) -> tuple[int, int]:
    """Return begin and end of the last messages of the user in succession, which a run answers."""
    end = max((at for at, each in enumerate(messages, 1) if _is_of_user(each)), default=0)
    begin = end
    while begin and _is_of_user(messages[begin - 1]):
        begin -= 1
    return begin, end


def _is_of_user(message: AnyMessage) -> bool:
    """Return whether the user wrote a message; not LangChain, which marks a summary of earlier messages."""
    return isinstance(message, HumanMessage) and "lc_source" not in message.additional_kwargs


def _split_context(
    context: ContextReplyV1, question: Sequence[AnyMessage]
) -> tuple[list[str], list[AnyMessage]]:
    """Split a context into texts for the system message and the messages from before this run.

    The context may end with the user's messages of this run; these are left out, because the run has them
    already.
    """
    known = [each.content for each in context.messages if each.role in ("system", "tool")]
    said = [each for each in context.messages if each.role in ("user", "assistant")]
    for asked in reversed(question):
        if said and asked.text and said[-1].role == "user" and said[-1].content.endswith(asked.text):
            said.pop()
    kinds = {"user": HumanMessage, "assistant": AIMessage}
    return known, [kinds[each.role](each.content) for each in said]
