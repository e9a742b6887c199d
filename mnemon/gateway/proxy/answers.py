"""Answers of models, read from the bytes that pass through the proxy."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

from pydantic_core import from_json

from mnemon.gateway.proxy.messages import ChatMessage
from mnemon_contracts.events.memory import Tokens

MAX_ANSWER: Final = 16 * 1024 * 1024
"""Maximum size of an answer that is read, in bytes; a larger one passes through and is not stored."""


class Answer(NamedTuple):
    """An answer of a model, parsed from a response that passes through the proxy.

    Attributes:
        message: the answer as a message; None if it is incomplete or unreadable, or one of several.
        model: the model, as the provider names it.
        tokens: the tokens that the provider counted; None if it reported none.
        id: the provider's id of the answer.
    """

    message: ChatMessage | None = None
    model: str = ""
    tokens: Tokens | None = None
    id: str = ""


class AnswerBuilder(Protocol):
    """Builder of an answer from the events of a stream."""

    def add(self, event: dict[str, Any]) -> None:
        """Add the data of the next event of the stream."""

    def build_answer(self) -> Answer:
        """Return the answer; its message is None if the message is not complete, or if there are several."""


class EventStream:
    """Parser of server-sent events, whose bytes arrive in pieces of any size."""

    def __init__(self) -> None:
        self._rest = bytearray()  # the line that is not complete

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Add the next bytes; yield the JSON object of each `data` line that these bytes complete."""
        self._rest += data
        if b"\n" not in data:
            return
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                try:
                    value = from_json(line[5:])
                except ValueError:  # `[DONE]`
                    continue
                if isinstance(value, dict):
                    yield value
