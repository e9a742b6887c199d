"""The memory tools: what a bot's model may ask for, and the other verbs that change what is kept."""

from typing import Annotated, Literal

from pydantic import Field

from mnemon_contracts.base import Contract, Identifier, JsonObject, Moment, MomentOrDay, Sequence, Text
from mnemon_contracts.events.memory import Fact, Kind, Origin, Reason, Tier
from mnemon_contracts.verbs.ask import Reply, StoredMessage

Scope = Literal["memories", "messages", "documents"]
"""What version 1 of `search` and `get` knows."""

FoundScope = Literal[Scope, "summaries"]
"""What a hit may be."""

MemoryLevel = Literal["short", "medium", "long"]
"""Parts of several scopes: what is recent, what is summarised or due for now, and what is kept for long."""

SearchScope = Literal[FoundScope, MemoryLevel]
Importance = Literal["high", "normal", "low"]
Weight = int | Annotated[Importance, Field(description="How much it matters to the user.")]
"""How much a fact matters, in a number or a word; models are told of the words."""


class StoredFact(Fact):
    """A fact as it is kept."""

    id: Identifier = Field(description="Short id, per user: `pf_001`.")
    saved_at: Moment | None = Field(default=None, description="When it was kept.")
    score: float | None = Field(
        default=None, description="How well it answers the query, where there was one."
    )
    unsupported: tuple[Text, ...] | None = Field(
        default=None,
        description="Names and numbers of it that its source messages do not have, if any: perhaps made up.",
    )


class SearchRequest(Contract):
    """Find what is relevant to a query."""

    query: Text = Field(description="What to look for.")
    limit: int = Field(default=5, ge=1, le=100, description="At most so many hits.")
    threshold: float | None = Field(default=None, ge=0, le=1, description="Leave out hits that score below.")
    scope: tuple[SearchScope, ...] = Field(
        default=("memories",),
        description="Where to look: at facts, messages, documents, summaries; or at a level of memory. "
        "`short`: the newest messages of the conversation, as many as `recent_messages` says. `medium`: "
        "summaries and working facts. `long`: profile and archived facts, all other messages, and documents.",
    )
    explain: bool = Field(default=False, description="Give the parts of each score.")
    min_seq: Sequence | None = Field(default=None, description="Reflect the log up to here.")
    as_of: Moment | Sequence | None = Field(default=None, description="As it was then.")
    collection: Text | None = Field(
        default=None,
        description="Of documents, only those of this collection, such as a repository. With it, or with "
        "`origin`, and without `scope`, only documents are searched.",
    )
    origin: Origin | None = Field(
        default=None, description="Of documents, only files that were indexed with a folder of this kind."
    )


class SearchV2(SearchRequest):
    """Find what is relevant to a query, in summaries and levels of memory, too."""

    conversation: Identifier | None = Field(
        default=None,
        description="Whose newest messages `short` finds and `long` leaves out; without it: the current one.",
    )


class SearchV1(SearchRequest):
    """Find what is relevant to a query."""

    scope: tuple[Scope, ...] = Field(default=("memories",), description="Where to look.")

    def upcast(self) -> SearchV2:
        """Return the same request in version 2."""
        return SearchV2.model_construct(self.model_fields_set, **dict(self))


class DocumentPassage(Contract):
    """Where in a document a hit stands."""

    title: Text | None = Field(default=None, description="How the document is called.")
    source: Text | None = Field(default=None, description="Where it is from: a path or an address.")
    collection: Text | None = Field(default=None, description="What it belongs to, such as a repository.")
    first_line: int = Field(ge=1, description="The line of the document that the hit begins in, from 1.")
    last_line: int = Field(ge=1, description="The line that it ends in.")


class SearchHitV2(Contract):
    """One thing found."""

    id: Identifier = Field(description="Id of the fact, message, document or summary.")
    scope: FoundScope = Field(description="Which of them it is.")
    text: Text = Field(
        description="What was found; of a message longer than 4,000 characters the beginning, ending in …."
    )
    score: float = Field(description="How well it answers the query; more is better.")
    at: Moment | None = Field(default=None, description="When it was said or kept.")
    parts: dict[str, float] | None = Field(
        default=None, description="The parts of the score, when asked for."
    )
    passage: DocumentPassage | None = Field(
        default=None, description="Of a document: where in it the text stands."
    )


