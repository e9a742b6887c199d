"""Run-time settings, which the key-value bucket `settings` keeps and every process follows."""

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


def build_settings_key(tenant: str | None) -> str:
    """Return the key of a tenant's settings; for None, the key of the settings for every tenant.

    Raises:
        mnemon_contracts.subjects.InvalidId: the tenant is not a valid id.
    """
    return DEFAULT_KEY if tenant is None else _TENANT_KEY + encode_token(tenant)


def parse_settings_tenant(key: str) -> str | None:
    """Return the tenant whose settings have this key; None for any other key.

    Raises:
        InvalidSubject: the key does not have the spelling that `build_settings_key` gives.
    """
    return decode_token(key.removeprefix(_TENANT_KEY)) if key.startswith(_TENANT_KEY) else None


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"{name!r} is not a time zone; use a name such as Europe/Moscow") from error
    return name


def _check_template(template: str) -> str:
    expected = "may contain {time} and {text}, and no other fields in braces"
    try:
        pieces = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(expected) from error
    fields = {field for _, field, _, _ in pieces if field is not None}
    # A width such as {text:>999999999} would fill the memory of a process that renders a message.
    if not fields <= {"time", "text"} or any(width or conversion for _, _, width, conversion in pieces):
        raise ValueError(expected)
    if "text" not in fields:
        raise ValueError("must contain {text}")
    return template


class TimeStamps(Settings):
    """Timestamps on user messages that a model is shown."""

    enabled: bool = Field(
        default=True, description="Put a timestamp on messages of the role `user` in `context`."
    )
    template: Annotated[Text, AfterValidator(_check_template)] = Field(
        default="[{time}] {text}",
        description="Text of a stamped message: `{time}` is the time of the message, `{text}` its content.",
    )
    time_format: Text = Field(
        default="%Y-%m-%d %H:%M", description="Format of the time, in the notation of Python's `strftime`."
    )
    zone: Annotated[Text, AfterValidator(_check_zone)] = Field(
        default="UTC",
        description="Time zone, such as `Europe/Moscow`, of timestamps, of the current time in a context, "
        "and of the days that a query or a fact names.",
    )


class Policy(Settings):
    """Rules on which facts may be kept."""

    min_length: int = Field(
        default=12,
        ge=1,
        le=10_000,
        description="Minimum length of a fact, in characters; a Chinese, Japanese or Korean character "
        "counts as two.",
    )
    max_length: int = Field(
        default=240,
        ge=1,
        le=10_000,
        description="Maximum length of a fact, in characters; not below `min_length`.",
    )
    refuse_questions: bool = Field(default=True, description="Reject facts that are questions.")
    refuse_commands: bool = Field(
        default=True, description="Reject facts that are commands to a program or a model."
    )
    refuse_secrets: bool = Field(
        default=True,
        description="Reject facts with passwords, PINs, one-time codes, keys, tokens, seed phrases, answers "
        "to security questions or card numbers.",
    )
    refuse_bank_accounts: bool = Field(
        default=True,
        description="Reject facts with IBANs or other account numbers, if `refuse_secrets` is on.",
    )
    refuse_documents: bool = Field(
        default=True,
        description="Reject facts with numbers of passports, national, tax or insurance ids, or driving "
        "licences, if `refuse_secrets` is on.",
    )

    @field_validator("max_length")
    @classmethod
    def _check_max_length(cls, value: int, info: ValidationInfo) -> int:
        return check_minimum(value, "min_length", info)


