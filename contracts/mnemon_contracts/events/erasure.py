"""Erasure of a user or a conversation for good."""

from pydantic import Field

from mnemon_contracts.base import Contract, Event, Identifier, LogPosition

ALL_BEFORE = 2**53 - 1
"""Value of `up_to_seq` for all events before the erasure: the largest integer that JSON carries safely."""


class Span(Contract):
    """A range of log positions."""

    from_seq: LogPosition = Field(description="First position of the range.")
    to_seq: LogPosition = Field(description="First position after the range.")


class UserErasedV1(Event):
    """A user, or one conversation, was erased for good. The event has no content."""

    up_to_seq: LogPosition = Field(
        description="Log position below which the content is erased; 9,007,199,254,740,991: all content "
        "before this event. Events after the erasure stay."
    )
    conversation: Identifier | None = Field(
        default=None, description="Conversation that was erased. Default: all content of the user."
    )
    spans: tuple[Span, ...] = Field(
        default=(),
        description="If one conversation is erased: ranges of the log in which `-` referred to the erased "
        "conversation.",
    )
    discarded_seq: LogPosition | None = Field(
        default=None,
        description="For one conversation: log position of its last `started` event with `discard_previous`.",
    )
    derived: tuple[LogPosition, ...] = Field(
        default=(),
        description="For one conversation: log positions of facts and proposals that were derived "
        "from this conversation alone.",
    )