class SearchHit(SearchHitV2):
    """One thing found."""

    id: Identifier = Field(description="Id of the fact, message or document.")
    scope: Scope = Field(description="Which of them it is.")


class SearchReplyV2(Reply):
    """What was found, best first."""

    hits: tuple[SearchHitV2, ...] = Field(default=(), description="Best first.")
    degraded: tuple[Text, ...] = Field(default=(), description="Scopes that could not be searched.")


class SearchReplyV1(SearchReplyV2):
    """What was found, best first."""

    hits: tuple[SearchHit, ...] = Field(default=(), description="Best first.")


class SaveV1(Contract):
    """Keep a fact."""

    text: Text = Field(description="The fact, one sentence.")
    kind: Kind | None = Field(default=None, description="What sort of fact; classified when absent.")
    tier: Tier | None = Field(default=None, description="How to keep it; classified when absent.")
    importance: Weight | None = Field(default=None, description="1 to 10, or high, normal, low.")
    expires_at: MomentOrDay | None = Field(
        default=None, description="From then on it is not shown; a bare date is midnight UTC."
    )


class SaveReplyV1(Reply):
    """What was decided."""

    decision: Literal["saved", "updated", "confirmed", "rejected"] | None = Field(
        default=None, description="What became of it."
    )
    id: Identifier | None = Field(default=None, description="The fact that was saved, or that it met.")
    reason: Text | None = Field(default=None, description="Why it was refused, for a person.")
    rule: Reason | None = Field(default=None, description="The rule that refused it.")


class ReadV1(Contract):
    """All facts, by tier."""

    tier: Tier | None = Field(default=None, description="Only this one; without it: all.")
    limit: int = Field(default=100, ge=1, le=1000, description="At most so many facts in one reply.")
    min_seq: Sequence | None = Field(default=None, description="Reflect the log up to here.")
    after: Text | None = Field(
        default=None,
        description="`next` of the page before; without it: the first page.",
    )


class GetV2(Contract):
    """One fact, message, document or summary, whole: what a hit of `search` is a part of."""

    id: Identifier = Field(description="The fact, message, document or summary; of a hit, its `id`.")
    min_seq: Sequence | None = Field(default=None, description="Reflect the log up to here.")
    scope: FoundScope | None = Field(
        default=None,
        description="Which of them the id names; of a hit, its `scope`. Without it: a fact, else a message, "
        "else a document, else a summary.",
    )
    offset: int = Field(
        default=0, ge=0, description="Of a document: the character of its text to begin with, from 0."
    )


class GetV1(GetV2):
    """One fact, message, document or summary, whole: what a hit of `search` is a part of."""

    scope: Scope | None = Field(
        default=None,
        description="Which of them the id names; of a hit, its `scope`. Without it: a fact, else a message, "
        "else a document, else a summary.",
    )


class FactsReplyV1(Reply):
    """Facts, one page of them."""

    facts: tuple[StoredFact, ...] = Field(default=(), description="By tier: profile, working, archive.")
    total: int | None = Field(
        default=None,
        ge=0,
        description="How many facts there are on all pages, of the asked tier.",
    )
    next: Text | None = Field(
        default=None, description="Where more facts follow: send it as `after` to get them."
    )


class FactReplyV1(Reply):
    """One fact, and what it was before."""

    fact: StoredFact | None = Field(default=None, description="As it stands.")
    versions: tuple[Fact, ...] = Field(default=(), description="Former versions, newest first.")


class DocumentInfo(Contract):
    """A document, without its text."""

    document_id: Identifier = Field(description="The document.")
    title: Text | None = Field(default=None, description="How it is called.")
    source: Text | None = Field(default=None, description="Where it is from: a path or an address.")
    collection: Text | None = Field(default=None, description="What it belongs to, such as a repository.")
    origin: Origin | None = Field(
        default=None, description="Of a file that was indexed with its folder: the kind of folder."
    )
    digest: Text | None = Field(
        default=None, description="SHA-256 of the text in UTF-8, in hexadecimal; older documents have none."
    )


