"""Settings of what language models do: summaries, facts, and what that costs."""

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from mnemon_contracts.base import Text
from mnemon_contracts.settings.base import Settings, at_most

Provider = Literal["offline", "openai", "anthropic", "google"]


class Compaction(Settings):
    """When messages become summaries, and who writes them."""

    enabled: bool = Field(default=True, description="Write summaries.")
    after_messages: int = Field(
        default=16, ge=2, le=10_000, description="More than so many uncompacted ones."
    )
    messages: int = Field(
        default=6,
        ge=1,
        le=10_000,
        description="How many of the oldest become a summary; not above `after_messages`.",
    )
    merge_above: int = Field(default=6, ge=2, le=1000, description="More summaries than that become one.")
    provider: Provider = Field(default="offline", description="Whose model writes them.")
    model: Text | None = Field(default=None, description="Its model; left out: the provider's usual one.")
    instructions: Text | None = Field(
        default=None, description="What the model is told besides; it belongs to the cached beginning."
    )

    @field_validator("messages")
    @classmethod
    def _there(cls, value: int, info: ValidationInfo) -> int:
        return at_most(value, "after_messages", info)


class Extraction(Settings):
    """When facts are drawn from messages, and by whom."""

    enabled: bool = Field(default=True, description="Extract facts in the background.")
    mode: Literal["batch", "online"] = Field(
        default="batch", description="By the provider's batches, or at once."
    )
    interval_hours: float = Field(default=24, gt=0, le=8760, description="Hours between two rounds.")
    provider: Provider = Field(default="offline", description="Whose model is asked.")
    model: Text | None = Field(default=None, description="Its model; left out: the provider's usual one.")
    idle_seconds: float = Field(
        default=60, ge=1, le=86_400, description="A conversation that rests for so long is read."
    )
    after_messages: int = Field(
        default=20, ge=1, le=1000, description="So many new messages are read, resting or not."
    )
    window_messages: int = Field(
        default=40, ge=1, le=1000, description="Messages that one request holds at most."
    )
    pairs: int = Field(
        default=10,
        ge=0,
        le=20,
        description="Pairs of undecided facts that one request asks about at most; 0: none. The provider "
        "`offline` is not asked.",
    )
    pool_seconds: float = Field(
        default=300, ge=0, le=86_400, description="How long a batch waits for more to join it."
    )
    deadline_hours: float = Field(
        default=20,
        gt=0,
        le=8760,
        description="A batch that takes longer is cancelled, and asked for at once.",
    )
    attempts: int = Field(default=3, ge=1, le=100, description="Then a stretch becomes a dead letter.")
    known_facts: int = Field(
        default=50, ge=0, le=1000, description="Facts already known that the request names, at most."
    )
    instructions: Text | None = Field(
        default=None, description="What the model is told besides; it belongs to the cached beginning."
    )


class Price(Settings):
    """What a model costs, in US dollars for a million tokens."""

    model: Text = Field(description="The model, as the provider names it.")
    input: float = Field(ge=0, description="Tokens of the request.")
    output: float = Field(ge=0, description="Tokens of the answer.")
    cached: float | None = Field(
        default=None, ge=0, description="Tokens of the request that were cached; left out: as `input`."
    )
    batch: float = Field(default=0.5, ge=0, le=1, description="The share of it that a batch costs.")


class Spending(Settings):
    """What models cost, and how much a tenant may spend."""

    prices: tuple[Price, ...] = Field(
        default=(), description="Of each model; where there is none, no cost is counted."
    )
    usd_per_day: float | None = Field(
        default=None,
        ge=0,
        description="Once spent, background work waits for the next day (UTC); left out: no limit.",
    )
