"""Contracts of the verbs that a bot's model calls as memory tools, except `profile`, and of `erase`."""

from typing import Annotated, Literal

from pydantic import Field

from mnemon_contracts.base import Contract, Identifier, JsonObject, LogPosition, Moment, MomentOrDay, Text
from mnemon_contracts.events.memory import Fact, Kind, Origin, Reason, Tier
from mnemon_contracts.verbs.ask import AsOf, MinSeq, Now, Preceding, Reply, StoredMessage

Scope = Literal["memories", "messages", "documents"]
"""Scopes of version 1 of `search` and `get`."""

FoundScope = Literal[Scope, "summaries"]
"""Scopes of a hit."""

MemoryLevel = Literal["short", "medium", "long"]
"""Levels of memory: recent messages; summaries and working facts; other facts and messages, and documents."""

SearchScope = Literal[FoundScope, MemoryLevel]
Importance = Literal["high", "normal", "low"]
Weight = int | Annotated[Importance, Field(description="Importance of the fact to the user.")]
"""Importance of a fact, as a number or a word; the definitions for models have the words."""


class StoredFact(Fact):
    """A stored fact, with its id."""

    id: Identifier = Field(description="Short id, unique per user: `pf_001`.")
    saved_at: Moment | None = Field(default=None, description="Time at which the fact was first saved.")
    score: float | None = Field(
        default=None,
        description="Relevance to a query. No verb sets this field; hits of `search` have their own `score`.",
    )
    unsupported: tuple[Text, ...] | None = Field(
        default=None,
        description="Names, numbers and dates in the fact that its source messages do not support, if any; "
        "a model may have invented them.",
    )


class SearchRequest(Contract):
    """Fields of `search` in both versions."""

    query: Text = Field(description="Query, in any language; its first 10,000 characters count.")
    limit: int = Field(
        default=5,
        ge=1,
        le=100,
        description="Maximum number of hits. Default: the setting `retrieval.limit`, 5 unless changed.",
    )
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Minimum score of a hit, 0 to 1. Default: the setting `retrieval.threshold`. If neither "
        "is set, messages that probably do not answer a question are left out, and other items with less "
        "than a quarter of the best score of their scope, unless a reranker scored them; 0 keeps them.",
    )
    scope: tuple[SearchScope, ...] = Field(
        default=("memories",),
        description="Scopes to search: `memories` (facts), `messages`, `documents`, `summaries`, or a level "
        "of memory. `short`: the newest messages of the conversation, as many as the setting "
        "`recent_messages`. `medium`: summaries and working facts. `long`: profile and "
        "archived facts, all other messages, and documents.",
    )
    explain: bool = Field(
        default=False, description="Return for each hit the components of its score, in `parts`."
    )
    min_seq: MinSeq = None
    as_of: AsOf = None
    now: Now = None
    collection: Text | None = Field(
        default=None,
        description="Search only documents of this collection, such as a repository. A request with "
        "`collection` or `origin`, and without `scope`, searches only documents. Default: no restriction.",
    )
    origin: Origin | None = Field(
        default=None,
        description="Search only files of indexed plain folders (`folder`) or repositories (`repository`). "
        "Default: no restriction.",
    )


class SearchV2(SearchRequest):
    """Search facts, messages, documents or summaries for a query.

    Version 2 also searches summaries and levels of memory, and resolves follow-up questions.
    """

    conversation: Identifier | None = Field(
        default=None,
        description="Conversation whose newest messages `short` searches and `long` leaves out. "
        "Default: the current conversation.",
    )
    preceding: Preceding = None


class SearchV1(SearchRequest):
    """Search facts, messages or documents for a query."""

    scope: tuple[Scope, ...] = Field(
        default=("memories",), description="Scopes to search: `memories` (facts), `messages` or `documents`."
    )

    def upcast(self) -> SearchV2:
        """Return the same request in version 2."""
        return SearchV2.model_construct(self.model_fields_set, **dict(self))