class ConversationMessage(StoredMessage):
    """A message as it is kept, and where it was said."""

    conversation: Identifier = Field(description="The conversation it was said in.")


class DocumentText(DocumentInfo):
    """A document with its text, or with a part of a long text."""

    text: Text = Field(description="The text, from `offset` on: at most 100,000 characters.")
    offset: int = Field(
        default=0, ge=0, description="The character of the whole text that `text` begins with."
    )
    length: int = Field(ge=0, description="Characters of the whole text.")
    next_offset: int | None = Field(
        default=None, description="Where more text follows: send it as `offset` to get it."
    )


class SummaryText(Contract):
    """A summary, and what it covers."""

    id: Identifier = Field(description="The summary.")
    conversation: Identifier = Field(description="The conversation that it sums up.")
    from_seq: Sequence = Field(description="First log position it covers.")
    to_seq: Sequence = Field(description="Last log position it covers.")
    text: Text = Field(description="The summary.")
    at: Moment = Field(description="When it was written.")


class GetReplyV1(FactReplyV1):
    """A fact and what it was before; or a message; or a document; or a summary."""

    message: ConversationMessage | None = Field(
        default=None, description="The message, where the id names one."
    )
    document: DocumentText | None = Field(default=None, description="The document, where the id names one.")
    summary: SummaryText | None = Field(default=None, description="The summary, where the id names one.")


class FactChanges(Contract):
    """What a fact becomes; what is left out stays."""

    text: Text | None = Field(default=None, description="The fact, one sentence.")
    kind: Kind | None = Field(default=None, description="What sort of fact.")
    tier: Tier | None = Field(
        default=None,
        description="How it is kept and shown. A fact that moves loses its date, but for one that moves to "
        "`working`: it keeps it, or gets one where `limits.working_days` is set.",
    )
    importance: Weight | None = Field(default=None, description="1 to 10, or high, normal, low.")
    expires_at: MomentOrDay | None = Field(
        default=None, description="From then on it is not shown; a bare date is midnight UTC."
    )


class UpdateV1(FactChanges):
    """Change a fact; what is left out stays."""

    id: Identifier = Field(description="The fact.")


class UpdateV2(FactChanges):
    """Change a fact, named by its id or by a query that clearly means one fact; what is left out stays."""

    id: Identifier | None = Field(default=None, description="The fact.")
    query: Text | None = Field(
        default=None,
        description="Or words that name it. A fact that has all of them, clearly before any other fact, is "
        "changed; otherwise nothing is changed, and the reply has `candidates`.",
    )


class ForgetV1(Contract):
    """Remove a fact: by id, or by a query that clearly means one fact."""

    id: Identifier | None = Field(default=None, description="The fact.")
    query: Text | None = Field(
        default=None,
        description="Or words that name it. A fact that has all of them, clearly before any other fact, is "
        "removed; otherwise nothing is removed, and the reply has `candidates`.",
    )


class FactCandidate(Contract):
    """A fact that a query may mean."""

    id: Identifier = Field(description="The fact: send it as `id`.")
    text: Text = Field(description="What it says.")
    score: float = Field(description="How well it fits the query, 0 to 1.")


class UpdateReplyV2(FactReplyV1):
    """The fact as it is from now on; or, without `fact`, that none was changed, and which are meant."""

    candidates: tuple[FactCandidate, ...] = Field(
        default=(),
        description="Where nothing was changed: at most five facts that the query may mean, best first.",
    )


