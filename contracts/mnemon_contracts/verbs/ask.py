"""Requests of bots, `ask.<tenant>.<user>.<verb>.v<N>`, and their replies."""

from typing import Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from mnemon_contracts.base import Contract, Identifier, JsonObject, Moment, Sequence, Text
from mnemon_contracts.events.chat import Role

VerbErrorCode = Literal[
    "bad_request", "not_found", "refused", "unavailable", "timeout", "not_implemented", "internal"
]
ErrorCode = Literal[VerbErrorCode, "unknown_verb"]
Format = Literal["messages", "xml", "blocks", "markdown"]

MAX_HISTORY = 1000


class AskError(Contract):
    """Error in the place of a result."""

    # The schema of a verb's reply omits this code: no verb replies with it.
    code: VerbErrorCode | SkipJsonSchema[Literal["unknown_verb"]] = Field(description="Code for programs.")
    message: Text = Field(description="Message for a person; it names the invalid field.")
    retryable: bool = Field(description="Whether the same request may succeed later.")


class Reply(Contract):
    """Fields of every reply. Either `error` is set, or the fields of the verb are."""

    seen_seq: Sequence = Field(
        default=0,
        description="Log position that the reply reflects: every event of the user up to this position.",
    )
    error: AskError | None = Field(default=None, description="Error, if there is no result.")
    warnings: tuple[Text, ...] | None = Field(
        default=None,
        description="Fields of the request that have no effect, because the verb does not have them.",
    )


class ErrorReply(Reply):
    """Reply without a result; it has only the error."""

    error: AskError


class RenderedMessage(Contract):
    """A message in the form that a model is shown."""

    role: Role = Field(description="Role of the speaker.")
    content: Text = Field(description="Text that the model is shown.")
    name: Text | None = Field(default=None, description="Name of the speaker.")


class StoredMessage(RenderedMessage):
    """A stored message."""

    seq: Sequence = Field(description="Log position of the event.")
    id: Identifier = Field(description="Event id of the message.")
    sent_at: Moment = Field(description="Time of the message.")
    task_id: Identifier | None = Field(default=None, description="Task that a tool result belongs to.")


class ContextV1(Contract):
    """Return the context for a model's next answer."""

    query: Text | None = Field(
        default=None, description="The user's message, for which relevant memory is found."
    )
    format: Format = Field(default="messages", description="Format of the context.")
    budget: int | None = Field(
        default=None,
        ge=1,
        description="Tokens of the context, at most; without it: `context.budget` of the settings, "
        "1,300 unless it is set.",
    )
    min_seq: Sequence | None = Field(
        default=None,
        description="Wait until the reply reflects the log up to this position, which a publish returned.",
    )
    as_of: Moment | Sequence | None = Field(
        default=None, description="Answer as of this time or log position."
    )
    task_id: Identifier | None = Field(
        default=None, description="Task whose tool results are added to the query."
    )
    conversation: Identifier | None = Field(
        default=None, description="Conversation; without it: the current one."
    )


class ContextSection(Contract):
    """One section of the context."""

    tokens: int = Field(default=0, ge=0, description="Tokens of the section.")
    shown: int = Field(default=0, ge=0, description="Items that are shown.")
    left_out: int = Field(
        default=0,
        ge=0,
        description="Items that are not shown, because the budget or the settings leave no room.",
    )
    cut: bool = Field(default=False, description="Whether an item is shown in part.")
    messages_left_out: int | None = Field(
        default=None,
        ge=0,
        description="In `recent`: messages of the conversation that are not shown and that no summary "
        "covers. In `summaries`: messages that are not shown and whose summary is left "
        "out. The sum of both is `coverage.left_out`.",
    )


class ContextCoverage(Contract):
    """Coverage of the messages of the conversation: each is counted once, and the three counts add up to all
    messages.
    """

    shown: int = Field(
        default=0,
        ge=0,
        description="Messages shown in `recent` or `conversation`, whole or cut. Messages without "
        "words count here.",
    )
    summarised: int = Field(
        default=0, ge=0, description="Messages that are not shown, but covered by a summary that is shown."
    )
    left_out: int = Field(default=0, ge=0, description="Messages that are in no part of the context.")