class DocumentPassage(Contract):
    """The lines of a document that a hit shows, and the title, source and collection of the document."""

    title: Text | None = Field(default=None, description="Title of the document.")
    source: Text | None = Field(default=None, description="Source of the document: a path or a URL.")
    collection: Text | None = Field(
        default=None,
        description="Name of the document's collection, for example that of a folder or a repository.",
    )
    first_line: int = Field(ge=1, description="Number of the first line of the hit in the document, from 1.")
    last_line: int = Field(ge=1, description="Number of the last line of the hit in the document.")


class SearchHitV2(Contract):
    """A fact, message, document or summary that a search found."""

    id: Identifier = Field(description="Id of the fact, message, document or summary.")
    scope: FoundScope = Field(description="Scope in which the hit was found.")
    text: Text = Field(
        description="Text of the hit; a message longer than 4,000 characters is cut and ends in …."
    )
    score: float = Field(description="Relevance to the query; higher is better.")
    at: Moment | None = Field(
        default=None,
        description="Time at which the message was sent, the fact was first saved, or the summary was "
        "written; absent for documents.",
    )
    parts: dict[str, float] | None = Field(
        default=None, description="Components of the score by name, if `explain` is set."
    )
    passage: DocumentPassage | None = Field(
        default=None,
        description="For a document: its title, source and collection, and the lines of the hit.",
    )


class SearchHit(SearchHitV2):
    """A fact, message or document that a search found."""

    id: Identifier = Field(description="Id of the fact, message or document.")
    scope: Scope = Field(description="Scope in which the hit was found.")


class SearchReplyV2(Reply):
    """Hits of a search, best first."""

    hits: tuple[SearchHitV2, ...] = Field(default=(), description="Hits, best first.")
    degraded: tuple[Text, ...] = Field(
        default=(),
        description="Scopes that could not be searched. `embedding`: the query could not be embedded, so the "
        "search used words only. `reranker`: the configured reranker did not order the hits.",
    )


class SearchReplyV1(SearchReplyV2):
    """Hits of a search, best first."""

    hits: tuple[SearchHit, ...] = Field(default=(), description="Hits, best first.")


class SaveV1(Contract):
    """Propose a fact; `dedupe` decides whether it is saved."""

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
    importance: Weight | None = Field(
        default=None,
        description="Importance: 1 to 10, or `high`, `normal`, `low`. Default: derived from the words of "
        "the text.",
    )
    expires_at: MomentOrDay | None = Field(
        default=None,
        description="Time from which the fact is not shown; a bare date is midnight UTC. Default: for a "
        "working fact, the end that the text names, else the setting `limits.working_days`; for other facts, "
        "never.",
    )


class SaveReplyV1(Reply):
    """Decision of `dedupe` on the proposed fact."""

    decision: Literal["saved", "updated", "confirmed", "rejected"] | None = Field(
        default=None,
        description="`saved`: the fact is new; `updated`: the fact changed a known fact; `confirmed`: a "
        "known fact says the same and keeps its text; `rejected`: the fact is not kept.",
    )
    id: Identifier | None = Field(
        default=None,
        description="Id of the fact that was saved, updated or confirmed; if the fact was rejected because "
        "of a known fact, the id of that fact.",
    )
    reason: Text | None = Field(default=None, description="Human-readable reason for a rejection.")
    rule: Reason | None = Field(default=None, description="Rule that rejected the fact.")


class ReadV1(Contract):
    """Return a page of the facts that have not expired, in the order of the tiers."""

    tier: Tier | None = Field(default=None, description="Tier of the facts to return. Default: all tiers.")
    limit: int = Field(default=100, ge=1, le=1000, description="Maximum number of facts of one page.")
    min_seq: MinSeq = None
    after: Text | None = Field(
        default=None,
        description="`next` of the previous page. Default: the first page.",
    )


class GetV2(Contract):
    """Return one whole fact, message, document or summary, such as one that a hit shows in part.

    A long document is returned in parts.
    """

    id: Identifier = Field(description="Id of the fact, message, document or summary; for a hit, its `id`.")
    min_seq: MinSeq = None
    scope: FoundScope | None = Field(
        default=None,
        description="Scope of the id; for a hit, its `scope`. Default: the first of `memories`, `messages`, "
        "`documents` and `summaries` that has the id.",
    )
    offset: int = Field(
        default=0, ge=0, description="For a document: offset of the first character to return, from 0."
    )


