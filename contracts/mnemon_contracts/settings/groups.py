"""Run-time settings: kept in the key-value bucket `settings`, watched by every process."""

from string import Formatter
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from mnemon_contracts.base import Text
from mnemon_contracts.settings.base import Settings, at_least, at_most
from mnemon_contracts.settings.models import Compaction, Extraction, Spending
from mnemon_contracts.subjects import decode_token, encode_token

DEFAULT_KEY = "default"
"""The key of the settings that hold for every tenant."""

_TENANT_KEY = "tenant."


def settings_key(tenant: str | None) -> str:
    """The key of the settings of a tenant, or of the default.

    Raises:
        mnemon_contracts.subjects.InvalidId: there can be no such tenant.
    """
    return DEFAULT_KEY if tenant is None else _TENANT_KEY + encode_token(tenant)


def tenant_of(key: str) -> str | None:
    """The tenant whose settings have this key; None where it is another key.

    Raises:
        InvalidSubject: the tenant is spelled in another way than `settings_key` has it.
    """
    return decode_token(key.removeprefix(_TENANT_KEY)) if key.startswith(_TENANT_KEY) else None


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"{name!r} is no time zone; expected a name such as Europe/Moscow") from error
    return name


def _usable_template(template: str) -> str:
    expected = "may hold {time} and {text}, and no other braces"
    try:
        pieces = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(expected) from error
    fields = {field for _, field, _, _ in pieces if field is not None}
    # A width such as {text:>999999999} would fill the memory of who shows a message.
    if not fields <= {"time", "text"} or any(width or conversion for _, _, width, conversion in pieces):
        raise ValueError(expected)
    if "text" not in fields:
        raise ValueError("must hold {text}")
    return template


class TimeStamps(Settings):
    """How a user's message is stamped when it is shown to a model."""

    enabled: bool = Field(default=True, description="Stamp messages of the role `user` in `context`.")
    template: Annotated[Text, AfterValidator(_usable_template)] = Field(
        default="[{time}] {text}", description="`{time}` is when it was said, `{text}` what was said."
    )
    time_format: Text = Field(default="%Y-%m-%d %H:%M", description="As of strftime.")
    zone: Annotated[Text, AfterValidator(_known_zone)] = Field(
        default="UTC", description="Time zone of the stamp, such as Europe/Moscow."
    )


class Policy(Settings):
    """Which proposed facts are kept at all."""

    min_length: int = Field(default=12, ge=1, le=10_000, description="Characters a fact has at least.")
    max_length: int = Field(
        default=240, ge=1, le=10_000, description="Characters a fact has at most; not below `min_length`."
    )
    refuse_questions: bool = Field(default=True, description="Refuse what asks something.")
    refuse_commands: bool = Field(
        default=True, description="Refuse what is an order to a program or a model."
    )
    refuse_secrets: bool = Field(
        default=True,
        description="Refuse passwords, PINs, one-time codes, keys, tokens, seed phrases and card numbers.",
    )
    refuse_bank_accounts: bool = Field(
        default=True,
        description="Refuse IBANs and other account numbers, where `refuse_secrets` is on.",
    )
    refuse_documents: bool = Field(
        default=True,
        description="Refuse numbers of passports, national ids and licences, where `refuse_secrets` is on.",
    )

    @field_validator("max_length")
    @classmethod
    def _room(cls, value: int, info: ValidationInfo) -> int:
        return at_least(value, "min_length", info)


class Dedupe(Settings):
    """When two facts are the same. Thresholds decide what alignment leaves open; default: the model's."""

    update_threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Similarity above which a newer fact replaces one, where alignment leaves it open.",
    )
    duplicate_threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Similarity above which two such facts say the same; not below `update_threshold`.",
    )
    require_similarity: bool = Field(
        default=False,
        description="A new value replaces the old one only where the similarity of both facts is above "
        "`update_threshold`, too; off: where alignment says so. Without an embedding model alignment "
        "decides.",
    )
    on_duplicate: Literal["rewrite", "confirm"] = Field(
        default="rewrite",
        description="Words of a fact that is said again in other words: `rewrite` takes the newer ones, "
        "`confirm` keeps the older ones.",
    )

    @field_validator("duplicate_threshold")
    @classmethod
    def _in_order(cls, value: float | None, info: ValidationInfo) -> float | None:
        return value if value is None else at_least(value, "update_threshold", info)


class FactLimits(Settings):
    """How many facts a user has at most; beyond it the least important of the oldest give way."""

    per_user: int = Field(default=500, ge=1, le=100_000, description="Facts of one user.")
    profile: int = Field(
        default=50, ge=1, le=100_000, description="Of them, in the tier `profile`; not above `per_user`."
    )
    working: int = Field(
        default=50, ge=1, le=100_000, description="Of them, in the tier `working`; not above `per_user`."
    )
    working_days: int | None = Field(
        default=None,
        ge=1,
        le=3650,
        description="Days until a working fact without a date expires; `null`: it does not expire.",
    )

    @field_validator("profile", "working")
    @classmethod
    def _part_of_all(cls, value: int, info: ValidationInfo) -> int:
        return at_most(value, "per_user", info)


class DocumentLimits(Settings):
    """How large a document may be."""

    characters: int = Field(
        default=1_000_000,
        ge=1_000,
        le=1_000_000,
        description="Characters of one document; the verb `document` refuses a longer text.",
    )


