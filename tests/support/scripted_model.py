"""LangChain model with answers that a test sets."""

from collections.abc import Sequence
from typing import Any

from langchain.messages import AIMessage, AnyMessage
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr


class ScriptedModel(BaseChatModel):
    """Model that gives its `answers` in turn, and records the messages and tools that it receives."""

    answers: list[AIMessage]
    _shown: list[list[AnyMessage]] = PrivateAttr(default_factory=list)
    _tools: list[Any] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "of the test"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "ScriptedModel":
        self._tools = list(tools)
        return self

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        self._shown.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.answers.pop(0))])
