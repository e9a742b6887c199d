"""What was derived or decided: `memory.<tenant>.<user>.<thing>.<event>.v<N>`."""

from typing import Literal

from pydantic import Field

from mnemon_contracts.base import Contract, Event, Identifier, JsonObject, Moment, Sequence, Text, is_empty
from mnemon_contracts.fact_pairs import FactPair

Kind = Literal["user_fact", "preference", "event", "conversation_insight", "conversation_summary"]
Tier = Literal["profile", "working", "archive"]
Reason = Literal[
    "too_short",
    "too_long",
    "question",
    "command",
    "secret",
    "duplicate",
    "expired",
    "limit",
    "not_found",
    "superseded",
    "requested",
    "other",
]


class Lineage(Contract):
    """Where something was learned, and by what."""

    sources: tuple[Sequence, ...] = Field(default=(), description="Log positions it was learned from.")
    conversation: Identifier | None = Field(default=None, description="The conversation they belong to.")
    extractor: Text | None = Field(default=None, description="`tool`, `import`, or the extractor's name.")
    prompt_version: Text | None = Field(
        default=None, description="Version of the prompt, where a model was asked."
    )
    model: Text | None = Field(default=None, description="The model that was asked.")
    batch_id: Identifier | None = Field(default=None, description="The batch it came in.")
    answer: Identifier | None = Field(
        default=None,
        description="The answer of a model it came in: facts of one answer do not replace each other.",
    )
    unsupported: tuple[Text, ...] | None = Field(default=None, description="Names and numbers no source has.")


class Decision(Contract):
    """What a dedupe decision was made by."""

    proposal_id: Identifier = Field(description="Event id of the proposal.")
    nearest: Identifier | None = Field(default=None, description="The fact it was compared with last.")
    similarity: float | None = Field(default=None, description="Cosine similarity with it, -1 to 1.")
    duplicate_threshold: float | None = Field(default=None, description="Above it: the same fact.")
    update_threshold: float | None = Field(default=None, description="Above it: the fact is rewritten.")
    embedding_model: Text | None = Field(default=None, description="What the similarity was measured with.")
    relation: Literal["same", "update", "undecided", "different"] | None = Field(
        default=None, description="How the proposal relates to the nearest fact."
    )
    evidence: Text | None = Field(
        default=None, description="Reason of the decision, for a person. Quotes no word of a fact."
    )
    undecided: tuple[Identifier, ...] = Field(
        default=(),
        exclude_if=is_empty,
        description="Facts that may say the same. All are kept; a model may decide later.",
    )


class Fact(Contract):
    """A fact as it stands."""

    text: Text = Field(description="The fact, one sentence.")
    kind: Kind = Field(default="user_fact", description="What sort of fact.")
    tier: Tier = Field(default="archive", description="How it is kept and shown.")
    importance: int = Field(
        default=5, ge=1, le=10, description="1 to 10; 8 and above is high, 3 and below low."
    )
    expires_at: Moment | None = Field(default=None, description="From then on it is not shown.")


class FactProposedV1(Event):
    """A fact that somebody wants kept; dedupe decides."""

    text: Text = Field(description="The fact, one sentence.")
    kind: Kind | None = Field(default=None, description="What sort of fact; classified when absent.")
    tier: Tier | None = Field(default=None, description="How to keep it; classified when absent.")
    importance: int | None = Field(default=None, ge=1, le=10, description="1 to 10.")
    expires_at: Moment | None = Field(default=None, description="From then on it is not to be shown.")
    supersedes: Identifier | None = Field(default=None, description="Id of the fact that it replaces.")
    lineage: Lineage = Field(default=Lineage(), description="Where it was learned.")


class FactEvent(Event):
    """What became of a fact."""

    by: Text | None = Field(default=None, description="`redecide`: decided anew, with other settings.")
    at: Moment | None = Field(
        default=None, description="When, where the log took it later: of a memory that was brought in."
    )


class FactSavedV1(FactEvent):
    """A new fact is kept."""

    fact_id: Identifier = Field(description="Short id, per user: `pf_001`, `wk_014`, `ar_120`.")
    fact: Fact = Field(description="The fact.")
    decision: Decision = Field(description="What it was decided by.")
    lineage: Lineage = Field(default=Lineage(), description="Where it was learned.")


