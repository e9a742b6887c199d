"""Events of derived memory and decisions: `memory.<tenant>.<user>.<thing>.<event>.v<N>`."""

from typing import Annotated, Literal

from pydantic import Field

from mnemon_contracts.base import Contract, Event, Identifier, JsonObject, LogPosition, Moment, Text, is_empty
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

MAX_NAMES = 20
"""Maximum number of names of a fact."""

FactNames = Annotated[
    tuple[Text, ...],
    Field(
        max_length=MAX_NAMES,
        exclude_if=is_empty,
        description="Names of people, places and things that a model extracted with the fact, spelled as in "
        "the text. Search links facts that share a name.",
    ),
]


class Lineage(Contract):
    """Sources of a fact or summary, and the program or model that derived it."""

    sources: tuple[LogPosition, ...] = Field(
        default=(), description="Log positions of the messages that the fact or summary was derived from."
    )
    conversation: Identifier | None = Field(default=None, description="Conversation of the source messages.")
    extractor: Text | None = Field(
        default=None,
        description="Program that derived the text: `tool` for the verbs `save` and `update`, `import` for "
        "`mnemon import`, or a consumer, such as `extract`.",
    )
    prompt_version: Text | None = Field(
        default=None, description="Version of the prompt, if a model or the provider `offline` was asked."
    )
    model: Text | None = Field(
        default=None,
        description="Provider and model that were asked, such as `openai/gpt-5-mini` or `offline/rules`.",
    )
    batch_id: Identifier | None = Field(default=None, description="Id of the batch with the model's answer.")
    answer: Identifier | None = Field(
        default=None,
        description="Id of the model's answer that contained the fact. Facts of one answer do not "
        "replace each other.",
    )
    unsupported: tuple[Text, ...] | None = Field(
        default=None,
        description="Names, numbers and dates in the text that the source messages do not support.",
    )


class Decision(Contract):
    """Reasons for a decision by dedupe."""

    proposal_id: Identifier = Field(description="Id of the `fact.proposed` event.")
    nearest: Identifier | None = Field(
        default=None,
        description="Id of the known fact that matched the proposal best, or that the proposal replaces.",
    )
    similarity: float | None = Field(
        default=None, description="Cosine similarity of the proposal and the `nearest` fact, -1 to 1."
    )
    duplicate_threshold: float | None = Field(
        default=None,
        description="Similarity above which two facts say the same, if alignment leaves the pair undecided.",
    )
    update_threshold: float | None = Field(
        default=None,
        description="Similarity above which a proposal updates a fact, if alignment leaves the pair "
        "undecided.",
    )
    embedding_model: Text | None = Field(
        default=None, description="Embedding model whose vectors gave the similarity."
    )
    relation: Literal["same", "update", "undecided", "different"] | None = Field(
        default=None, description="Relation of the proposal to the `nearest` fact."
    )
    evidence: Text | None = Field(
        default=None, description="Human-readable reason for the decision; never quotes a fact."
    )
    undecided: tuple[Identifier, ...] = Field(
        default=(),
        exclude_if=is_empty,
        description="Ids of facts that may say the same as the proposal. All these facts are kept; "
        "a language model can decide later.",
    )


class Fact(Contract):
    """Content of one version of a fact."""

    text: Text = Field(description="Text of the fact, one sentence.")
    kind: Kind = Field(
        default="user_fact",
        description="Kind of the fact: `user_fact` (who the user is, has or knows), `preference` (what the "
        "user likes, wants or is used to), `event` (something that happens or has happened at a time), "
        "`conversation_insight` (how the user thinks or works) or `conversation_summary` (an outcome of a "
        "conversation).",
    )
    tier: Tier = Field(
        default="archive",
        description="Tier of the fact: `profile` is for every context, `working` for every context until "
        "`expires_at`, and `archive` for contexts whose query finds the fact.",
    )
    importance: int = Field(
        default=5, ge=1, le=10, description="Importance, 1 to 10; 8 and above is high, 3 and below is low."
    )
    expires_at: Moment | None = Field(default=None, description="Time from which the fact is not shown.")
    names: FactNames = ()


