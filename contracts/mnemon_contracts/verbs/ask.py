"""Requests for memory as a whole, `ask.<tenant>.<user>.<verb>.v<N>`, and their replies; see also `tools`."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from mnemon_contracts.base import Contract, Identifier, JsonObject, LogPosition, Moment, Text
from mnemon_contracts.events.chat import Role

VerbErrorCode = Literal[
    "bad_request", "not_found", "refused", "unavailable", "timeout", "not_implemented", "internal"
]
ErrorCode = Literal[VerbErrorCode, "unknown_verb", "moved"]
Format = Literal["messages", "xml", "blocks", "markdown"]

MAX_HISTORY = 1000

MAX_PRECEDING = 4
"""Maximum number of messages before a query that a request may carry."""

Preceding = Annotated[
    tuple[Text, ...] | None,
    Field(
        max_length=MAX_PRECEDING,
        description="Last messages before the query, oldest first, at most four. A query that depends on "
        "them, such as `and when was that?`, is searched with their words too. Only the first 400 "
        "characters of each message are used.",
    ),
]

Now = Annotated[
    Moment | None,
    Field(
        description="Time to which words of the query such as `yesterday` are relative. Default: the time of "
        "the request, or that of `as_of`. Whether facts have expired does not depend on it."
    ),
]

MinSeq = Annotated[
    LogPosition | None,
    Field(
        description="Log position of an event that the reply should include, such as the one that a publish "
        "returned. The request waits for the event, at most as long as the setting `wait_for_log_ms`. If "
        "`seen_seq` of the reply is lower, the reply does not include the event."
    ),
]

AsOf = Annotated[
    Moment | LogPosition | None,
    Field(
        description="Former time or log position as of which to answer. Requires a snapshot that "
        "`mnemon rebuild --until` has made; without one, the error is `not_found`. Default: now."
    ),
]


class AskError(Contract):
    """The error of a request that has no result."""

    # The schema of a verb's reply leaves out `unknown_verb` and `moved`, because no verb answers with them.
    code: VerbErrorCode | SkipJsonSchema[Literal["unknown_verb", "moved"]] = Field(
        description="Error code, for programs."
    )
    message: Text = Field(
        description="Human-readable message; for an invalid body, it names the invalid field."
    )
    retryable: bool = Field(description="True if the same request can succeed later.")
    field: Text | None = Field(
        default=None,
        description="First invalid field of the request; `body` if the error concerns no single field, such "
        "as a body that is not JSON. Absent if no field is invalid, and in replies of older versions.",
    )
    moved_to: Text | None = Field(
        default=None,
        description="With the code `moved`: address of the NATS servers of the deployment that the tenant "
        "has moved to.",
    )
    limit: Text | None = Field(
        default=None,
        description="If the request exceeds a limit of the settings: name of the setting, such as "
        "`rates.requests_per_user`.",
    )


class Reply(Contract):
    """Fields of every reply. Either `error` or the fields of the verb are set."""

    seen_seq: LogPosition = Field(
        default=0,
        description="Log position up to which the reply reflects the user's events.",
    )
    error: AskError | None = Field(default=None, description="Error, if there is no result.")
    warnings: tuple[Text, ...] | None = Field(
        default=None,
        description="Warnings, for example about a field of the request that the verb does not know and "
        "ignores.",
    )


class ErrorReply(Reply):
    """Reply to a request that has no result; `error` has the reason."""

    error: AskError


class RenderedMessage(Contract):
    """A message in the form that a model is shown."""

    role: Role = Field(description="Role of the speaker.")
    content: Text = Field(description="Text to show to the model.")
    name: Text | None = Field(default=None, description="Name of the speaker.")


class StoredMessage(RenderedMessage):
    """A stored message, with its log position and event id."""

    seq: LogPosition = Field(description="Log position of the event.")
    id: Identifier = Field(description="Event id of the message.")
    sent_at: Moment = Field(description="Time at which the message was sent.")
    task_id: Identifier | None = Field(
        default=None, description="Id of the bot's task that a tool result belongs to."
    )


class ContextV1(Contract):
    """Return the context for a model's next answer."""

    query: Text | None = Field(
        default=None,
        description="User's message, for which memory is searched. Its first 1,200 characters are used; with "
        "`task_id`, at least its first 600, because results of the task take room. Default: the last message "
        "of the user.",
    )
    format: Format = Field(
        default="messages",
        description="`messages`: a system message for each section, and the recent messages with their own "
        "roles. The other formats are one text, with the sections in elements such as `<user_data>` (`xml`), "
        "below titles such as `[USER DATA]` (`blocks`), or below headings (`markdown`).",
    )
    budget: int | None = Field(
        default=None,
        ge=1,
        description="Maximum tokens of the context. Default: the setting `context.budget`, 1,300 "
        "unless changed.",
    )
    min_seq: MinSeq = None
    as_of: AsOf = None
    task_id: Identifier | None = Field(
        default=None, description="Id of the bot's task whose tool results are added to the query."
    )
    conversation: Identifier | None = Field(
        default=None, description="Id of the conversation. Default: the current conversation."
    )
    preceding: Preceding = None
    now: Now = None