class FactUpdatedV1(FactEvent):
    """A fact is rewritten; its former version is kept."""

    fact_id: Identifier = Field(description="The fact.")
    fact: Fact = Field(description="As it is from now on.")
    former: Fact = Field(description="As it was.")
    decision: Decision | None = Field(
        default=None, description="What it was decided by; none when edited by hand."
    )
    lineage: Lineage = Field(default=Lineage(), description="Where it was learned.")


class FactConfirmedV1(FactEvent):
    """A proposal said what is known already."""

    fact_id: Identifier = Field(description="The fact that it met.")
    decision: Decision = Field(description="What it was decided by.")
    lineage: Lineage = Field(default=Lineage(), description="Where it was said again.")


class FactRejectedV1(Event):
    """A proposal was refused."""

    proposal_id: Identifier = Field(description="Event id of the proposal.")
    reason: Reason = Field(description="The rule that refused it.")
    detail: Text | None = Field(default=None, description="For a person; never repeats a secret.")
    fact_id: Identifier | None = Field(default=None, description="The fact concerned, where there is one.")


class FactForgottenV1(FactEvent):
    """A fact is removed on request, or because another took its place."""

    fact_id: Identifier = Field(description="The fact.")
    reason: Reason = Field(default="requested", description="Why.")


class FactExpiredV1(Event):
    """A fact's date has passed and it is removed."""

    fact_id: Identifier = Field(description="The fact.")
    expires_at: Moment = Field(description="The date that has passed.")


class FactEvictedV1(Event):
    """A fact gave way to others because the user's limit was reached."""

    fact_id: Identifier = Field(description="The fact.")
    tier: Tier = Field(description="The tier that was full.")
    limit: int = Field(ge=0, description="How many facts it may hold.")


class SummaryWrittenV1(Event):
    """A stretch of a conversation was put into a few sentences."""

    summary_id: Identifier = Field(description="The summary.")
    conversation: Identifier = Field(description="The conversation.")
    from_seq: Sequence = Field(description="First log position it covers.")
    to_seq: Sequence = Field(description="Last log position it covers.")
    text: Text = Field(description="The summary.")
    lineage: Lineage = Field(default=Lineage(), description="Who wrote it.")


class SummaryMergedV1(Event):
    """Several summaries became one."""

    summary_id: Identifier = Field(description="The new summary.")
    conversation: Identifier = Field(description="The conversation.")
    merged: tuple[Identifier, ...] = Field(description="The summaries that it stands for.")
    from_seq: Sequence = Field(description="First log position it covers.")
    to_seq: Sequence = Field(description="Last log position it covers.")
    text: Text = Field(description="The summary.")
    lineage: Lineage = Field(default=Lineage(), description="Who wrote it.")


class ProfileSetV1(Event):
    """Fields of the user's data are set; the others stay. `null` removes a field."""

    fields: JsonObject = Field(min_length=1, description="Field by field, any JSON value.")


class TaskAddedV1(Event):
    """A task of the user's is noted."""

    task_id: Identifier = Field(description="The task.")
    text: Text = Field(description="What is to be done.")
    due_at: Moment | None = Field(default=None, description="By when.")


class TaskDoneV1(Event):
    """A task is done."""

    task_id: Identifier = Field(description="The task.")


class TaskRemovedV1(Event):
    """A task is taken off the list."""

    task_id: Identifier = Field(description="The task.")


Origin = Literal["folder", "repository"]


class DocumentAddedV1(Event):
    """A document, or a new version of it, is to be searchable."""

    document_id: Identifier = Field(description="The document.")
    text: Text = Field(description="Its text, whole.")
    title: Text | None = Field(default=None, description="How it is called.")
    source: Text | None = Field(default=None, description="Where it is from: a path or an address.")
    collection: Text | None = Field(default=None, description="What it belongs to, such as a repository.")
    metadata: JsonObject | None = Field(default=None, description="Anything of the sender's own.")
    origin: Origin | None = Field(
        default=None, description="Of a file that was indexed with its folder: the kind of folder."
    )
    digest: Text | None = Field(
        default=None,
        description="SHA-256 of the text in UTF-8, in hexadecimal: two texts are the same or not.",
    )


