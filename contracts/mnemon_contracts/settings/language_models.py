"""Settings of what language models do: summaries, facts, and what that costs."""

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from mnemon_contracts.base import Text
from mnemon_contracts.settings.base import Settings, check_maximum

Provider = Literal["offline", "openai", "anthropic", "google"]


class Compaction(Settings):
    """When messages become summaries, and which model writes them."""

    enabled: bool = Field(default=True, description="Write summaries.")
    after_messages: int = Field(
        default=16, ge=2, le=10_000, description="Write a summary when more messages than this have none."
    )
    messages: int = Field(
        default=6,
        ge=1,
        le=10_000,
        description="Oldest messages that become one summary; not above `after_messages`.",
    )
    merge_above: int = Field(
        default=6, ge=2, le=1000, description="Merge summaries into one when there are more than this."
    )
    provider: Provider = Field(
        default="offline",
        description="Provider of the model that writes summaries; `offline`: rules, without a model.",
    )
    model: Text | None = Field(
        default=None, description="Model of the provider; left out: the provider's default."
    )
    instructions: Text | None = Field(
        default=None,
        description="Additional instructions for the model, in the part of the prompt that is cached.",
    )

    @field_validator("messages")
    @classmethod
    def _there(cls, value: int, info: ValidationInfo) -> int:
        return check_maximum(value, "after_messages", info)


class Extraction(Settings):
    """When facts are extracted from messages, and by which model."""

    enabled: bool = Field(default=True, description="Extract facts in the background.")
    mode: Literal["batch", "online"] = Field(
        default="batch",
        description="`batch`: in batches of the provider, later and cheaper; `online`: at once.",
    )
    interval_hours: float = Field(
        default=24, gt=0, le=8760, description="Hours after which new messages are read in any case."
    )
    provider: Provider = Field(
        default="offline",
        description="Provider of the model that extracts facts; `offline`: rules, without a model.",
    )
    model: Text | None = Field(
        default=None, description="Model of the provider; left out: the provider's default."
    )
    idle_seconds: float = Field(
        default=60,
        ge=1,
        le=86_400,
        description="Seconds without a new message after which a conversation is read.",
    )
    after_messages: int = Field(
        default=20,
        ge=1,
        le=1000,
        description="New messages after which a conversation is read without waiting for `idle_seconds`.",
    )
    window_messages: int = Field(default=40, ge=1, le=1000, description="Messages of one request, at most.")
    pairs: int = Field(
        default=10,
        ge=0,
        le=20,
        description="Undecided pairs of facts that one request asks about, at most; 0: none. The "
        "provider `offline` does not compare pairs.",
    )
    pool_seconds: float = Field(
        default=300,
        ge=0,
        le=86_400,
        description="Seconds that a batch waits for more requests before it is submitted.",
    )
    deadline_hours: float = Field(
        default=20,
        gt=0,
        le=8760,
        description="Hours after which an unfinished batch is cancelled and its requests are sent online.",
    )
    attempts: int = Field(
        default=3, ge=1, le=100, description="Attempts after which a window becomes a dead letter."
    )
    known_facts: int = Field(
        default=50, ge=0, le=1000, description="Known facts that one request lists, at most."
    )
    instructions: Text | None = Field(
        default=None,
        description="Additional instructions for the model, in the part of the prompt that is cached.",
    )


class Price(Settings):
    """Price of a model, in US dollars for a million tokens."""

    model: Text = Field(description="Name of the model, as the provider spells it.")
    input: float = Field(ge=0, description="Price of input tokens.")
    output: float = Field(ge=0, description="Price of output tokens.")
    cached: float | None = Field(
        default=None, ge=0, description="Price of cached input tokens; left out: the same as `input`."
    )
    batch: float = Field(
        default=0.5, ge=0, le=1, description="Share of the price that a batch costs, 0 to 1."
    )


class Spending(Settings):
    """Prices of models, and what a tenant may spend."""

    prices: tuple[Price, ...] = Field(
        default=(), description="Prices of models; calls of a model without a price have no cost."
    )
    usd_per_day: float | None = Field(
        default=None,
        ge=0,
        description="US dollars that a tenant may spend in a day; then background work waits for the "
        "next day (UTC); left out: no limit.",
    )
