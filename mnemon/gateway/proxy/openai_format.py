"""Wire format of OpenAI's chat completions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mnemon.gateway.proxy.answers import Answer
from mnemon.gateway.proxy.messages import CalledTool, ChatMessage, Speaker, digest_parts
from mnemon.gateway.proxy.placement import PlacedContext
from mnemon.gateway.proxy.wire_format import RequestBody
from mnemon_contracts.events.memory import Tokens

_INSTRUCTING: Final = frozenset({"system", "developer"})
_SPEAKERS: Final[Mapping[str, Speaker]] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


class OpenAIFormat:
    """Wire format of OpenAI's chat completions, which most other providers and local servers speak."""

    provider = "openai"

    def find_user(self, body: RequestBody) -> str | None:
        """Return `user` of the body; None if it is absent, empty or not a string."""
        user = body.get("user")
        return user if isinstance(user, str) and user else None

    def parse_messages(self, body: RequestBody) -> Sequence[ChatMessage]:
        """Return the messages of users, assistants and tools."""
        return [_parse_message(each) for each in body["messages"] if each["role"] in _SPEAKERS]

    def place_context(self, body: RequestBody, context: PlacedContext) -> RequestBody:
        """Return a body whose system prompt and last user message have the context.

        Existing messages are extended, because templates of many local models refuse a system message that
        is not the first. Without a system prompt, a new system message comes first.
        """
        messages = list(body["messages"])
        if context.found:
            asked = max((at for at, each in enumerate(messages) if each["role"] == "user"), default=None)
            if asked is not None:
                messages[asked] = _extend_message(messages[asked], before=context.found)
        if context.stable:
            leading = _count_leading_prompts(messages)
            if leading:
                messages[leading - 1] = _extend_message(messages[leading - 1], after=context.stable)
            else:
                messages.insert(0, {"role": "system", "content": context.stable})
        return {**body, "messages": messages}

    def parse_answer(self, body: Mapping[str, Any]) -> Answer:
        """Return the answer in a response that is not streamed."""
        choices = body["choices"]
        message = (
            _parse_message({**choices[0]["message"], "role": "assistant"}) if len(choices) == 1 else None
        )
        return Answer(message, body.get("model") or "", _parse_usage(body.get("usage")), body.get("id") or "")

    def create_answer_builder(self) -> "CompletionBuilder":
        """Return a builder for the answer of a streamed completion."""
        return CompletionBuilder()


class CompletionBuilder:
    """Builder of an answer from the chunks of a streamed completion."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: dict[int, list[str]] = {}
        self._has_ended = False
        self._has_several = False
        self._answer = Answer()

    def add(self, event: dict[str, Any]) -> None:
        self._answer = self._answer._replace(
            model=event.get("model") or self._answer.model,
            id=event.get("id") or self._answer.id,
            tokens=_parse_usage(event.get("usage")) or self._answer.tokens,
        )
        for choice in event.get("choices") or ():
            if choice.get("index"):
                self._has_several = True
                continue
            delta = choice.get("delta") or {}
            self._text.append(delta.get("content") or delta.get("refusal") or "")
            for call in delta.get("tool_calls") or ():
                function = call.get("function") or {}
                known = self._calls.setdefault(call.get("index") or 0, ["", "", ""])
                known[0] = known[0] or call.get("id") or ""
                known[1] = known[1] or function.get("name") or ""
                known[2] += function.get("arguments") or ""
            self._has_ended = self._has_ended or bool(choice.get("finish_reason"))

    def build_answer(self) -> Answer:
        """Return the answer. Its message is None if the message is unfinished, or if there are several."""
        if not self._has_ended or self._has_several:
            return self._answer
        calls = tuple(CalledTool(*self._calls[index]) for index in sorted(self._calls))
        return self._answer._replace(message=ChatMessage("assistant", "".join(self._text), calls))


def _parse_message(message: Mapping[str, Any]) -> ChatMessage:
    content = message.get("content")
    text, others = _split_parts(content)
    return ChatMessage(
        role=_SPEAKERS[message["role"]],
        text=text or message.get("refusal") or "",
        tool_calls=tuple(
            CalledTool(call.get("id") or "", call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
            if "function" in call
        ),
        tool_call_id=message.get("tool_call_id"),
        name=message.get("name") if message["role"] == "user" else None,
        attachments=len(others),
        attachments_digest=digest_parts(others),
    )


def _split_parts(content: str | Sequence[Mapping[str, Any]] | None) -> tuple[str, list[Mapping[str, Any]]]:
    """Return the text of a message's content, and the parts that are not text."""
    if content is None or isinstance(content, str):
        return content or "", []
    texts = [part.get("text") or part.get("refusal") or "" for part in content if _is_text(part)]
    return "\n".join(texts), [part for part in content if not _is_text(part)]


def _is_text(part: Mapping[str, Any]) -> bool:
    return part["type"] in ("text", "refusal")


def _count_leading_prompts(messages: Sequence[Mapping[str, Any]]) -> int:
    """Count the system prompts before the conversation."""
    return next((at for at, each in enumerate(messages) if each["role"] not in _INSTRUCTING), len(messages))


def _extend_message(message: dict[str, Any], *, before: str = "", after: str = "") -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list):
        added = {"type": "text", "text": before or after}
        return {**message, "content": [added, *content] if before else [*content, added]}
    return {**message, "content": "\n\n".join(part for part in (before, content, after) if part)}


def _parse_usage(usage: Mapping[str, Any] | None) -> Tokens | None:
    if not usage:
        return None
    details = usage.get("prompt_tokens_details") or {}
    return Tokens(
        input=usage.get("prompt_tokens") or 0,
        cached=details.get("cached_tokens") or 0,
        output=usage.get("completion_tokens") or 0,
    )