class FactProposedV1(Event):
    """A fact is proposed; dedupe decides whether it is kept."""

    text: Text = Field(description="Text of the fact, one sentence.")
    kind: Kind | None = Field(
        default=None, description="Kind of the fact. Default: derived from the words of the text."
    )
    tier: Tier | None = Field(
        default=None,
        description="Tier of the fact. Default: `working` if `expires_at` is given, or if the text names an "
        "end, such as `until Friday`, or a passing state, and nothing lasting, such as an allergy; otherwise "
        "derived from the kind and the words of the text.",
    )
    importance: int | None = Field(
        default=None,
        ge=1,
        le=10,
        description="Importance, 1 to 10. Default: derived from the words of the text.",
    )
    expires_at: Moment | None = Field(
        default=None,
        description="Time from which the fact is not shown. Default: for a working fact, the end that the "
        "text names, else the setting `limits.working_days`; for other facts, never.",
    )
    supersedes: Identifier | None = Field(
        default=None,
        description="Id of the fact that the proposal is meant to replace. `dedupe` keeps that fact if "
        "the proposal is about something else, or only repeats a part of the fact. `dedupe` ignores an id "
        "that no live fact has.",
    )
    names: FactNames = ()
    lineage: Lineage = Field(
        default=Lineage(),
        description="Source messages of the fact, and the program or model that derived it.",
    )


class FactEvent(Event):
    """Base of the events that save, update, confirm, merge or forget a fact."""

    by: Text | None = Field(
        default=None, description="`redecide`, if the decision was repeated with other settings or rules."
    )
    at: Moment | None = Field(
        default=None, description="Time of the original event, if the event was imported."
    )


class FactSavedV1(FactEvent):
    """A new fact is saved."""

    fact_id: Identifier = Field(description="Short id, unique per user: `pf_001`, `wk_014`, `ar_120`.")
    fact: Fact = Field(description="Content of the fact.")
    decision: Decision = Field(description="Reasons for the decision.")
    lineage: Lineage = Field(
        default=Lineage(),
        description="Source messages of the fact, and the program or model that derived it.",
    )


class FactUpdatedV1(FactEvent):
    """A fact is updated; its former version is kept."""

    fact_id: Identifier = Field(description="Id of the fact.")
    fact: Fact = Field(description="The fact after the change.")
    former: Fact = Field(description="The fact before the change.")
    decision: Decision | None = Field(
        default=None,
        description="Reasons for the decision; absent if the content comes from the verb `update` or from a "
        "merge.",
    )
    lineage: Lineage = Field(
        default=Lineage(),
        description="Source messages of the new text, and the program or model that derived it.",
    )


class FactConfirmedV1(FactEvent):
    """A proposal repeated a known fact."""

    fact_id: Identifier = Field(description="Id of the known fact.")
    decision: Decision = Field(description="Reasons for the decision.")
    lineage: Lineage = Field(
        default=Lineage(),
        description="Source messages of the proposal that repeats the fact, and the program or model that "
        "derived it.",
    )


class FactRejectedV1(Event):
    """`dedupe` rejected a proposal."""

    proposal_id: Identifier = Field(description="Id of the `fact.proposed` event.")
    reason: Reason = Field(description="Rule that rejected the proposal.")
    detail: Text | None = Field(default=None, description="Human-readable reason; never contains a secret.")
    fact_id: Identifier | None = Field(
        default=None, description="Id of the known fact that the rejection concerns, if any."
    )


class FactForgottenV1(FactEvent):
    """A fact is removed on request, in favour of another fact, or together with its source messages."""

    fact_id: Identifier = Field(description="Id of the fact.")
    reason: Reason = Field(
        default="requested",
        description="Reason for the removal; `superseded`: another fact replaces the fact. A fact that is "
        "removed together with its source messages has the default.",
    )


class FactExpiredV1(Event):
    """A fact is removed because its `expires_at` has passed."""

    fact_id: Identifier = Field(description="Id of the fact.")
    expires_at: Moment = Field(description="Time at which the fact expired.")