class Dedupe(Settings):
    """Rules for facts that repeat or update other facts.

    The thresholds decide pairs that alignment leaves undecided, and updates if `require_similarity` is on.
    """

    update_threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Similarity above which a newer fact replaces an older fact, if alignment "
        "leaves the pair undecided. Default: the threshold of the embedding model.",
    )
    duplicate_threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Similarity above which two facts say the same, if alignment leaves the pair "
        "undecided; not below `update_threshold`. Default: the threshold of the "
        "embedding model.",
    )
    require_similarity: bool = Field(
        default=False,
        description="Require a similarity above the lower of `update_threshold` and `duplicate_threshold` "
        "for an update that alignment finds. If off, or without an embedding model, such an update "
        "needs no similarity.",
    )
    on_duplicate: Literal["rewrite", "confirm"] = Field(
        default="rewrite",
        description="Text that is kept when a fact is repeated in other words: `rewrite` keeps the newer "
        "text, or the older text if it says all that the newer text says; `confirm` keeps the older text. "
        "If the newer fact has no `expires_at` and the older fact has one, both values keep the newer text. "
        "For facts that a language model calls the same, `rewrite` always keeps the newer text, and "
        "`confirm` the older text.",
    )

    @field_validator("duplicate_threshold")
    @classmethod
    def _check_thresholds(cls, value: float | None, info: ValidationInfo) -> float | None:
        return value if value is None else check_minimum(value, "update_threshold", info)


class FactLimits(Settings):
    """Maximum number of facts of a user, in total and by tier, and days until `working` facts expire.

    Beyond the limit of a tier, facts of low importance are evicted first, and facts of high importance last.
    Beyond `per_user`, the tier `archive` loses facts first, then `working`, then `profile`; facts of high
    importance are evicted only after all others. A proposal of lower than high importance is rejected if a
    fact of high importance would have to be evicted for it.
    """

    per_user: int = Field(default=500, ge=1, le=100_000, description="Maximum number of facts of one user.")
    profile: int = Field(
        default=50,
        ge=1,
        le=100_000,
        description="Maximum number of facts of one user in the tier `profile`; not above `per_user`.",
    )
    working: int = Field(
        default=50,
        ge=1,
        le=100_000,
        description="Maximum number of facts of one user in the tier `working`; not above `per_user`.",
    )
    working_days: int | None = Field(
        default=None,
        ge=1,
        le=3650,
        description="Days until a fact of the tier `working` expires, if neither its proposal nor its text "
        "has an end; `null`: such a fact does not expire.",
    )

    @field_validator("profile", "working")
    @classmethod
    def _check_tier_limit(cls, value: int, info: ValidationInfo) -> int:
        return check_maximum(value, "per_user", info)


class DocumentLimits(Settings):
    """Maximum size of a document."""

    characters: int = Field(
        default=1_000_000,
        ge=1_000,
        le=1_000_000,
        description="Maximum length of one document, in characters; the verb `document` refuses a "
        "longer text.",
    )


class Retention(Settings):
    """Days after which finished work is removed. The removal cannot be undone."""

    window_days: int | None = Field(
        default=30,
        ge=1,
        le=36_500,
        description="Days until the row of an answered window is removed, counted from the creation of the "
        "row. The log keeps the answer, and the newest row of each conversation stays, so nothing is lost. "
        "`null`: rows stay.",
    )
    model_call_days: int | None = Field(
        default=None,
        ge=31,
        le=36_500,
        description="Days until the record of a call of a language model is removed, also from the log. "
        "After that, `mnemon usage` does not count the call. `null`: records stay.",
    )
    dead_letter_days: int | None = Field(
        default=None,
        ge=7,
        le=36_500,
        description="Days until a dead letter is removed, together with its event if no projection has the "
        "event. A removed dead letter cannot be redriven. `null`: dead letters stay.",
    )


class Rates(Settings):
    """Limits on requests, and the rate of events for a warning. A refused request can be repeated later."""

    requests_per_second: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="Maximum number of requests per second that each `retrieve` process answers for "
        "a tenant. Default: no limit.",
    )
    requests_per_user: int = Field(
        default=32,
        ge=1,
        le=512,
        description="Maximum number of unanswered requests of one user in a `retrieve` process; further "
        "requests are refused. At most eight of the user's requests are in work at the same time.",
    )
    events_per_second: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="Chat events per second of a tenant above which `mnemon status` warns; no event is "
        "refused. Default: no warning.",
    )