class GetV1(GetV2):
    """Return one whole fact, message, document or summary, such as one that a hit shows in part.

    A long document is returned in parts.
    """

    scope: Scope | None = Field(
        default=None,
        description="Scope of the id; for a hit, its `scope`. Default: the first of `memories`, `messages`, "
        "`documents` and `summaries` that has the id.",
    )


class FactsReplyV1(Reply):
    """One page of facts."""

    facts: tuple[StoredFact, ...] = Field(
        default=(),
        description="Facts in the order of the tiers `profile`, `working`, `archive`; in each tier the most "
        "important first, and of equally important facts the newest.",
    )
    total: int | None = Field(
        default=None,
        ge=0,
        description="Number of facts on all pages, of the requested tier or of all tiers.",
    )
    next: Text | None = Field(
        default=None, description="Value of `after` for the next page; absent on the last page."
    )


class FactReplyV1(Reply):
    """One fact, with its former versions."""

    fact: StoredFact | None = Field(default=None, description="Current version of the fact.")
    versions: tuple[Fact, ...] = Field(
        default=(), description="Former versions of the fact, newest first, at most 99."
    )


class DocumentInfo(Contract):
    """A document without its text."""

    document_id: Identifier = Field(description="Id of the document.")
    title: Text | None = Field(default=None, description="Title of the document.")
    source: Text | None = Field(default=None, description="Source of the document: a path or a URL.")
    collection: Text | None = Field(
        default=None,
        description="Name of the document's collection, for example that of a folder or a repository.",
    )
    origin: Origin | None = Field(
        default=None,
        description="For a file of an indexed folder: whether that is a plain folder or a repository.",
    )
    digest: Text | None = Field(
        default=None, description="SHA-256 of the text in UTF-8, in hexadecimal; older documents have none."
    )


class ConversationMessage(StoredMessage):
    """A stored message, with its conversation; `task_id` is never set."""

    conversation: Identifier = Field(description="Conversation of the message.")


class DocumentText(DocumentInfo):
    """A document with its text, or with a part of a long text."""

    text: Text = Field(description="Text from `offset` on, at most 100,000 characters.")
    offset: int = Field(default=0, ge=0, description="Offset of `text` in the whole text, in characters.")
    length: int = Field(ge=0, description="Length of the whole text, in characters.")
    next_offset: int | None = Field(
        default=None, description="Value of `offset` for the next part of the text; absent at the end."
    )


class SummaryText(Contract):
    """A summary, with the range of messages that it covers."""

    id: Identifier = Field(description="Id of the summary.")
    conversation: Identifier = Field(description="Conversation of the summary.")
    from_seq: LogPosition = Field(description="First log position that the summary covers.")
    to_seq: LogPosition = Field(description="Last log position that the summary covers.")
    text: Text = Field(description="Text of the summary.")
    at: Moment = Field(description="Time at which the summary was written.")


class GetReplyV1(FactReplyV1):
    """A fact with its former versions; or a message; or a document; or a summary."""

    message: ConversationMessage | None = Field(
        default=None, description="Message with this id, if the id names a message."
    )
    document: DocumentText | None = Field(
        default=None, description="Document with this id, if the id names a document."
    )
    summary: SummaryText | None = Field(
        default=None, description="Summary with this id, if the id names a summary."
    )


class FactChanges(Contract):
    """Changes of a fact; omitted fields stay, except `expires_at`, which a new text or tier may change."""

    text: Text | None = Field(default=None, description="Text of the fact, one sentence.")
    kind: Kind | None = Field(default=None, description="Kind of the fact.")
    tier: Tier | None = Field(
        default=None,
        description="Tier of the fact. A fact that moves to `working` keeps its `expires_at`, or gets one "
        "by the setting `limits.working_days` if it has none and the setting is not `null`. A fact that "
        "moves to another tier loses its `expires_at`.",
    )
    importance: Weight | None = Field(
        default=None, description="Importance: 1 to 10, or `high`, `normal`, `low`."
    )
    expires_at: MomentOrDay | None = Field(
        default=None,
        description="Time from which the fact is not shown; a bare date is midnight UTC. Default: the former "
        "time, with these exceptions. In the tier `working`, a new text that names an end, such as `until "
        "Friday`, sets the time. Any other new text removes the time if the former text names an end. A new "
        "tier may change the time; see `tier`.",
    )