class ContextReplyV1(Reply):
    """The context, within the budget."""

    conversation: Identifier | None = Field(default=None, description="Conversation that is shown.")
    messages: tuple[RenderedMessage, ...] = Field(
        default=(),
        description="Messages in order, ready for a model; in other formats: the text, as one message.",
    )
    text: Text | None = Field(
        default=None,
        description="The whole context as one text, in the formats `xml`, `blocks` and `markdown`.",
    )
    tokens: int | None = Field(default=None, ge=0, description="Tokens of the context; at most the budget.")
    sections: dict[Text, ContextSection] = Field(
        default={},
        description="Items shown and left out of `facts`, `summaries`, `user_data`, `working`, `recent`, "
        "`relevant`, `documents` and `conversation`; a section without items is absent.",
    )
    coverage: ContextCoverage | None = Field(
        default=None,
        description="Coverage of the messages of the conversation; absent if they could not be counted.",
    )
    profile: JsonObject = Field(default={}, description="The user's data.")
    degraded: tuple[Text, ...] = Field(
        default=(), description="Parts that are missing because a server failed or did not answer in time."
    )
    metadata: JsonObject = Field(
        default={},
        description="Metadata for messages that are published with text of this context, so that known "
        "facts are not learned again from them.",
    )


class HistoryV1(Contract):
    """Return the last messages of a conversation."""

    limit: int = Field(default=30, ge=1, le=MAX_HISTORY, description="Messages at most.")
    conversation: Identifier | None = Field(
        default=None, description="Conversation; without it: the current one."
    )
    min_seq: Sequence | None = Field(
        default=None, description="Wait until the reply reflects the log up to this position."
    )
    as_of: Moment | Sequence | None = Field(
        default=None, description="Answer as of this time or log position."
    )


class HistoryReplyV1(Reply):
    """The messages, oldest first."""

    conversation: Identifier | None = Field(default=None, description="Conversation that is shown.")
    messages: tuple[StoredMessage, ...] = Field(default=(), description="Oldest first.")


class ProfileV1(Contract):
    """Return the user's data, or set fields of it."""

    fields: JsonObject | None = Field(default=None, description="Fields to set; `null` removes one.")
    min_seq: Sequence | None = Field(
        default=None, description="Wait until the reply reflects the log up to this position."
    )


class ProfileReplyV1(Reply):
    """The user's data, after the change if there was one."""

    profile: JsonObject = Field(default={}, description="Fields with their values.")


class StatusV1(Contract):
    """Return what is kept of a user, how far it is behind the log, and which events were rejected."""

    min_seq: Sequence | None = Field(
        default=None, description="Wait until the reply reflects the log up to this position."
    )
    event_seq: Sequence | None = Field(
        default=None,
        description="Return the outcome of the user's event at this log position, which a publish "
        "returned; waits for it as for `min_seq`.",
    )


class RejectedEvent(Contract):
    """An event that was rejected: it is kept as a dead letter and changed nothing."""

    seq: Sequence = Field(description="Log position of the event.")
    event: Text = Field(description="Its subject after tenant and user, such as `-.message.v1`.")
    reason: Text = Field(description="Reason for programs, such as `invalid_body`.")
    error: Text = Field(description="Reason for a person; it names the field.")
    at: Moment = Field(description="Time at which it was rejected.")


class EventOutcome(Contract):
    """Outcome of an event."""

    seq: Sequence = Field(description="Log position of the event.")
    outcome: Literal["applied", "rejected", "waiting"] = Field(
        description="`applied`: its effect is stored, or was earlier. `rejected`: it is a dead letter. "
        "`waiting`: it is in the log and not handled yet."
    )
    rejected: RejectedEvent | None = Field(
        default=None, description="The rejected event, if it was rejected."
    )


class StatusReplyV1(Reply):
    """Counts of stored messages, and rejected events."""

    conversation: Identifier | None = Field(default=None, description="Current conversation.")
    conversations: int = Field(default=0, description="Conversations with messages.")
    messages: int = Field(default=0, description="Messages in all of them.")
    first_at: Moment | None = Field(default=None, description="Time of the oldest message.")
    last_at: Moment | None = Field(default=None, description="Time of the newest message.")
    log_seq: Sequence = Field(
        default=0, description="Last position of the log; events after `seen_seq` are not reflected yet."
    )
    rejected: tuple[RejectedEvent, ...] = Field(
        default=(), description="The user's latest rejected events, newest first; at most ten."
    )
    outcome: EventOutcome | None = Field(
        default=None, description="Outcome of the event at `event_seq`, if the request has one."
    )
