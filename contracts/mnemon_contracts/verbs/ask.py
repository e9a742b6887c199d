"""What a bot asks: `ask.<tenant>.<user>.<verb>.v<N>`, and the replies."""

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
    """Why there is no result."""

    # Not in the schema of a verb's reply: no verb answers so.
    code: VerbErrorCode | SkipJsonSchema[Literal["unknown_verb"]] = Field(description="For a program.")
    message: Text = Field(description="For a person; names the field that is wrong.")
    retryable: bool = Field(description="The same request may succeed later.")


class Reply(Contract):
    """What every reply carries. Either `error` is set, or the fields of the verb are."""

    seen_seq: Sequence = Field(
        default=0, description="The log position it reflects: every event of the user up to there."
    )
    error: AskError | None = Field(default=None, description="Why there is no result.")
    warnings: tuple[Text, ...] | None = Field(
        default=None, description="What of the request has no effect: fields that the verb does not have."
    )


class ErrorReply(Reply):
    """The reply when there is no result."""

    error: AskError


class RenderedMessage(Contract):
    """A message as a model is shown it."""

    role: Role = Field(description="Who speaks.")
    content: Text = Field(description="What the model is shown.")
    name: Text | None = Field(default=None, description="The speaker's name.")


class StoredMessage(RenderedMessage):
    """A message as it is kept."""

    seq: Sequence = Field(description="Its log position.")
    id: Identifier = Field(description="Its event id.")
    sent_at: Moment = Field(description="When it was said.")
    task_id: Identifier | None = Field(default=None, description="The task a tool's result belongs to.")


class ContextV1(Contract):
    """What to put before a model for its next answer."""

    query: Text | None = Field(
        default=None, description="The user's message, to find what is relevant to it."
    )
    format: Format = Field(default="messages", description="How the context is rendered.")
    budget: int | None = Field(
        default=None,
        ge=1,
        description="At most so many tokens; without it as many as `context.budget` says, 1,300 unless it is "
        "set.",
    )
    min_seq: Sequence | None = Field(
        default=None, description="Reflect the log up to here: the sequence that a publish returned."
    )
    as_of: Moment | Sequence | None = Field(
        default=None, description="As it was then: a time or a log position."
    )
    task_id: Identifier | None = Field(default=None, description="The task whose results shape the query.")
    conversation: Identifier | None = Field(default=None, description="Without it: the current one.")


class ContextSection(Contract):
    """What became of a section of the context."""

    tokens: int = Field(default=0, ge=0, description="What it takes of the budget.")
    shown: int = Field(default=0, ge=0, description="How many of its items are shown.")
    left_out: int = Field(
        default=0,
        ge=0,
        description="How many of its items are not shown, for want of room or as the settings say.",
    )
    cut: bool = Field(default=False, description="One of them is shown in part.")
    messages_left_out: int | None = Field(
        default=None,
        ge=0,
        description="Of `recent`: messages of the conversation that are not shown and that no summary "
        "covers. Of `summaries`: messages that are not shown and whose summary is left out. The sum of both "
        "is `coverage.left_out`.",
    )


class ContextCoverage(Contract):
    """Where the messages of the conversation are: each is counted once, so that the three add up to all."""

    shown: int = Field(
        default=0,
        ge=0,
        description="Shown in `recent` or `conversation`, whole or cut. Messages without words count here.",
    )
    summarised: int = Field(default=0, ge=0, description="Not shown, and covered by a summary that is shown.")
    left_out: int = Field(default=0, ge=0, description="In no part of the context.")