class UpdateV1(FactChanges):
    """Change a fact; omitted fields stay, except `expires_at`, which a new text or tier may change."""

    id: Identifier = Field(description="Id of the fact.")


class UpdateV2(FactChanges):
    """Change the fact with an id, or the fact that a query clearly means.

    Omitted fields stay, except `expires_at`, which a new text or tier may change.
    """

    id: Identifier | None = Field(default=None, description="Id of the fact; give either `id` or `query`.")
    query: Text | None = Field(
        default=None,
        description="Words that name the fact, instead of its id; the first 500 characters count. A fact is "
        "changed if it is the only one with exactly the words of the query. A fact is also changed if it has "
        "all content words of the query in the same sense, if no other fact fits almost as well, if these "
        "words are about a third of its words or more, and if each of its clauses, except those of only "
        "names, dates and numbers, has one of them. Common words alone, and a single adjective, number or "
        "date, change nothing, except in a question phrase such as `where I live`, which changes a fact "
        "that says only the answer. If nothing is changed, the reply has `candidates`, or the error "
        "`not_found` if no fact has a word of the query and a search finds none.",
    )


class ForgetV1(Contract):
    """Forget a fact, named by its id or by a query that clearly means one fact."""

    id: Identifier | None = Field(default=None, description="Id of the fact; give either `id` or `query`.")
    query: Text | None = Field(
        default=None,
        description="Words that name the fact, instead of its id; the first 500 characters count. A fact is "
        "removed if it is the only one with exactly the words of the query. A fact is also removed if it has "
        "all content words of the query in the same sense, if no other fact fits almost as well, if these "
        "words are about a third of its words or more, and if each of its clauses, except those of only "
        "names, dates and numbers, has one of them. Common words alone, and a single adjective, number or "
        "date, remove nothing, except in a question phrase such as `where I live`, which removes a fact "
        "that says only the answer. If nothing is removed, the reply has `candidates`, or the error "
        "`not_found` if no fact has a word of the query and a search finds none.",
    )


class FactCandidate(Contract):
    """A fact that the query may mean."""

    id: Identifier = Field(description="Id of the fact; send it as `id` to change or remove the fact.")
    text: Text = Field(description="Text of the fact.")
    score: float = Field(description="Relevance to the query, 0 to 1.")


class UpdateReplyV2(FactReplyV1):
    """The fact after the change.

    If `fact` is absent, nothing was changed, and `candidates` lists the facts that may be meant.
    """

    candidates: tuple[FactCandidate, ...] = Field(
        default=(),
        description="Facts that the query may mean, best first, at most five; empty if a fact was changed.",
    )


class ForgetReplyV1(Reply):
    """The fact that was removed.

    If `id` is absent, nothing was removed, and `candidates` lists the facts that may be meant.
    """

    id: Identifier | None = Field(
        default=None, description="Id of the fact that was removed; absent if nothing was removed."
    )
    text: Text | None = Field(default=None, description="Text of the removed fact.")
    restore: SaveV1 | None = Field(
        default=None,
        description="Request to `save` that restores the removed fact under a new id, without its "
        "former versions; absent if nothing was removed, or if the fact had expired.",
    )
    candidates: tuple[FactCandidate, ...] = Field(
        default=(),
        description="Facts that the query may mean, best first, at most five; empty if a fact was removed.",
    )


class TasksV1(Contract):
    """List, add, finish or remove tasks of the user."""

    action: Literal["list", "add", "done", "remove"] = Field(
        default="list",
        description="`list` returns the tasks, `add` adds one, `done` marks one as done, and `remove` "
        "removes one.",
    )
    task_id: Identifier | None = Field(
        default=None,
        description="Id of the task. Default for `add`: a new UUID; `done` and `remove` require the id.",
    )
    text: Text | None = Field(default=None, description="Text of the task, for `add`.")
    due_at: MomentOrDay | None = Field(
        default=None, description="Time at which the task is due, for `add`; a bare date is midnight UTC."
    )
    min_seq: MinSeq = None


