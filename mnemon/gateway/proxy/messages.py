"""Messages of a request in one form for all wire formats, and the ids under which they are stored.

A client sends the whole history with every request. `identify_messages` derives the id of a message from the
conversation, its content and the content of the message before it. A message that is sent again has the same
id, and is stored once.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from mnemon.json_text import parse_json_or_text
from mnemon_contracts.base import ID_LIMIT, InvalidBody
from mnemon_contracts.events.chat import MessageV1, ToolCall

UNREADABLE: Final = ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError
"""Errors that a reader may raise if a body or a response does not follow its wire format."""

Speaker = Literal["user", "assistant", "tool"]


class CalledTool(NamedTuple):
    """A call of a tool by the assistant; `arguments` is JSON as text, unless the model wrote invalid JSON."""

    id: str
    name: str
    arguments: str


class ChatMessage(NamedTuple):
    """A message of a conversation, without the fields that only a provider needs.

    Attributes:
        text: the parts that are text, joined by line breaks.
        tool_calls: tools that the assistant called.
        tool_call_id: the call that a tool's message answers.
        attachments: number of parts that are not text, such as images.
        attachments_digest: digest of these parts; empty if there are no attachments.
    """

    role: Speaker
    text: str
    tool_calls: tuple[CalledTool, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    attachments: int = 0
    attachments_digest: str = ""


class IdentifiedMessage(NamedTuple):
    """A message with its id and the digest of its content.

    Attributes:
        is_head: whether it is the first message of a request with several messages.
    """

    id: str
    message: ChatMessage
    content_digest: str
    is_head: bool = False


def identify_messages(
    conversation: str | None, messages: Sequence[ChatMessage]
) -> Iterator[IdentifiedMessage]:
    """Yield the messages with their ids.

    An id is a digest of the conversation, the content, the content of the message before, and the number of
    times that this pair of contents has occurred so far. Unlike an index, the id stays the same when a client
    leaves out the beginning of a long history. Only two kinds of messages then get another id: the first
    remaining message, and a later message whose pair of contents also occurred in the part left out.
    """
    seen: Counter[str] = Counter()
    before = ""
    for index, message in enumerate(messages):
        content = _digest_content(message)
        pair = f"{before}:{content}"
        seen[pair] += 1
        place = json.dumps([conversation, pair, seen[pair]])
        yield IdentifiedMessage(
            f"proxy-{_digest_text(place)[:40]}", message, content, is_head=index == 0 and len(messages) > 1
        )
        before = content


def digest_parts(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return a digest of parts that are not text; an empty text if there are no parts."""
    written = [json.dumps(part, sort_keys=True) for part in parts]
    return _digest_text("\n".join(written))[:16] if written else ""


def build_event(identified: IdentifiedMessage, metadata: Mapping[str, Any] | None = None) -> MessageV1 | None:
    """Return the event of a message; None for a message without text and tool calls, such as a bare image.

    Raises:
        InvalidBody: the message cannot be stored.
    """
    message = identified.message
    if not message.text.strip() and not message.tool_calls:
        return None
    noted = {
        **({"attachments": message.attachments} if message.attachments else {}),
        **({"tool_call_id": message.tool_call_id} if message.tool_call_id else {}),
        **(metadata or {}),
    }
    calls = tuple(_build_call(call) for call in message.tool_calls)
    return MessageV1.create_strict(
        id=identified.id,
        role=message.role,
        content=message.text,
        name=message.name,
        task_id=_fit_identifier(message.tool_call_id),
        tool_calls=calls or None,
        metadata=noted or None,
    )


def _build_call(call: CalledTool) -> ToolCall:
    build = partial(ToolCall.create_strict, name=call.name, id=call.id or None)
    try:
        return build(arguments=_parse_arguments(call.arguments))
    except InvalidBody:  # a number or a text that no event can have, such as NaN: as the model wrote it
        return build(arguments=call.arguments)


def _fit_identifier(text: str | None) -> str | None:
    return text if text and len(text.encode()) <= ID_LIMIT else None


def list_shown_texts(messages: Iterable[ChatMessage]) -> list[str]:
    """Return the texts of messages as a context shows them, with the names of called tools."""
    texts = []
    for message in messages:
        texts += [message.text, ", ".join(dict.fromkeys(call.name for call in message.tool_calls))]
    return [text for text in texts if text]


def require_text(messages: Iterable[ChatMessage]) -> None:
    """Check that texts, names and ids are strings; the name of a message and the id of a call may be None.

    Raises:
        TypeError: one of them is not a string.
    """
    for message in messages:
        texts = [message.text, *(call.name for call in message.tool_calls)]
        optional = [message.name, message.tool_call_id, *(call.id for call in message.tool_calls)]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(
                "the text of a message, or the name of a called tool, is not a string; send a string"
            )
        if not all(text is None or isinstance(text, str) for text in optional):
            raise TypeError(
                "the name of a message, or the id of a call, is not a string; send a string or null"
            )


def _parse_arguments(written: Any) -> Any:
    """Return the arguments of a call. A string is decoded if it is JSON, as OpenAI's clients send it."""
    return parse_json_or_text(written) if isinstance(written, str) else written


def _digest_content(message: ChatMessage) -> str:
    # White space at the ends does not count: clients strip it from the answers that they send back.
    return _digest_text(
        json.dumps(
            [
                message.role,
                message.text.strip(),
                [[call.id, call.name, _parse_arguments(call.arguments)] for call in message.tool_calls],
                message.tool_call_id,
                message.attachments_digest,
            ],
            sort_keys=True,
        )
    )


def _digest_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