class ContextSection(Contract):
    """Tokens and items of one section of the context."""

    tokens: int = Field(
        default=0,
        ge=0,
        description="Number of tokens of the section with its heading, counted without the other sections. "
        "The sum over the sections is not exactly `tokens` of the reply, which counts the whole context at "
        "once, with text outside of the sections, such as the current time.",
    )
    shown: int = Field(default=0, ge=0, description="Number of items that are shown.")
    left_out: int = Field(
        default=0,
        ge=0,
        description="Number of items that are not shown, because the budget or the settings leave no room.",
    )
    cut: bool = Field(default=False, description="True if an item is shown in part.")
    messages_left_out: int | None = Field(
        default=None,
        ge=0,
        description="In `recent`: number of messages of the conversation that are not shown and "
        "that no summary covers. In `summaries`: number of messages that are not shown "
        "and whose summary is left out. The sum of both is `coverage.left_out`.",
    )


class ContextCoverage(Contract):
    """Coverage of the messages of the conversation: each message is in one of the three counts."""

    shown: int = Field(
        default=0,
        ge=0,
        description="Number of messages shown in `recent` or `conversation`, whole or cut. Messages with "
        "neither text nor tool calls count as shown.",
    )
    summarised: int = Field(
        default=0,
        ge=0,
        description="Number of messages that are not shown, but covered by a summary that is shown.",
    )
    left_out: int = Field(
        default=0,
        ge=0,
        description="Number of messages that are neither shown nor covered by a summary that is shown.",
    )


class ContextReplyV1(Reply):
    """A context for a model, within the budget of tokens."""

    conversation: Identifier | None = Field(default=None, description="Id of the conversation that is shown.")
    messages: tuple[RenderedMessage, ...] = Field(
        default=(),
        description="Messages in order, ready for a model; in formats other than `messages`, the whole "
        "context as one message.",
    )
    text: Text | None = Field(
        default=None,
        description="The whole context as one text, in the formats `xml`, `blocks` and `markdown`.",
    )
    tokens: int | None = Field(
        default=None,
        ge=0,
        description="Number of tokens of the whole context; at most the budget.",
    )
    sections: dict[Text, ContextSection] = Field(
        default={},
        description="Tokens and items of each section, by name: `facts`, `summaries`, `user_data`, "
        "`working`, `recent`, `relevant`, `documents` and `conversation`. A section in which nothing is "
        "shown or left out is absent.",
    )
    coverage: ContextCoverage | None = Field(
        default=None,
        description="Coverage of the messages of the conversation; absent if the messages could not "
        "be counted.",
    )
    profile: JsonObject = Field(default={}, description="The user's profile: names with values.")
    degraded: tuple[Text, ...] = Field(
        default=(),
        description="Names of the sections, as in `sections`, that are missing or incomplete because a "
        "server failed or did not answer in time, or because `retrieve` has no vector index or a snapshot "
        "no vectors. Also `embedding`: the query could not be embedded, so the search used words only; and "
        "`reranker`: the configured reranker did not order the hits.",
    )
    metadata: JsonObject = Field(
        default={},
        description="Metadata to publish with each message that contains text of this context, so "
        "that known facts are not extracted again.",
    )


