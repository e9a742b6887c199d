"""Settings of language models: summaries, extraction of facts, prices and budgets."""

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from mnemon_contracts.base import Text
from mnemon_contracts.settings.base import Settings, check_maximum

Provider = Literal["offline", "openai", "anthropic", "google"]


class Compaction(Settings):
    """Summaries of messages: their size, and the model that writes them."""

    enabled: bool = Field(default=True, description="Write summaries.")
    after_messages: int = Field(
        default=16,
        ge=2,
        le=10_000,
        description="Write a summary when more than this number of a conversation's messages have no "
        "summary. Example: 30.",
    )
    messages: int = Field(
        default=6,
        ge=1,
        le=10_000,
        description="Number of messages that one summary covers: the oldest ones without a summary. At most "
        "`after_messages`. Example: 10.",
    )
    merge_above: int = Field(
        default=6,
        ge=2,
        le=1000,
        description="Merge a conversation's summaries into one when there would be more than this number. "
        "Example: 10.",
    )
    provider: Provider = Field(
        default="offline",
        description="Write summaries with a model of this provider; `offline` writes them with built-in "
        "rules, without a model. Example: `openai`.",
    )
    model: Text | None = Field(
        default=None,
        description="Use this model of the provider. Default: the provider's default model. "
        "Example: `gpt-5-mini`.",
    )
    instructions: Text | None = Field(
        default=None,
        description="Give the model these additional instructions, in the part of the prompt that is cached. "
        "Example: `Write in formal English.`",
    )

    @field_validator("messages")
    @classmethod
    def _check_messages(cls, value: int, info: ValidationInfo) -> int:
        return check_maximum(value, "after_messages", info)


class Extraction(Settings):
    """Extraction of facts from messages: its schedule, and the model that reads them."""

    enabled: bool = Field(default=True, description="Extract facts in the background.")
    mode: Literal["batch", "online"] = Field(
        default="batch",
        description="`batch`: send requests in batches of the provider, later and at a lower price, or each "
        "at once if the provider has no batches; `online`: send each request at once.",
    )
    interval_hours: float = Field(
        default=24,
        gt=0,
        le=8760,
        description="Hours between two scans of a tenant. A scan reads all new messages for facts, also "
        "those of conversations that have reached neither `idle_seconds` nor `after_messages`.",
    )
    provider: Provider = Field(
        default="offline",
        description="Provider of the model that extracts facts; `offline`: built-in rules extract "
        "them, without a model. Example: `openai`.",
    )
    model: Text | None = Field(
        default=None,
        description="Model of the provider. Default: the provider's default model. Example: `gpt-5-mini`.",
    )
    idle_seconds: float = Field(
        default=60,
        ge=1,
        le=86_400,
        description="Seconds without a new message after which a conversation is read for facts.",
    )
    after_messages: int = Field(
        default=20,
        ge=1,
        le=1000,
        description="Number of new messages after which a conversation is read without waiting for "
        "`idle_seconds`. Messages that are not read, such as results of tools, do not count.",
    )
    window_messages: int = Field(
        default=40,
        ge=1,
        le=1000,
        description="Maximum number of messages of one window. Messages that are not read, such as results "
        "of tools, do not count.",
    )
    pairs: int = Field(
        default=10,
        ge=0,
        le=20,
        description="Maximum number of undecided pairs of facts that one request compares; 0: none. "
        "The provider `offline` does not compare pairs.",
    )
    pool_seconds: float = Field(
        default=300,
        ge=0,
        le=86_400,
        description="Seconds that a batch waits for more requests before it is submitted, unless it is full.",
    )
    deadline_hours: float = Field(
        default=20,
        gt=0,
        le=8760,
        description="Hours after its creation at which an unfinished batch is cancelled and its unanswered "
        "requests are sent online. If a batch has requests of several tenants, the lowest value of these "
        "tenants applies.",
    )
    attempts: int = Field(
        default=3,
        ge=1,
        le=100,
        description="Number of failed attempts after which a window is given up and becomes a dead letter. A "
        "window that the model refuses is given up earlier.",
    )
    known_facts: int = Field(
        default=50, ge=0, le=1000, description="Maximum number of known facts that one request lists."
    )
    instructions: Text | None = Field(
        default=None,
        description="Additional instructions for the model, in the part of the prompt that is cached. "
        "Example: `Extract facts about diet and allergies only.`",
    )


class Price(Settings):
    """Price of a model, in US dollars for a million tokens."""

    model: Text = Field(
        description="Name of the model, as the provider spells it. The price also applies to revisions of "
        "the model without a price of their own."
    )
    input: float = Field(ge=0, description="Price of a million input tokens, in US dollars.")
    output: float = Field(ge=0, description="Price of a million output tokens, in US dollars.")
    cached: float | None = Field(
        default=None,
        ge=0,
        description="Price of a million cached input tokens, in US dollars. Default: the value of `input`.",
    )
    batch: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Factor by which the other prices are multiplied for calls in a batch, 0 to 1.",
    )


class Spending(Settings):
    """Prices of language models, and the daily budget of a tenant."""

    prices: tuple[Price, ...] = Field(
        default=(),
        description="Prices of models, such as "
        '`[{"model": "gpt-4.1-mini", "input": 0.4, "output": 1.6}]`. '
        "Calls of a model without a price count as free.",
    )
    usd_per_day: float | None = Field(
        default=None,
        ge=0,
        description="Maximum cost of a tenant's background work per day (UTC), in US dollars; chats of the "
        "proxy do not count. The last call may exceed it; further work waits for the next day. "
        "Default: no limit.",
    )
