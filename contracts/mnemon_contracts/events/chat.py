"""What a bot publishes: `chat.<tenant>.<user>.<conversation>.<event>.v<N>`."""

from typing import Final, Literal

from pydantic import Field

from mnemon_contracts.base import Contract, Event, Identifier, Json, JsonObject, Moment, Text

Role = Literal["user", "assistant", "tool", "system"]

FROM_MEMORY: Final = "from_memory"
"""In the metadata of a message, `true` where its text came from memory: it teaches nothing new."""


class ToolCall(Contract):
    """One use of a tool by the assistant."""

    name: Text = Field(description="Name of the tool.")
    id: Text | None = Field(default=None, description="The model's id of the call.")
    arguments: Json = Field(default=None, description="What the tool was called with.")


class MessageV1(Event):
    """A message of a conversation."""

    role: Role = Field(description="Who speaks.")
    content: Text = Field(description="What was said; may be empty when `tool_calls` is given.")
    sent_at: Moment | None = Field(
        default=None, description="When it was said. Without it: when the log received it."
    )
    name: Text | None = Field(default=None, description="The speaker's name, where several people speak.")
    task_id: Identifier | None = Field(
        default=None, description="The task a tool's result belongs to; `context` can be asked by it."
    )
    tool_calls: tuple[ToolCall, ...] | None = Field(
        default=None, description="Tools that the assistant used for this answer."
    )
    metadata: JsonObject | None = Field(
        default=None,
        description="Anything of the bot's own; kept, and but for one field never read: where `from_memory` "
        "is true, no facts are drawn from the message.",
    )


class StartedV1(Event):
    """A new conversation starts (`/new`). On `-` it gets a UUID made from the event's id."""

    discard_previous: bool = Field(
        default=False,
        description="Everything the user said before, in every conversation, is gone, tool results included.",
    )


class ClearedV1(Event):
    """All earlier messages of the conversation are gone; the conversation stays."""
