"""Chat events, which bots publish: `chat.<tenant>.<user>.<conversation>.<event>.v<N>`."""

from typing import Final, Literal

from pydantic import Field

from mnemon_contracts.base import Contract, Event, Identifier, Json, JsonObject, Moment, Text

Role = Literal["user", "assistant", "tool", "system"]

FROM_MEMORY: Final = "from_memory"
"""Key in the metadata of a message. The value `true` says that the text came from memory, so that no fact is
extracted from the message."""


class ToolCall(Contract):
    """One call of a tool by the assistant."""

    name: Text = Field(description="Name of the tool.")
    id: Text | None = Field(default=None, description="Id of the call, as the model gave it.")
    arguments: Json = Field(default=None, description="Arguments of the call.")


class MessageV1(Event):
    """A message of a conversation."""

    role: Role = Field(description="Role of the speaker.")
    content: Text = Field(
        description="Text of the message; may be empty, for example if `tool_calls` is given."
    )
    sent_at: Moment | None = Field(
        default=None,
        description="Time of the message. Default: the time at which the log received the message.",
    )
    name: Text | None = Field(default=None, description="Name of the speaker, if several people speak.")
    task_id: Identifier | None = Field(
        default=None,
        description="Id of the bot's task that a tool result belongs to; `context` accepts the id as "
        "`task_id`. The verb `tasks` does not list this task.",
    )
    tool_calls: tuple[ToolCall, ...] | None = Field(
        default=None, description="Calls of tools that the assistant made in this message."
    )
    metadata: JsonObject | None = Field(
        default=None,
        description="Arbitrary data of the bot, which mnemon stores. The value `true` of the field "
        "`from_memory` says that the text came from memory, so no facts are extracted from it. A repeated "
        "`mnemon import telegram` reads the field `telegram`, which the import writes.",
    )


class StartedV1(Event):
    """A new conversation starts (`/new`).

    With `-` in the subject, the id of the conversation is a UUID that derives from the event's id.
    """

    discard_previous: bool = Field(
        default=False,
        description="Discard all earlier messages and summaries of the user, in every conversation, tool "
        "results included.",
    )


class ClearedV1(Event):
    """All earlier messages and summaries of the conversation are removed; the conversation stays."""