class Task(Contract):
    """Something that the user means to do."""

    task_id: Identifier = Field(description="Id of the task.")
    text: Text = Field(description="Text of the task.")
    due_at: Moment | None = Field(default=None, description="Time at which the task is due.")
    done: bool = Field(default=False, description="True if the task is done.")


class TasksReplyV1(Reply):
    """All tasks of the user after the action, oldest first."""

    tasks: tuple[Task, ...] = Field(default=(), description="Tasks, oldest first.")
    task_id: Identifier | None = Field(
        default=None, description="Id of the task that was added, done or removed."
    )


class DocumentV1(Contract):
    """List, add or remove documents."""

    action: Literal["list", "add", "remove"] = Field(
        default="list",
        description="`list` returns the documents, `add` adds or replaces one, `remove` removes one.",
    )
    document_id: Identifier | None = Field(
        default=None,
        description="Id of the document. Default for `add`: a new UUID; `remove` requires the id.",
    )
    title: Text | None = Field(default=None, description="Title of the document.")
    text: Text | None = Field(default=None, description="Whole text of the document, for `add`.")
    source: Text | None = Field(default=None, description="Source of the document: a path or a URL.")
    collection: Text | None = Field(
        default=None,
        description="For `add`: collection of the document, such as a repository. Every reply lists only "
        "documents of this collection. Default: none; replies list all documents.",
    )
    min_seq: MinSeq = None
    origin: Origin | None = Field(
        default=None,
        description="For `add` of a file of an indexed folder: whether that is a plain folder or a "
        "repository.",
    )
    limit: int = Field(
        default=1000, ge=0, le=1000, description="Maximum number of documents that one reply lists; 0: none."
    )
    after: Text | None = Field(
        default=None, description="`next` of the previous page. Default: the first page."
    )


class DocumentReplyV1(Reply):
    """One page of documents."""

    documents: tuple[DocumentInfo, ...] = Field(default=(), description="Documents, ordered by id.")
    document_id: Identifier | None = Field(
        default=None, description="Id of the document that was added or removed."
    )
    next: Text | None = Field(
        default=None,
        description="Value of `after` for the next page; absent on the last page, and with `limit` 0.",
    )


class EraseV1(Contract):
    """Erase the user, or one conversation, for good."""

    conversation: Identifier | None = Field(
        default=None, description="Conversation to erase. Default: all content of the user."
    )
    verify: bool = Field(
        default=False,
        description="Erase nothing; count the items of the user, or of `conversation`, that each store still "
        "has.",
    )
    text: Text | None = Field(
        default=None,
        description="With `verify`: text to search for, as a whole and regardless of letter case, in all "
        "stored texts of the user, also those stored after the erasure.",
    )


class EraseReplyV1(Reply):
    """Counts of removed items by store; with `verify`, counts of remaining items."""

    removed: JsonObject = Field(default={}, description="Number of removed items, by store.")
    pending: tuple[Text, ...] = Field(
        default=(),
        description="Stores in which the erasure continues after the reply.",
    )
    provider_batches: tuple[Text, ...] = Field(
        default=(),
        description="Ids of open batches with unanswered requests that contain erased text: the provider's "
        "id, or mnemon's while the provider has given none. mnemon drops the answers to these requests; the "
        "providers keep the text as long as they keep the batches.",
    )
    generations: tuple[Text, ...] = Field(
        default=(),
        description="Generations that are not live. Their rows have no erased content; their "
        "vectors, which hold no text, stay until the generations are dropped.",
    )
    left: JsonObject | None = Field(
        default=None, description="With `verify`: number of remaining items, by store."
    )
    found: JsonObject | None = Field(
        default=None,
        description="With `text`: number of the user's entries that contain the text, by store. "
        "`statistics` is the number of columns whose statistics in PostgreSQL contain it; these have "
        "samples of the values of all users.",
    )