class Retrieval(Settings):
    """Hits of `search` and `context`: number, score, decay with age, and reranking."""

    limit: int = Field(
        default=5,
        ge=1,
        le=100,
        description="Maximum number of hits of a search, if the request sets no `limit`; also the maximum "
        "number of facts, and of chunks of documents, that `context` finds for the query.",
    )
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Minimum score of a hit, if the request sets no `threshold`. Default: no minimum, but "
        "messages that probably do not answer a question are left out, and other items with less than a "
        "quarter of the best score of their scope, unless a reranker scored them; 0 keeps them.",
    )
    decay_days: float = Field(
        default=60,
        gt=0,
        le=100_000,
        description="Age, in days since the last change, at which an archived fact of less than high "
        "importance (below 8) has 1/e of its score, if `decay` is on.",
    )
    decay: bool = Field(
        default=True,
        description="Lower the score of archived facts of less than high importance (below 8) as they age.",
    )
    reranker: Text | None = Field(
        default=None,
        description="Model at `MNEMON_RERANKER_URL` that reranks the best hits. It reads the query and "
        "the texts of these hits. Default: no reranking by a model. Example: `BAAI/bge-reranker-v2-m3`.",
    )
    reranker_timeout_ms: int = Field(
        default=300,
        ge=10,
        le=2000,
        description="Maximum time that a search waits for the reranker, in milliseconds; after it, the "
        "order of the hits stays.",
    )
    reranker_candidates: int = Field(
        default=20,
        ge=1,
        le=100,
        description="Maximum number of candidates that the reranker orders: the best ones of a search.",
    )


class Sections(Settings):
    """Maximum tokens of each section of `context`.

    `facts`, `working` and `recent`, in this order, also take the tokens that other sections leave unused.
    """

    facts: int = Field(
        default=250,
        ge=0,
        le=100_000,
        description="Tokens for facts of the tier `profile`, besides those that other sections leave unused; "
        "0: no such facts.",
    )
    working: int = Field(
        default=150,
        ge=0,
        le=100_000,
        description="Tokens for facts of the tier `working`, besides those that other sections leave unused; "
        "0: no such facts.",
    )
    user_data: int = Field(
        default=150,
        ge=0,
        le=100_000,
        description="Maximum tokens of the user's data, the fields that `mnemon profile` sets.",
    )
    summaries: int = Field(
        default=400, ge=0, le=100_000, description="Maximum tokens of summaries of earlier messages."
    )
    recent: int = Field(
        default=1000,
        ge=0,
        le=100_000,
        description="Tokens for the newest messages, besides those that other sections leave unused; 0: no "
        "newest messages.",
    )
    relevant: int = Field(
        default=500, ge=0, le=100_000, description="Maximum tokens of facts found for the query."
    )
    documents: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="Maximum tokens of chunks of documents found for the query; 0: no chunks.",
    )
    conversation: int = Field(
        default=300, ge=0, le=100_000, description="Maximum tokens of earlier messages found for the query."
    )


class Characters(Settings):
    """Maximum lengths, in characters, of the sections of facts in `context`, besides their maximum tokens.

    Default: no limit.
    """

    facts: int | None = Field(
        default=None,
        ge=1,
        le=400_000,
        description="Maximum total length of the facts of the tier `profile` in a context, in characters; "
        "the most important facts come first. Default: no limit.",
    )
    working: int | None = Field(
        default=None,
        ge=1,
        le=400_000,
        description="Maximum total length of the facts of the tier `working` in a context, in characters. "
        "Default: no limit.",
    )
    relevant: int | None = Field(
        default=None,
        ge=1,
        le=400_000,
        description="Maximum total length of the facts found for the query of a context, in characters; the "
        "best facts come first. Default: no limit.",
    )