class Rates(Settings):
    """How much is asked and said. What is refused is refused for the moment, and may be asked again."""

    requests_per_second: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="Requests that each `retrieve` process answers in a second; left out: any number.",
    )
    requests_per_user: int = Field(
        default=32, ge=1, le=512, description="Requests of one user that it has in hand at the same time."
    )
    events_per_second: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="Events beyond which `mnemon status` names the tenant; none is refused.",
    )


class Retrieval(Settings):
    """What `search` finds, and `context` with it."""

    limit: int = Field(default=5, ge=1, le=100, description="Hits, where the request does not say.")
    threshold: float | None = Field(
        default=None, ge=0, le=1, description="Leave out hits that score below; left out: the model's own."
    )
    decay_days: float = Field(
        default=60, gt=0, le=100_000, description="Days in which an archived fact fades to 1/e in a search."
    )
    decay: bool = Field(default=True, description="Facts fade in a search as they age.")


class Sections(Settings):
    """Tokens of each section of `context`, at most."""

    facts: int = Field(default=250, ge=0, le=100_000, description="Key facts, tier `profile`.")
    working: int = Field(default=150, ge=0, le=100_000, description="What holds for now, tier `working`.")
    user_data: int = Field(default=150, ge=0, le=100_000, description="The user's data.")
    summaries: int = Field(default=400, ge=0, le=100_000, description="Summaries of earlier messages.")
    recent: int = Field(default=1000, ge=0, le=100_000, description="The newest messages.")
    relevant: int = Field(default=500, ge=0, le=100_000, description="Facts found for this turn.")
    documents: int = Field(
        default=0, ge=0, le=100_000, description="Passages of documents found for this turn; 0: none."
    )
    conversation: int = Field(
        default=300, ge=0, le=100_000, description="Earlier messages found for this turn."
    )


class Characters(Settings):
    """Characters of the sections of facts in `context`, at most, besides their tokens; left out: no limit."""

    facts: int | None = Field(
        default=None, ge=1, le=400_000, description="Characters of key facts, the most important first."
    )
    working: int | None = Field(
        default=None, ge=1, le=400_000, description="Characters of what holds for now."
    )
    relevant: int | None = Field(
        default=None, ge=1, le=400_000, description="Characters of facts found for this turn, the best first."
    )


class ContextSettings(Settings):
    """How `context` is put together."""

    budget: int = Field(
        default=1300, ge=1, le=1_000_000, description="Tokens of the whole, where the request does not say."
    )
    sections: Sections = Field(default=Sections(), description="Tokens of each section, at most.")
    characters: Characters = Field(
        default=Characters(), description="Characters of each section of facts, at most."
    )
    summaries: int = Field(default=3, ge=0, le=100, description="Summaries shown at most, the newest.")
    recent_limit: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Newest messages shown at most, also where no summary covers older ones; left out: as "
        "many as the budget has room for.",
    )
    key_facts: Literal["all", "high"] = Field(
        default="all",
        description="Key facts of the tier `profile` that every context shows: `all`, or those of `high` "
        "importance (8 and above) only. The others are shown where they fit the query.",
    )
    conversation_hits: int = Field(
        default=3, ge=0, le=100, description="Earlier messages that are looked up for this turn."
    )
    language: Literal["auto", "en", "ru"] = Field(
        default="auto",
        description="Language of the fixed words, such as headings and `until`; `auto`: Russian where the "
        "user writes Cyrillic, else English.",
    )
    fact_types: bool = Field(
        default=True,
        description="Facts are lines such as `- [preference] Likes tea` in every format, and a sentence says "
        "when nothing is known; off: only in `markdown`.",
    )
    current_time: bool = Field(
        default=False,
        description="End the context with the current date and time, written as `time_stamps` says. They "
        "change every minute: a provider's prefix cache does not serve what follows them in a prompt.",
    )


class Embedding(Settings):
    """What turns text into vectors. Another model needs new vectors: `mnemon reindex`."""

    provider: Literal["wordllama", "openai", "fastembed", "none"] = Field(
        default="wordllama", description="Who embeds; `none`: search by words only."
    )
    model: Text | None = Field(default=None, description="Its model; left out: the provider's usual one.")


class SettingsV1(Settings):
    """Everything that can be set while processes run."""

    recent_messages: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="Newest messages that `context` shows at least; it also shows those that no summary "
        "covers, as far as the budget goes.",
    )
    time_stamps: TimeStamps = Field(default=TimeStamps(), description="Time stamps on users' messages.")
    wait_for_log_ms: int = Field(
        default=500,
        ge=0,
        le=10_000,
        description="How long a request with `min_seq` waits for the projections.",
    )
    discard_facts: bool = Field(
        default=False,
        description="A new conversation that discards what came before (`/new`) also has facts forgotten "
        "that only the discarded messages taught; off: facts stay.",
    )
    policy: Policy = Field(default=Policy(), description="Which proposed facts are kept at all.")
    dedupe: Dedupe = Field(default=Dedupe(), description="When two facts are the same.")
    limits: FactLimits = Field(default=FactLimits(), description="How many facts a user has.")
    documents: DocumentLimits = Field(default=DocumentLimits(), description="How large a document is.")
    rates: Rates = Field(default=Rates(), description="How much is asked and said.")
    retrieval: Retrieval = Field(default=Retrieval(), description="What a search finds.")
    context: ContextSettings = Field(default=ContextSettings(), description="How a context is put together.")
    embedding: Embedding = Field(default=Embedding(), description="What turns text into vectors.")
    compaction: Compaction = Field(default=Compaction(), description="When messages become summaries.")
    extraction: Extraction = Field(default=Extraction(), description="When facts are drawn from messages.")
    spending: Spending = Field(default=Spending(), description="What models cost.")
