"""Run-time settings: kept in the key-value bucket `settings`, watched by every process."""

from string import Formatter
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from mnemon_contracts.base import Text
from mnemon_contracts.settings.base import Settings, check_maximum, check_minimum
from mnemon_contracts.settings.language_models import Compaction, Extraction, Spending
from mnemon_contracts.subjects import decode_token, encode_token

DEFAULT_KEY = "default"
"""The key of the settings that hold for every tenant."""

_TENANT_KEY = "tenant."


def settings_key(tenant: str | None) -> str:
    """Return the key of a tenant's settings, or of the default.

    Raises:
        mnemon_contracts.subjects.InvalidId: the tenant is no valid id.
    """
    return DEFAULT_KEY if tenant is None else _TENANT_KEY + encode_token(tenant)


def tenant_of(key: str) -> str | None:
    """Return the tenant whose settings have this key; None for any other key.

    Raises:
        InvalidSubject: the tenant is spelled in another way than `settings_key` has it.
    """
    return decode_token(key.removeprefix(_TENANT_KEY)) if key.startswith(_TENANT_KEY) else None


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"{name!r} is not a time zone; expected a name such as Europe/Moscow") from error
    return name


def _usable_template(template: str) -> str:
    expected = "may hold {time} and {text}, and no other braces"
    try:
        pieces = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(expected) from error
    fields = {field for _, field, _, _ in pieces if field is not None}
    # A width such as {text:>999999999} would fill the memory of a process that renders a message.
    if not fields <= {"time", "text"} or any(width or conversion for _, _, width, conversion in pieces):
        raise ValueError(expected)
    if "text" not in fields:
        raise ValueError("must hold {text}")
    return template


class TimeStamps(Settings):
    """Time stamps on user messages that a model is shown."""

    enabled: bool = Field(
        default=True, description="Put a time stamp on messages of the role `user` in `context`."
    )
    template: Annotated[Text, AfterValidator(_usable_template)] = Field(
        default="[{time}] {text}",
        description="Text of a stamped message: `{time}` is the time of the message, `{text}` its content.",
    )
    time_format: Text = Field(default="%Y-%m-%d %H:%M", description="Format of the time, as for strftime.")
    zone: Annotated[Text, AfterValidator(_known_zone)] = Field(
        default="UTC", description="Time zone of the time stamp, such as `Europe/Moscow`."
    )


class Policy(Settings):
    """Which proposed facts may be kept."""

    min_length: int = Field(
        default=12, ge=1, le=10_000, description="Length of a fact at least, in characters."
    )
    max_length: int = Field(
        default=240,
        ge=1,
        le=10_000,
        description="Length of a fact at most, in characters; not below `min_length`.",
    )
    refuse_questions: bool = Field(default=True, description="Refuse questions.")
    refuse_commands: bool = Field(default=True, description="Refuse commands to a program or a model.")
    refuse_secrets: bool = Field(
        default=True,
        description="Refuse passwords, PINs, one-time codes, keys, tokens, seed phrases and card numbers.",
    )
    refuse_bank_accounts: bool = Field(
        default=True,
        description="Refuse IBANs and other account numbers, if `refuse_secrets` is on.",
    )
    refuse_documents: bool = Field(
        default=True,
        description="Refuse numbers of passports, national ids and licences, if `refuse_secrets` is on.",
    )

    @field_validator("max_length")
    @classmethod
    def _room(cls, value: int, info: ValidationInfo) -> int:
        return check_minimum(value, "min_length", info)


