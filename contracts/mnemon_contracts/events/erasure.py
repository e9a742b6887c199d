"""What was forgotten for good."""

from pydantic import Field

from mnemon_contracts.base import Contract, Event, Identifier, Sequence

ALL_BEFORE = 2**53 - 1
"""As `up_to_seq`: whatever comes before the event, wherever that is; the largest that JSON carries safely."""


class Span(Contract):
    """Log positions, one after another."""

    from_seq: Sequence = Field(description="The first.")
    to_seq: Sequence = Field(description="The first one beyond.")


class UserErasedV1(Event):
    """A user, or one conversation, was forgotten for good. Holds no content."""

    up_to_seq: Sequence = Field(
        description="What lies below it in the log is gone; nothing that comes after this event."
    )
    conversation: Identifier | None = Field(default=None, description="Only this conversation.")
    spans: tuple[Span, ...] = Field(
        default=(), description="Of one conversation: where it was the current one, which `-` stands for."
    )
    discarded_seq: Sequence | None = Field(
        default=None, description="Of one conversation: its last start that discarded what was said before."
    )
    derived: tuple[Sequence, ...] = Field(
        default=(),
        description="Of one conversation: where facts and proposals are that were drawn from it alone.",
    )