class DocumentRemovedV1(Event):
    """A document is no longer searchable."""

    document_id: Identifier = Field(description="The document.")


class Window(Contract):
    """A stretch of one conversation: what one extraction reads."""

    tenant: Identifier = Field(description="Whose conversation: the tenant.")
    user: Identifier = Field(description="Whose conversation: the user.")
    conversation: Identifier = Field(description="The conversation.")
    from_seq: Sequence = Field(description="First log position it reads.")
    to_seq: Sequence = Field(description="Last log position it reads.")
    line: int | None = Field(default=None, ge=0, description="The number of its line in the batch.")
    pairs: tuple[FactPair, ...] = Field(
        default=(),
        exclude_if=is_empty,
        description="Undecided facts that it asks about besides, at no further call.",
    )


class BatchIntendedV1(Event):
    """A provider batch is about to be submitted; written before the call, so that a crash is found."""

    batch_id: Identifier = Field(description="Our id of the batch.")
    provider: Text = Field(description="The provider.")
    model: Text = Field(description="The model.")
    purpose: Literal["extract", "compact"] = Field(description="What is asked.")
    windows: tuple[Window, ...] = Field(
        description="What it reads of this user; of others it may read too, who have events of their own."
    )
    usd: float | None = Field(
        default=None,
        ge=0,
        description="What these windows may cost, in US dollars; where the tenant has a budget.",
    )


class BatchSubmittedV1(Event):
    """The provider took the batch."""

    batch_id: Identifier = Field(description="Our id of the batch.")
    provider_batch_id: Text = Field(description="The provider's id.")


class BatchCompletedV1(Event):
    """Every line of the batch is answered."""

    batch_id: Identifier = Field(description="Our id of the batch.")
    answered: int = Field(ge=0, description="Lines with an answer.")
    failed: int = Field(default=0, ge=0, description="Lines without.")


class BatchFailedV1(Event):
    """The provider gave the batch up."""

    batch_id: Identifier = Field(description="Our id of the batch.")
    error: Text = Field(description="What the provider said.")


class WindowAnsweredV1(Event):
    """A model has read a stretch of a conversation for facts; it is not read again."""

    conversation: Identifier = Field(description="The conversation.")
    from_seq: Sequence = Field(description="First log position that was read.")
    to_seq: Sequence = Field(description="Last log position that was read.")
    outcome: Literal["proposed", "nothing", "gone", "dead"] = Field(
        description="Facts were proposed, there were none, the messages are gone, or it cannot be read: "
        "then there is a dead letter."
    )
    proposed: int = Field(default=0, ge=0, description="How many facts were proposed.")
    repaired: bool = Field(default=False, description="The answer was no JSON before it was mended.")
    unusable: int | None = Field(default=None, ge=1, description="Facts of the answer that cannot be used.")
    beyond_limit: int | None = Field(
        default=None, ge=1, description="Usable facts above the limit, kept in a dead letter."
    )
    reason: Text | None = Field(default=None, description="Why it is dead, as its dead letter has it.")
    model: Text | None = Field(
        default=None, description="Provider and model that were asked last, where it is dead."
    )
    attempts: int | None = Field(
        default=None, ge=0, description="Failed attempts before the last one, where it is dead."
    )
    batch_id: Identifier | None = Field(default=None, description="The batch it came in.")


class Tokens(Contract):
    """What a call took."""

    input: int = Field(default=0, ge=0, description="Tokens of the request, cached ones included.")
    cached: int = Field(default=0, ge=0, description="Of them, those the provider had cached.")
    output: int = Field(default=0, ge=0, description="Tokens of the answer.")


class ModelCalledV1(Event):
    """A language model was asked, and what that cost."""

    provider: Text = Field(description="The provider.")
    model: Text = Field(description="The model.")
    purpose: Literal["extract", "compact"] = Field(description="What was asked.")
    tokens: Tokens = Field(description="What it took.")
    batch_id: Identifier | None = Field(default=None, description="The batch it was a line of.")
    usd: float | None = Field(
        default=None, ge=0, description="US dollars, by the prices set then; none where there was no price."
    )