class FactEvictedV1(Event):
    """A fact is evicted because a limit on the user's facts was reached."""

    fact_id: Identifier = Field(description="Id of the fact.")
    tier: Tier = Field(description="Tier of the fact.")
    limit: int = Field(
        ge=0, description="Limit that was reached: the maximum number of facts of the tier, or of the user."
    )


class SummaryWrittenV1(Event):
    """A summary of a range of messages was written."""

    summary_id: Identifier = Field(description="Id of the summary.")
    conversation: Identifier = Field(description="Id of the conversation.")
    from_seq: LogPosition = Field(description="First log position that the summary covers.")
    to_seq: LogPosition = Field(description="Last log position that the summary covers.")
    text: Text = Field(description="Text of the summary.")
    lineage: Lineage = Field(
        default=Lineage(),
        description="Source messages of the summary, and the program or model that wrote it.",
    )


class SummaryMergedV1(Event):
    """Several summaries were merged into one."""

    summary_id: Identifier = Field(description="Id of the new summary.")
    conversation: Identifier = Field(description="Id of the conversation.")
    merged: tuple[Identifier, ...] = Field(description="Ids of the summaries that the new summary replaces.")
    from_seq: LogPosition = Field(description="First log position that the summary covers.")
    to_seq: LogPosition = Field(description="Last log position that the summary covers.")
    text: Text = Field(description="Text of the summary.")
    lineage: Lineage = Field(
        default=Lineage(),
        description="Model and prompt of the summary; `sources` is empty, because `merged` names the former "
        "summaries.",
    )


class ProfileSetV1(Event):
    """Fields of the user's data are set; other fields stay. `null` removes a field."""

    fields: JsonObject = Field(
        min_length=1, description="Fields with their values; a value can be any JSON value."
    )


class TaskAddedV1(Event):
    """A task of the user is added."""

    task_id: Identifier = Field(description="Id of the task.")
    text: Text = Field(description="Text of the task.")
    due_at: Moment | None = Field(default=None, description="Time at which the task is due.")


class TaskDoneV1(Event):
    """A task of the user is marked as done."""

    task_id: Identifier = Field(description="Id of the task.")


class TaskRemovedV1(Event):
    """A task is removed from the user's list."""

    task_id: Identifier = Field(description="Id of the task.")


Origin = Literal["folder", "repository"]


class DocumentAddedV1(Event):
    """A document, or a new version of a document, is added for search."""

    document_id: Identifier = Field(description="Id of the document.")
    text: Text = Field(description="Whole text of the document.")
    title: Text | None = Field(default=None, description="Title of the document.")
    source: Text | None = Field(default=None, description="Source of the document: a path or a URL.")
    collection: Text | None = Field(
        default=None,
        description="Name of the document's collection, for example that of a folder or a repository.",
    )
    metadata: JsonObject | None = Field(default=None, description="Arbitrary data of the sender.")
    origin: Origin | None = Field(
        default=None,
        description="For a file of an indexed folder: whether that is a plain folder or a repository.",
    )
    digest: Text | None = Field(
        default=None,
        description="SHA-256 of the text in UTF-8, in hexadecimal, to compare two texts.",
    )


class DocumentRemovedV1(Event):
    """A document is removed from search."""

    document_id: Identifier = Field(description="Id of the document.")


class Window(Contract):
    """A range of messages of one conversation that one extraction reads."""

    tenant: Identifier = Field(description="Tenant of the conversation.")
    user: Identifier = Field(description="User of the conversation.")
    conversation: Identifier = Field(description="Id of the conversation.")
    from_seq: LogPosition = Field(description="First log position of the window.")
    to_seq: LogPosition = Field(description="Last log position of the window.")
    line: int | None = Field(
        default=None, ge=0, description="Line number of the window in the batch, from 0."
    )
    pairs: tuple[FactPair, ...] = Field(
        default=(),
        exclude_if=is_empty,
        description="Undecided pairs of facts that the request of this window also compares.",
    )