class Dedupe(Settings):
    """When two facts say the same. Thresholds decide pairs that alignment leaves undecided; their default is
    the embedding model's own.
    """

    update_threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Similarity above which a newer fact replaces an older one, if alignment leaves "
        "the pair undecided.",
    )
    duplicate_threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Similarity above which two facts of such a pair say the same; not below "
        "`update_threshold`.",
    )
    require_similarity: bool = Field(
        default=False,
        description="Let a new value replace the old one only if the similarity of both facts is also "
        "above `update_threshold`; off: alignment alone decides. Without an embedding "
        "model alignment always decides.",
    )
    on_duplicate: Literal["rewrite", "confirm"] = Field(
        default="rewrite",
        description="Text of a fact that is said again in other words: `rewrite` takes the newer text, "
        "`confirm` keeps the older one.",
    )

    @field_validator("duplicate_threshold")
    @classmethod
    def _in_order(cls, value: float | None, info: ValidationInfo) -> float | None:
        return value if value is None else check_minimum(value, "update_threshold", info)


class FactLimits(Settings):
    """How many facts a user has at most. Beyond the limit, the oldest of the least important facts are
    evicted.
    """

    per_user: int = Field(default=500, ge=1, le=100_000, description="Facts of one user, at most.")
    profile: int = Field(
        default=50,
        ge=1,
        le=100_000,
        description="Facts of one user in the tier `profile`, at most; not above `per_user`.",
    )
    working: int = Field(
        default=50,
        ge=1,
        le=100_000,
        description="Facts of one user in the tier `working`, at most; not above `per_user`.",
    )
    working_days: int | None = Field(
        default=None,
        ge=1,
        le=3650,
        description="Days until a fact of the tier `working` without a date expires; `null`: never.",
    )

    @field_validator("profile", "working")
    @classmethod
    def _part_of_all(cls, value: int, info: ValidationInfo) -> int:
        return check_maximum(value, "per_user", info)


class DocumentLimits(Settings):
    """How large a document may be."""

    characters: int = Field(
        default=1_000_000,
        ge=1_000,
        le=1_000_000,
        description="Length of one document at most, in characters; the verb `document` refuses a "
        "longer text.",
    )


class Rates(Settings):
    """Rates of requests and events. A refused request may be sent again later."""

    requests_per_second: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="Requests per second that each `retrieve` process answers for a tenant; left out: "
        "no limit.",
    )
    requests_per_user: int = Field(
        default=32,
        ge=1,
        le=512,
        description="Requests of one user that a `retrieve` process handles at the same time.",
    )
    events_per_second: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="Events per second of a tenant above which `mnemon status` warns; no event is refused.",
    )


class Retrieval(Settings):
    """Hits of `search`, and of `context`, which uses it."""

    limit: int = Field(default=5, ge=1, le=100, description="Hits at most, if the request sets no `limit`.")
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Leave out hits with a lower score; left out: the embedding model's own threshold.",
    )
    decay_days: float = Field(
        default=60,
        gt=0,
        le=100_000,
        description="Days after which the score of an archived fact has decayed to 1/e.",
    )
    decay: bool = Field(default=True, description="Lower the score of archived facts as they age.")


class Sections(Settings):
    """Tokens of each section of `context`, at most."""

    facts: int = Field(default=250, ge=0, le=100_000, description="Tokens of key facts: the tier `profile`.")
    working: int = Field(
        default=150, ge=0, le=100_000, description="Tokens of facts that hold for now: the tier `working`."
    )
    user_data: int = Field(default=150, ge=0, le=100_000, description="Tokens of the user's data.")
    summaries: int = Field(
        default=400, ge=0, le=100_000, description="Tokens of summaries of earlier messages."
    )
    recent: int = Field(default=1000, ge=0, le=100_000, description="Tokens of the newest messages.")
    relevant: int = Field(default=500, ge=0, le=100_000, description="Tokens of facts found for the query.")
    documents: int = Field(
        default=0, ge=0, le=100_000, description="Tokens of document passages found for the query; 0: none."
    )
    conversation: int = Field(
        default=300, ge=0, le=100_000, description="Tokens of earlier messages found for the query."
    )