class HistoryV1(Contract):
    """Return the last messages of a conversation, or with `before` the last ones before a log position."""

    limit: int = Field(
        default=30,
        ge=1,
        le=MAX_HISTORY,
        description="Maximum number of entries of `messages`, those of the role `system` included.",
    )
    conversation: Identifier | None = Field(
        default=None, description="Id of the conversation. Default: the current conversation."
    )
    before: LogPosition | None = Field(
        default=None,
        description="Return only messages before this log position. To read a conversation page by page, "
        "newest first, give the `seq` of the first message of the previous reply, and the `conversation` of "
        "that reply, until a reply has no messages. Default: no restriction.",
    )
    min_seq: MinSeq = None
    as_of: AsOf = None


class HistoryReplyV1(Reply):
    """Messages of the conversation, oldest first."""

    conversation: Identifier | None = Field(default=None, description="Id of the conversation that is shown.")
    messages: tuple[StoredMessage, ...] = Field(
        default=(),
        description="Messages, oldest first. After an answer that called tools, an entry of the role "
        "`system` with the same `seq` names these tools. The first entry is always a message.",
    )
    left_out: int | None = Field(
        default=None,
        ge=1,
        description="Number of older entries within `limit` that are left out because the reply has no room "
        "for them: a reply is limited in bytes by `max_payload` of the NATS server. Absent if none are left "
        "out, and in replies of older versions, which refuse the request instead.",
    )

    def may_have_older_messages(self, limit: int) -> bool:
        """Return whether messages older than those of this reply to a request with `limit` may exist.

        If the limit has room for an entry with tools but not for its message, both are left out: the reply
        then has one entry less than requested.
        """
        return self.left_out is not None or len(self.messages) >= limit - 1


class ProfileV1(Contract):
    """Return the user's data, or set fields of it."""

    fields: JsonObject | None = Field(
        default=None, description="Fields to set; the value `null` removes a field."
    )
    min_seq: MinSeq = None


class ProfileReplyV1(Reply):
    """User's data, after the change if the request sets fields."""

    profile: JsonObject = Field(default={}, description="Fields with their values.")


class StatusV1(Contract):
    """Return counts of the user's messages, the last log position, rejected events and an event's outcome."""

    min_seq: MinSeq = None
    event_seq: LogPosition | None = Field(
        default=None,
        description="Return the outcome of the user's event at this log position, which a publish returned. "
        "The request waits for the event as for `min_seq`. A position beyond the end of the log, or with an "
        "event whose subject does not name the user, is an error; 0 returns no outcome.",
    )


class RejectedEvent(Contract):
    """An event that was rejected: the event is a dead letter and changed nothing."""

    seq: LogPosition = Field(description="Log position of the event.")
    event: Text = Field(description="Part of the subject after tenant and user, such as `-.message.v1`.")
    reason: Text = Field(description="Reason as a code, such as `invalid_body`.")
    error: Text = Field(description="Human-readable reason; for an invalid body, it names the invalid field.")
    at: Moment = Field(description="Time at which the event was rejected.")


class EventOutcome(Contract):
    """Outcome of an event: applied, rejected or waiting."""

    seq: LogPosition = Field(description="Log position of the event.")
    outcome: Literal["applied", "rejected", "waiting"] = Field(
        description="`applied`: the event was handled; a later event may have removed its effect, or the "
        "event was rejected and its dead letter was removed. `rejected`: the event is a dead letter. "
        "`waiting`: the event is in the log and not handled yet."
    )
    rejected: RejectedEvent | None = Field(
        default=None, description="Reason for the rejection, if the event was rejected."
    )


class StatusReplyV1(Reply):
    """Counts of stored messages, the latest rejected events, and the outcome of the requested event."""

    conversation: Identifier | None = Field(default=None, description="Id of the current conversation.")
    conversations: int = Field(default=0, description="Number of conversations with messages.")
    messages: int = Field(default=0, description="Number of messages in all conversations.")
    first_at: Moment | None = Field(default=None, description="Earliest time of a stored message.")
    last_at: Moment | None = Field(default=None, description="Latest time of a stored message.")
    log_seq: LogPosition = Field(
        default=0, description="Last position of the log; events after `seen_seq` are not reflected yet."
    )
    rejected: tuple[RejectedEvent, ...] = Field(
        default=(),
        description="The user's latest events that `persist` rejected, newest first; at most ten.",
    )
    outcome: EventOutcome | None = Field(
        default=None,
        description="Outcome of the event at `event_seq`; absent if the request has no `event_seq` above 0.",
    )
