"""Port of a provider's wire format: reads user, messages and answers, and adds a context to a request."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mnemon.gateway.proxy.answers import Answer, AnswerBuilder
from mnemon.gateway.proxy.messages import ChatMessage
from mnemon.gateway.proxy.placement import PlacedContext

RequestBody = dict[str, Any]


class WireFormat(Protocol):
    """Wire format of a provider: reads requests and answers, and adds a context to a request.

    Attributes:
        provider: name of the provider in `mnemon usage`.
    """

    provider: str

    def find_user(self, body: RequestBody) -> str | None:
        """Return the user that a body names; None if it names none."""

    def parse_messages(self, body: RequestBody) -> Sequence[ChatMessage]:
        """Return the messages of the conversation, without system prompts.

        Raises:
            ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError: the body does not
                follow the format.
        """

    def place_context(self, body: RequestBody, context: PlacedContext) -> RequestBody:
        """Return a copy of a body with the context in the system prompt and the user's last message.

        Raises:
            ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError: the body does not
                follow the format.
        """

    def parse_answer(self, body: Mapping[str, Any]) -> Answer:
        """Return the answer of a response that is not streamed.

        Raises:
            ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError: the body does not
                follow the format.
        """

    def create_answer_builder(self) -> AnswerBuilder:
        """Return a builder for a streamed answer."""