class BatchIntendedV1(Event):
    """A batch is about to be submitted. The event precedes the call, so that a crash is detected."""

    batch_id: Identifier = Field(description="Id of the batch in mnemon.")
    provider: Text = Field(description="Name of the provider.")
    model: Text = Field(description="Name of the model.")
    purpose: Literal["extract", "compact"] = Field(description="Consumer whose requests the batch has.")
    windows: tuple[Window, ...] = Field(
        description="Windows of this user in the batch, at most 40; further events list the other windows."
    )
    usd: float | None = Field(
        default=None,
        ge=0,
        description="Estimated maximum cost of the windows, in US dollars; absent if the tenant has no "
        "budget.",
    )


class BatchSubmittedV1(Event):
    """The provider accepted the batch."""

    batch_id: Identifier = Field(description="Id of the batch in mnemon.")
    provider_batch_id: Text = Field(description="Id of the batch at the provider.")


class BatchCompletedV1(Event):
    """The batch has ended, and its results were read, as far as the provider delivered them."""

    batch_id: Identifier = Field(description="Id of the batch in mnemon.")
    answered: int = Field(ge=0, description="Number of the user's windows that were answered.")
    failed: int = Field(default=0, ge=0, description="Number of the user's windows without an answer.")


class BatchFailedV1(Event):
    """The batch failed or was given up; its unanswered windows are sent again."""

    batch_id: Identifier = Field(description="Id of the batch in mnemon.")
    error: Text = Field(description="Error of the provider, or mnemon's reason for giving up the batch.")


class WindowAnsweredV1(Event):
    """A window of a conversation is finished: read for facts, found to have nothing to read, or given up.

    Only a window that was given up can be read again, by a redrive of its dead letter.
    """

    conversation: Identifier = Field(description="Id of the conversation.")
    from_seq: LogPosition = Field(description="First log position of the window.")
    to_seq: LogPosition = Field(description="Last log position of the window.")
    outcome: Literal["proposed", "nothing", "gone", "dead"] = Field(
        description="`proposed`: facts were proposed; `nothing`: no facts were proposed; `gone`: the "
        "messages were removed, or none of them is worth reading; `dead`: the window could not be read and "
        "is a dead letter."
    )
    proposed: int = Field(default=0, ge=0, description="Number of facts that were proposed.")
    repaired: bool = Field(
        default=False, description="True if the answer was invalid JSON that was repaired."
    )
    unusable: int | None = Field(
        default=None, ge=1, description="Number of facts in the answer that cannot be used."
    )
    beyond_limit: int | None = Field(
        default=None,
        ge=1,
        description="Number of usable facts beyond the limit of 50. A dead letter keeps their texts, except "
        "those with secrets.",
    )
    reason: Text | None = Field(
        default=None, description="Reason in the dead letter, if the outcome is `dead`."
    )
    model: Text | None = Field(
        default=None, description="Provider and model of the last request, if the outcome is `dead`."
    )
    attempts: int | None = Field(
        default=None,
        ge=0,
        description="Number of failed attempts before the last one, if the outcome is `dead`.",
    )
    batch_id: Identifier | None = Field(default=None, description="Id of the batch with the model's answer.")


class Tokens(Contract):
    """Numbers of tokens of a language model's call."""

    input: int = Field(default=0, ge=0, description="Tokens of the request, cached ones included.")
    cached: int = Field(default=0, ge=0, description="Tokens of the request that the provider had cached.")
    output: int = Field(default=0, ge=0, description="Tokens of the answer.")


CallPurpose = Literal["extract", "compact", "chat"]


class ModelCalledV2(Event):
    """A language model was called; the event has the tokens and the cost of the call."""

    provider: Text = Field(description="Name of the provider.")
    model: Text = Field(description="Name of the model.")
    purpose: CallPurpose = Field(
        description="Purpose of the call: the consumer that made it; `chat`: a chat through the proxy."
    )
    tokens: Tokens = Field(description="Tokens of the call.")
    batch_id: Identifier | None = Field(
        default=None, description="Id of the batch, if the call was part of one."
    )
    usd: float | None = Field(
        default=None,
        ge=0,
        description="Cost in US dollars at the prices in force at the time of the call; absent if "
        "the model had no price.",
    )


class ModelCalledV1(ModelCalledV2):
    """A language model was called; version 1 lacks the purpose `chat` of version 2."""

    purpose: Literal["extract", "compact"] = Field(
        description="Purpose of the call: the consumer that made it."
    )