class ContextSettings(Settings):
    """Contents and format of a context."""

    budget: int = Field(
        default=1300,
        ge=1,
        le=1_000_000,
        description="Maximum tokens of the whole context, if the request sets no `budget`.",
    )
    sections: Sections = Field(default=Sections(), description="Maximum tokens of each section.")
    characters: Characters = Field(
        default=Characters(), description="Maximum length of each section of facts, in characters."
    )
    summaries: int = Field(
        default=3,
        ge=0,
        le=100,
        description="Maximum number of summaries that `context` shows, the newest ones.",
    )
    recent_limit: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Maximum number of newest messages that `context` shows, even if no summary covers "
        "older messages. Default: as many as the budget allows.",
    )
    key_facts: Literal["all", "high"] = Field(
        default="all",
        description="Facts of the tier `profile` that every context shows: `all`, or only facts of "
        "`high` importance (8 and above). The other facts of this tier are shown if the query finds them.",
    )
    conversation_hits: int = Field(
        default=3,
        ge=0,
        le=100,
        description="Maximum number of earlier messages, found for the query, that `context` shows.",
    )
    language: Literal["auto", "en", "ru"] = Field(
        default="auto",
        description="Language of the fixed words, such as headings and `until`; `auto`: Russian if most of "
        "the user's newest messages are in Cyrillic, otherwise English. If the messages have few letters, "
        "facts and summaries count too.",
    )
    fact_types: bool = Field(
        default=True,
        description="Show the kind of each fact, such as `- [preference] Likes tea`, and a sentence such as "
        "`No saved information.` if a context has only messages. If off, only the format `markdown` shows "
        "both.",
    )
    current_time: bool = Field(
        default=False,
        description="End the context with the current date and time, in the format of "
        "`time_stamps`. The time changes every minute, so a provider's prefix cache "
        "does not serve the part of a prompt after the time.",
    )


class Embedding(Settings):
    """Provider and name of the embedding model.

    After a change of the model, stop the consumers and run `mnemon reindex`: `index` then makes new vectors.
    """

    provider: Literal["wordllama", "openai", "fastembed", "none"] = Field(
        default="wordllama", description="Provider of the embedding model; `none`: searches use words only."
    )
    model: Text | None = Field(
        default=None,
        description="Model of the provider. Default: the provider's default model. "
        "Example: `text-embedding-3-small`.",
    )


class SettingsV1(Settings):
    """All run-time settings. Processes follow changes at once, but read `embedding` only when they start."""

    recent_messages: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="Number of newest messages that `context` shows even if a summary covers them. `context` "
        "also shows messages that no summary covers. The budget and `context.recent_limit` limit the "
        "messages of both kinds.",
    )
    time_stamps: TimeStamps = Field(
        default=TimeStamps(),
        description="Timestamps on users' messages, and the time zone of these times and of the days "
        "that texts name.",
    )
    wait_for_log_ms: int = Field(
        default=500,
        ge=0,
        le=10_000,
        description="Maximum time that a request with `min_seq` waits for the projections, in "
        "milliseconds; after it, the reply may reflect a lower position.",
    )
    discard_facts: bool = Field(
        default=False,
        description="Forget facts that were extracted only from messages that a new conversation "
        "(`/new`) discards; if off, these facts stay.",
    )
    policy: Policy = Field(default=Policy(), description="Rules on which facts may be kept.")
    dedupe: Dedupe = Field(
        default=Dedupe(),
        description="Rules for a fact that repeats or updates another: similarity thresholds, and which of "
        "the two texts is kept.",
    )
    limits: FactLimits = Field(
        default=FactLimits(),
        description="Maximum number of facts of a user, and days until working facts expire.",
    )
    documents: DocumentLimits = Field(default=DocumentLimits(), description="Maximum size of a document.")
    retention: Retention = Field(
        default=Retention(), description="Days after which finished work is removed."
    )
    rates: Rates = Field(
        default=Rates(),
        description="Limits on the requests of a tenant and of a user, and the rate of events above which "
        "`mnemon status` warns.",
    )
    retrieval: Retrieval = Field(
        default=Retrieval(), description="Hits of a search: number, score, decay with age, and reranking."
    )
    context: ContextSettings = Field(
        default=ContextSettings(), description="Contents and format of a context."
    )
    embedding: Embedding = Field(default=Embedding(), description="Provider and name of the embedding model.")
    compaction: Compaction = Field(
        default=Compaction(), description="Summaries of messages: their size, and the model that writes them."
    )
    extraction: Extraction = Field(
        default=Extraction(),
        description="Extraction of facts from messages: its schedule, and the model that reads them.",
    )
    spending: Spending = Field(
        default=Spending(), description="Prices of language models, and the daily budget of a tenant."
    )