class ForgetReplyV1(Reply):
    """The fact that was removed; or, without `id`, that none was, and which ones the query may mean."""

    id: Identifier | None = Field(
        default=None, description="The fact that was removed; absent where nothing was removed."
    )
    text: Text | None = Field(default=None, description="What the removed fact said.")
    restore: SaveV1 | None = Field(
        default=None,
        description="The request to `save` that brings the removed fact back. The fact gets a new id; its "
        "former versions stay gone. Absent where its date had passed.",
    )
    candidates: tuple[FactCandidate, ...] = Field(
        default=(),
        description="Where nothing was removed: at most five facts that the query may mean, best first.",
    )


class TasksV1(Contract):
    """The user's tasks: listed, added, done or removed."""

    action: Literal["list", "add", "done", "remove"] = Field(default="list", description="What to do.")
    task_id: Identifier | None = Field(default=None, description="The task, for `done` and `remove`.")
    text: Text | None = Field(default=None, description="What is to be done, for `add`.")
    due_at: MomentOrDay | None = Field(
        default=None, description="By when, for `add`; a bare date is midnight UTC."
    )
    min_seq: Sequence | None = Field(default=None, description="Reflect the log up to here.")


class Task(Contract):
    """A task of the user's."""

    task_id: Identifier = Field(description="The task.")
    text: Text = Field(description="What is to be done.")
    due_at: Moment | None = Field(default=None, description="By when.")
    done: bool = Field(default=False, description="Whether it is done.")


class TasksReplyV1(Reply):
    """The tasks, oldest first."""

    tasks: tuple[Task, ...] = Field(default=(), description="Oldest first.")
    task_id: Identifier | None = Field(default=None, description="The task that was changed.")


class DocumentV1(Contract):
    """Documents: listed, added or removed."""

    action: Literal["list", "add", "remove"] = Field(default="list", description="What to do.")
    document_id: Identifier | None = Field(default=None, description="The document, for `add` and `remove`.")
    title: Text | None = Field(default=None, description="How it is called.")
    text: Text | None = Field(default=None, description="Its text, whole, for `add`.")
    source: Text | None = Field(default=None, description="Where it is from: a path or an address.")
    collection: Text | None = Field(default=None, description="What it belongs to, such as a repository.")
    min_seq: Sequence | None = Field(default=None, description="Reflect the log up to here.")
    origin: Origin | None = Field(
        default=None,
        description="For `add`: the file was indexed with its folder, which is of this kind.",
    )
    limit: int = Field(
        default=1000, ge=0, le=1000, description="At most so many documents in one reply; 0: none."
    )
    after: Text | None = Field(
        default=None, description="`next` of the page before; without it: the first page."
    )


class DocumentReplyV1(Reply):
    """The documents, one page of them."""

    documents: tuple[DocumentInfo, ...] = Field(default=(), description="By id.")
    document_id: Identifier | None = Field(default=None, description="The document that was changed.")
    next: Text | None = Field(
        default=None, description="Where more documents follow: send it as `after` to get them."
    )


class EraseV1(Contract):
    """Forget the user, or one conversation, for good."""

    conversation: Identifier | None = Field(
        default=None, description="Only this conversation; without it: the user."
    )
    verify: bool = Field(
        default=False,
        description="Erase nothing; look what is left of a user who was erased, or of one who never was.",
    )
    text: Text | None = Field(
        default=None,
        description="With `verify`: look for it in all that there is of the user, what came since included.",
    )


class EraseReplyV1(Reply):
    """What was removed, store by store; or what is left."""

    removed: JsonObject = Field(default={}, description="How much, by store.")
    pending: tuple[Text, ...] = Field(
        default=(), description="Stores that were not done when the reply was sent; they will be."
    )
    provider_batches: tuple[Text, ...] = Field(
        default=(),
        description="Batches with text of the user that providers of models have: their ids. What comes of "
        "them is dropped; the providers keep the text for as long as they keep batches.",
    )
    generations: tuple[Text, ...] = Field(
        default=(),
        description="Other generations of the rows that are there. What was erased is gone from their rows; "
        "their vectors, which hold no text, stay until they are dropped.",
    )
    left: JsonObject | None = Field(default=None, description="Asked to verify: how much is left, by store.")
    found: JsonObject | None = Field(
        default=None, description="Asked for a `text`: how often it is found, by store that holds texts."
    )