class ContextReplyV1(Reply):
    """The context, within its budget."""

    conversation: Identifier | None = Field(default=None, description="The conversation shown.")
    messages: tuple[RenderedMessage, ...] = Field(
        default=(),
        description="In order, ready for a model; of another format the text, as one message.",
    )
    text: Text | None = Field(
        default=None, description="The whole as one text, in the formats `xml`, `blocks` and `markdown`."
    )
    tokens: int | None = Field(default=None, ge=0, description="How many it has: at most the budget.")
    sections: dict[Text, ContextSection] = Field(
        default={},
        description="Items shown and left out of `facts`, `summaries`, `user_data`, `working`, `recent`, "
        "`relevant`, `documents` and `conversation`; a section without items is absent.",
    )
    coverage: ContextCoverage | None = Field(
        default=None,
        description="Where the messages of the conversation are; left out where they could not be counted.",
    )
    profile: JsonObject = Field(default={}, description="The user's data.")
    degraded: tuple[Text, ...] = Field(
        default=(), description="Parts that are missing because something failed."
    )
    metadata: JsonObject = Field(
        default={},
        description="What to put into `metadata` of a message that is published with text of this context, "
        "so that what is known is not learned again from it.",
    )


class HistoryV1(Contract):
    """The last messages of a conversation."""

    limit: int = Field(default=30, ge=1, le=MAX_HISTORY, description="At most so many messages.")
    conversation: Identifier | None = Field(default=None, description="Without it: the current one.")
    min_seq: Sequence | None = Field(default=None, description="Reflect the log up to here.")
    as_of: Moment | Sequence | None = Field(
        default=None, description="As it was then: a time or a log position."
    )


class HistoryReplyV1(Reply):
    """The messages, oldest first."""

    conversation: Identifier | None = Field(default=None, description="The conversation shown.")
    messages: tuple[StoredMessage, ...] = Field(default=(), description="Oldest first.")


class ProfileV1(Contract):
    """The user's data, read or set."""

    fields: JsonObject | None = Field(default=None, description="Fields to set; `null` removes one.")
    min_seq: Sequence | None = Field(default=None, description="Reflect the log up to here.")


class ProfileReplyV1(Reply):
    """The user's data; after a change, as it is from now on."""

    profile: JsonObject = Field(default={}, description="Field by field.")


class StatusV1(Contract):
    """What is kept of a user, how far behind the log it is, and what could not be used."""

    min_seq: Sequence | None = Field(default=None, description="Reflect the log up to here.")
    event_seq: Sequence | None = Field(
        default=None,
        description="Say what became of the user's event at this log position, which a publish returned; "
        "waits for it as for `min_seq`.",
    )


class RejectedEvent(Contract):
    """An event that could not be used: it is kept as a dead letter, and changed nothing."""

    seq: Sequence = Field(description="Its log position.")
    event: Text = Field(description="Its subject behind tenant and user, such as `-.message.v1`.")
    reason: Text = Field(description="Why, for a program, such as `invalid_body`.")
    error: Text = Field(description="Why, for a person; names the field.")
    at: Moment = Field(description="When it was given up.")


class EventOutcome(Contract):
    """What became of an event."""

    seq: Sequence = Field(description="Its log position.")
    outcome: Literal["applied", "rejected", "waiting"] = Field(
        description="`applied`: its effect is stored, or was before. `rejected`: it could not be used. "
        "`waiting`: it is in the log, and its turn has not come."
    )
    rejected: RejectedEvent | None = Field(default=None, description="Why, where it was rejected.")


class StatusReplyV1(Reply):
    """Counts of what is kept."""

    conversation: Identifier | None = Field(default=None, description="The current conversation.")
    conversations: int = Field(default=0, description="Conversations with messages.")
    messages: int = Field(default=0, description="Messages in all of them.")
    first_at: Moment | None = Field(default=None, description="When the oldest was said.")
    last_at: Moment | None = Field(default=None, description="When the newest was said.")
    log_seq: Sequence = Field(
        default=0, description="Where the log ends; beyond `seen_seq` is not reflected yet."
    )
    rejected: tuple[RejectedEvent, ...] = Field(
        default=(), description="The user's latest events that could not be used, newest first: at most ten."
    )
    outcome: EventOutcome | None = Field(
        default=None, description="What became of the event at `event_seq`, where it was asked for."
    )