class Characters(Settings):
    """Characters of the sections of facts in `context`, at most, in addition to their limit in tokens; left
    out: no limit.
    """

    facts: int | None = Field(
        default=None, ge=1, le=400_000, description="Characters of key facts, the most important first."
    )
    working: int | None = Field(
        default=None, ge=1, le=400_000, description="Characters of facts that hold for now."
    )
    relevant: int | None = Field(
        default=None, ge=1, le=400_000, description="Characters of facts found for the query, the best first."
    )


class ContextSettings(Settings):
    """How `context` is assembled."""

    budget: int = Field(
        default=1300,
        ge=1,
        le=1_000_000,
        description="Tokens of the whole context at most, if the request sets no `budget`.",
    )
    sections: Sections = Field(default=Sections(), description="Tokens of each section, at most.")
    characters: Characters = Field(
        default=Characters(), description="Characters of each section of facts, at most."
    )
    summaries: int = Field(default=3, ge=0, le=100, description="Summaries at most, the newest ones.")
    recent_limit: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Newest messages at most, even if no summary covers older ones; left out: as many "
        "as the budget allows.",
    )
    key_facts: Literal["all", "high"] = Field(
        default="all",
        description="Facts of the tier `profile` that every context shows: `all`, or only those of "
        "`high` importance (8 and above). The others are shown if they fit the query.",
    )
    conversation_hits: int = Field(
        default=3, ge=0, le=100, description="Earlier messages at most that are found for the query."
    )
    language: Literal["auto", "en", "ru"] = Field(
        default="auto",
        description="Language of the fixed words, such as headings and `until`; `auto`: Russian if the "
        "user writes Cyrillic, otherwise English.",
    )
    fact_types: bool = Field(
        default=True,
        description="Write facts as lines such as `- [preference] Likes tea` in every format, and a "
        "sentence if nothing is known; off: only in `markdown`.",
    )
    current_time: bool = Field(
        default=False,
        description="End the context with the current date and time, in the format of `time_stamps`. "
        "They change every minute, so a provider's prefix cache does not serve the part of "
        "a prompt after them.",
    )


class Embedding(Settings):
    """Embedding model. Another model needs new vectors: `mnemon reindex`."""

    provider: Literal["wordllama", "openai", "fastembed", "none"] = Field(
        default="wordllama", description="Provider of the embedding model; `none`: search by words only."
    )
    model: Text | None = Field(
        default=None, description="Model of the provider; left out: the provider's default."
    )


class SettingsV1(Settings):
    """All settings that can change while processes run."""

    recent_messages: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="Newest messages that `context` shows at least; it also shows messages that no "
        "summary covers, as far as the budget allows.",
    )
    time_stamps: TimeStamps = Field(default=TimeStamps(), description="Time stamps on users' messages.")
    wait_for_log_ms: int = Field(
        default=500,
        ge=0,
        le=10_000,
        description="Milliseconds that a request with `min_seq` waits for the projections, at most.",
    )
    discard_facts: bool = Field(
        default=False,
        description="When a new conversation discards earlier messages (`/new`), also forget facts "
        "that were learned from these messages only; off: facts stay.",
    )
    policy: Policy = Field(default=Policy(), description="Which proposed facts may be kept.")
    dedupe: Dedupe = Field(default=Dedupe(), description="When two facts say the same.")
    limits: FactLimits = Field(default=FactLimits(), description="How many facts a user has at most.")
    documents: DocumentLimits = Field(default=DocumentLimits(), description="How large a document may be.")
    rates: Rates = Field(default=Rates(), description="Rates of requests and events.")
    retrieval: Retrieval = Field(default=Retrieval(), description="Hits of a search.")
    context: ContextSettings = Field(default=ContextSettings(), description="How a context is assembled.")
    embedding: Embedding = Field(default=Embedding(), description="Embedding model.")
    compaction: Compaction = Field(default=Compaction(), description="When messages become summaries.")
    extraction: Extraction = Field(
        default=Extraction(), description="When facts are extracted from messages."
    )
    spending: Spending = Field(default=Spending(), description="Prices of models, and budgets.")
