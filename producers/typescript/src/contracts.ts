// Generated from contracts/schemas by generate.mjs. Do not edit.

export type JsonValue = unknown;

/**
 * All published contracts, by name.
 */
export interface Contracts {
  "ask.context.v1.reply": ContextReplyV1;
  "ask.context.v1.request": ContextV1;
  "ask.document.v1.reply": DocumentReplyV1;
  "ask.document.v1.request": DocumentV1;
  "ask.erase.v1.reply": EraseReplyV1;
  "ask.erase.v1.request": EraseV1;
  "ask.forget.v1.reply": ForgetReplyV1;
  "ask.forget.v1.request": ForgetV1;
  "ask.get.v1.reply": GetReplyV1;
  "ask.get.v1.request": GetV1;
  "ask.get.v2.reply": GetReplyV1;
  "ask.get.v2.request": GetV2;
  "ask.history.v1.reply": HistoryReplyV1;
  "ask.history.v1.request": HistoryV1;
  "ask.profile.v1.reply": ProfileReplyV1;
  "ask.profile.v1.request": ProfileV1;
  "ask.read.v1.reply": FactsReplyV1;
  "ask.read.v1.request": ReadV1;
  "ask.save.v1.reply": SaveReplyV1;
  "ask.save.v1.request": SaveV1;
  "ask.search.v1.reply": SearchReplyV1;
  "ask.search.v1.request": SearchV1;
  "ask.search.v2.reply": SearchReplyV2;
  "ask.search.v2.request": SearchV2;
  "ask.status.v1.reply": StatusReplyV1;
  "ask.status.v1.request": StatusV1;
  "ask.tasks.v1.reply": TasksReplyV1;
  "ask.tasks.v1.request": TasksV1;
  "ask.update.v1.reply": FactReplyV1;
  "ask.update.v1.request": UpdateV1;
  "ask.update.v2.reply": UpdateReplyV2;
  "ask.update.v2.request": UpdateV2;
  "batch.completed.v1": BatchCompletedV1;
  "batch.failed.v1": BatchFailedV1;
  "batch.intended.v1": BatchIntendedV1;
  "batch.submitted.v1": BatchSubmittedV1;
  "cleared.v1": ClearedV1;
  "document.added.v1": DocumentAddedV1;
  "document.removed.v1": DocumentRemovedV1;
  "fact.compared.v1": FactComparedV1;
  "fact.confirmed.v1": FactConfirmedV1;
  "fact.evicted.v1": FactEvictedV1;
  "fact.expired.v1": FactExpiredV1;
  "fact.forgotten.v1": FactForgottenV1;
  "fact.merged.v1": FactMergedV1;
  "fact.proposed.v1": FactProposedV1;
  "fact.rejected.v1": FactRejectedV1;
  "fact.saved.v1": FactSavedV1;
  "fact.updated.v1": FactUpdatedV1;
  "message.v1": MessageV1;
  "model.called.v1": ModelCalledV1;
  "model.called.v2": ModelCalledV2;
  "profile.set.v1": ProfileSetV1;
  "started.v1": StartedV1;
  "summary.merged.v1": SummaryMergedV1;
  "summary.written.v1": SummaryWrittenV1;
  "task.added.v1": TaskAddedV1;
  "task.done.v1": TaskDoneV1;
  "task.removed.v1": TaskRemovedV1;
  "user.erased.v1": UserErasedV1;
  "window.answered.v1": WindowAnsweredV1;
}
/**
 * A context for a model, within the budget of tokens.
 */
export interface ContextReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Id of the conversation that is shown.
   */
  conversation?: string;
  /**
   * Messages in order, ready for a model; in formats other than `messages`, the whole context as one message.
   */
  messages: RenderedMessage[];
  /**
   * The whole context as one text, in the formats `xml`, `blocks` and `markdown`.
   */
  text?: string;
  /**
   * Number of tokens of the whole context; at most the budget.
   */
  tokens?: number;
  /**
   * Tokens and items of each section, by name: `facts`, `summaries`, `user_data`, `working`, `recent`, `relevant`, `documents` and `conversation`. A section in which nothing is shown or left out is absent.
   */
  sections: {
    [k: string]: ContextSection;
  };
  /**
   * Coverage of the messages of the conversation; absent if the messages could not be counted.
   */
  coverage?: ContextCoverage;
  /**
   * The user's profile: names with values.
   */
  profile: {
    [k: string]: JsonValue;
  };
  /**
   * Names of the sections, as in `sections`, that are missing or incomplete because a server failed or did not answer in time, or because `retrieve` has no vector index or a snapshot no vectors. Also `embedding`: the query could not be embedded, so the search used words only; and `reranker`: the configured reranker did not order the hits.
   */
  degraded: string[];
  /**
   * Metadata to publish with each message that contains text of this context, so that known facts are not extracted again.
   */
  metadata: {
    [k: string]: JsonValue;
  };
}
/**
 * The error of a request that has no result.
 */
export interface AskError {
  /**
   * Error code, for programs.
   */
  code: "bad_request" | "not_found" | "refused" | "unavailable" | "timeout" | "not_implemented" | "internal";
  /**
   * Human-readable message; for an invalid body, it names the invalid field.
   */
  message: string;
  /**
   * True if the same request can succeed later.
   */
  retryable: boolean;
  /**
   * First invalid field of the request; `body` if the error concerns no single field, such as a body that is not JSON. Absent if no field is invalid, and in replies of older versions.
   */
  field?: string;
  /**
   * With the code `moved`: address of the NATS servers of the deployment that the tenant has moved to.
   */
  moved_to?: string;
  /**
   * If the request exceeds a limit of the settings: name of the setting, such as `rates.requests_per_user`.
   */
  limit?: string;
}
/**
 * A message in the form that a model is shown.
 */
export interface RenderedMessage {
  /**
   * Role of the speaker.
   */
  role: "user" | "assistant" | "tool" | "system";
  /**
   * Text to show to the model.
   */
  content: string;
  /**
   * Name of the speaker.
   */
  name?: string;
}
/**
 * Tokens and items of one section of the context.
 */
export interface ContextSection {
  /**
   * Number of tokens of the section with its heading, counted without the other sections. The sum over the sections is not exactly `tokens` of the reply, which counts the whole context at once, with text outside of the sections, such as the current time.
   */
  tokens?: number;
  /**
   * Number of items that are shown.
   */
  shown?: number;
  /**
   * Number of items that are not shown, because the budget or the settings leave no room.
   */
  left_out?: number;
  /**
   * True if an item is shown in part.
   */
  cut?: boolean;
  /**
   * In `recent`: number of messages of the conversation that are not shown and that no summary covers. In `summaries`: number of messages that are not shown and whose summary is left out. The sum of both is `coverage.left_out`.
   */
  messages_left_out?: number;
}
/**
 * Coverage of the messages of the conversation: each message is in one of the three counts.
 */
export interface ContextCoverage {
  /**
   * Number of messages shown in `recent` or `conversation`, whole or cut. Messages with neither text nor tool calls count as shown.
   */
  shown?: number;
  /**
   * Number of messages that are not shown, but covered by a summary that is shown.
   */
  summarised?: number;
  /**
   * Number of messages that are neither shown nor covered by a summary that is shown.
   */
  left_out?: number;
}
/**
 * Return the context for a model's next answer.
 */
export interface ContextV1 {
  /**
   * User's message, for which memory is searched. Its first 1,200 characters are used; with `task_id`, at least its first 600, because results of the task take room. Default: the last message of the user.
   */
  query?: string | null;
  /**
   * `messages`: a system message for each section, and the recent messages with their own roles. The other formats are one text, with the sections in elements such as `<user_data>` (`xml`), below titles such as `[USER DATA]` (`blocks`), or below headings (`markdown`).
   */
  format?: "messages" | "xml" | "blocks" | "markdown";
  /**
   * Maximum tokens of the context. Default: the setting `context.budget`, 1,300 unless changed.
   */
  budget?: number | null;
  /**
   * Log position of an event that the reply should include, such as the one that a publish returned. The request waits for the event, at most as long as the setting `wait_for_log_ms`. If `seen_seq` of the reply is lower, the reply does not include the event.
   */
  min_seq?: number | null;
  /**
   * Former time or log position as of which to answer. Requires a snapshot that `mnemon rebuild --until` has made; without one, the error is `not_found`. Default: now.
   */
  as_of?: string | Date | number | null;
  /**
   * Id of the bot's task whose tool results are added to the query.
   */
  task_id?: string | null;
  /**
   * Id of the conversation. Default: the current conversation.
   */
  conversation?: string | null;
  /**
   * Last messages before the query, oldest first, at most four. A query that depends on them, such as `and when was that?`, is searched with their words too. Only the first 400 characters of each message are used.
   */
  preceding?: string[] | null;
  /**
   * Time to which words of the query such as `yesterday` are relative. Default: the time of the request, or that of `as_of`. Whether facts have expired does not depend on it.
   */
  now?: string | Date | null;
}
/**
 * One page of documents.
 */
export interface DocumentReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Documents, ordered by id.
   */
  documents: DocumentInfo[];
  /**
   * Id of the document that was added or removed.
   */
  document_id?: string;
  /**
   * Value of `after` for the next page; absent on the last page, and with `limit` 0.
   */
  next?: string;
}
/**
 * A document without its text.
 */
export interface DocumentInfo {
  /**
   * Id of the document.
   */
  document_id: string;
  /**
   * Title of the document.
   */
  title?: string;
  /**
   * Source of the document: a path or a URL.
   */
  source?: string;
  /**
   * Name of the document's collection, for example that of a folder or a repository.
   */
  collection?: string;
  /**
   * For a file of an indexed folder: whether that is a plain folder or a repository.
   */
  origin?: "folder" | "repository";
  /**
   * SHA-256 of the text in UTF-8, in hexadecimal; older documents have none.
   */
  digest?: string;
}
/**
 * List, add or remove documents.
 */
export interface DocumentV1 {
  /**
   * `list` returns the documents, `add` adds or replaces one, `remove` removes one.
   */
  action?: "list" | "add" | "remove";
  /**
   * Id of the document. Default for `add`: a new UUID; `remove` requires the id.
   */
  document_id?: string | null;
  /**
   * Title of the document.
   */
  title?: string | null;
  /**
   * Whole text of the document, for `add`.
   */
  text?: string | null;
  /**
   * Source of the document: a path or a URL.
   */
  source?: string | null;
  /**
   * For `add`: collection of the document, such as a repository. Every reply lists only documents of this collection. Default: none; replies list all documents.
   */
  collection?: string | null;
  /**
   * Log position of an event that the reply should include, such as the one that a publish returned. The request waits for the event, at most as long as the setting `wait_for_log_ms`. If `seen_seq` of the reply is lower, the reply does not include the event.
   */
  min_seq?: number | null;
  /**
   * For `add` of a file of an indexed folder: whether that is a plain folder or a repository.
   */
  origin?: ("folder" | "repository") | null;
  /**
   * Maximum number of documents that one reply lists; 0: none.
   */
  limit?: number;
  /**
   * `next` of the previous page. Default: the first page.
   */
  after?: string | null;
}
/**
 * Counts of removed items by store; with `verify`, counts of remaining items.
 */
export interface EraseReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Number of removed items, by store.
   */
  removed: {
    [k: string]: JsonValue;
  };
  /**
   * Stores in which the erasure continues after the reply.
   */
  pending: string[];
  /**
   * Ids of open batches with unanswered requests that contain erased text: the provider's id, or mnemon's while the provider has given none. mnemon drops the answers to these requests; the providers keep the text as long as they keep the batches.
   */
  provider_batches: string[];
  /**
   * Generations that are not live. Their rows have no erased content; their vectors, which hold no text, stay until the generations are dropped.
   */
  generations: string[];
  /**
   * With `verify`: number of remaining items, by store.
   */
  left?: {
    [k: string]: JsonValue;
  };
  /**
   * With `text`: number of the user's entries that contain the text, by store. `statistics` is the number of columns whose statistics in PostgreSQL contain it; these have samples of the values of all users.
   */
  found?: {
    [k: string]: JsonValue;
  };
}
/**
 * Erase the user, or one conversation, for good.
 */
export interface EraseV1 {
  /**
   * Conversation to erase. Default: all content of the user.
   */
  conversation?: string | null;
  /**
   * Erase nothing; count the items of the user, or of `conversation`, that each store still has.
   */
  verify?: boolean;
  /**
   * With `verify`: text to search for, as a whole and regardless of letter case, in all stored texts of the user, also those stored after the erasure.
   */
  text?: string | null;
}
/**
 * The fact that was removed.
 *
 * If `id` is absent, nothing was removed, and `candidates` lists the facts that may be meant.
 */
export interface ForgetReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Id of the fact that was removed; absent if nothing was removed.
   */
  id?: string;
  /**
   * Text of the removed fact.
   */
  text?: string;
  /**
   * Request to `save` that restores the removed fact under a new id, without its former versions; absent if nothing was removed, or if the fact had expired.
   */
  restore?: SaveV1;
  /**
   * Facts that the query may mean, best first, at most five; empty if a fact was removed.
   */
  candidates: FactCandidate[];
}
/**
 * Propose a fact; `dedupe` decides whether it is saved.
 */
export interface SaveV1 {
  /**
   * Text of the fact, one sentence.
   */
  text: string;
  /**
   * Kind of the fact. Default: derived from the words of the text.
   */
  kind?: ("user_fact" | "preference" | "event" | "conversation_insight" | "conversation_summary") | null;
  /**
   * Tier of the fact. Default: `working` if `expires_at` is given, or if the text names an end, such as `until Friday`, or a passing state, and nothing lasting, such as an allergy; otherwise derived from the kind and the words of the text.
   */
  tier?: ("profile" | "working" | "archive") | null;
  /**
   * Importance: 1 to 10, or `high`, `normal`, `low`. Default: derived from the words of the text.
   */
  importance?: number | ("high" | "normal" | "low") | null;
  /**
   * Time from which the fact is not shown; a bare date is midnight UTC. Default: for a working fact, the end that the text names, else the setting `limits.working_days`; for other facts, never.
   */
  expires_at?: string | Date | null;
}
/**
 * A fact that the query may mean.
 */
export interface FactCandidate {
  /**
   * Id of the fact; send it as `id` to change or remove the fact.
   */
  id: string;
  /**
   * Text of the fact.
   */
  text: string;
  /**
   * Relevance to the query, 0 to 1.
   */
  score: number;
}
/**
 * Forget a fact, named by its id or by a query that clearly means one fact.
 */
export interface ForgetV1 {
  /**
   * Id of the fact; give either `id` or `query`.
   */
  id?: string | null;
  /**
   * Words that name the fact, instead of its id; the first 500 characters count. A fact is removed if it is the only one with exactly the words of the query. A fact is also removed if it has all content words of the query in the same sense, if no other fact fits almost as well, if these words are about a third of its words or more, and if each of its clauses, except those of only names, dates and numbers, has one of them. Common words alone, and a single adjective, number or date, remove nothing, except in a question phrase such as `where I live`, which removes a fact that says only the answer. If nothing is removed, the reply has `candidates`, or the error `not_found` if no fact has a word of the query and a search finds none.
   */
  query?: string | null;
}
/**
 * A fact with its former versions; or a message; or a document; or a summary.
 */
export interface GetReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Current version of the fact.
   */
  fact?: StoredFact;
  /**
   * Former versions of the fact, newest first, at most 99.
   */
  versions: Fact[];
  /**
   * Message with this id, if the id names a message.
   */
  message?: ConversationMessage;
  /**
   * Document with this id, if the id names a document.
   */
  document?: DocumentText;
  /**
   * Summary with this id, if the id names a summary.
   */
  summary?: SummaryText;
}
/**
 * A stored fact, with its id.
 */
export interface StoredFact {
  /**
   * Text of the fact, one sentence.
   */
  text: string;
  /**
   * Kind of the fact: `user_fact` (who the user is, has or knows), `preference` (what the user likes, wants or is used to), `event` (something that happens or has happened at a time), `conversation_insight` (how the user thinks or works) or `conversation_summary` (an outcome of a conversation).
   */
  kind?: "user_fact" | "preference" | "event" | "conversation_insight" | "conversation_summary";
  /**
   * Tier of the fact: `profile` is for every context, `working` for every context until `expires_at`, and `archive` for contexts whose query finds the fact.
   */
  tier?: "profile" | "working" | "archive";
  /**
   * Importance, 1 to 10; 8 and above is high, 3 and below is low.
   */
  importance?: number;
  /**
   * Time from which the fact is not shown.
   */
  expires_at?: string;
  /**
   * Names of people, places and things that a model extracted with the fact, spelled as in the text. Search links facts that share a name.
   *
   * @maxItems 20
   */
  names?: string[];
  /**
   * Short id, unique per user: `pf_001`.
   */
  id: string;
  /**
   * Time at which the fact was first saved.
   */
  saved_at?: string;
  /**
   * Relevance to a query. No verb sets this field; hits of `search` have their own `score`.
   */
  score?: number;
  /**
   * Names, numbers and dates in the fact that its source messages do not support, if any; a model may have invented them.
   */
  unsupported?: string[];
}
/**
 * Content of one version of a fact.
 */
export interface Fact {
  /**
   * Text of the fact, one sentence.
   */
  text: string;
  /**
   * Kind of the fact: `user_fact` (who the user is, has or knows), `preference` (what the user likes, wants or is used to), `event` (something that happens or has happened at a time), `conversation_insight` (how the user thinks or works) or `conversation_summary` (an outcome of a conversation).
   */
  kind?: "user_fact" | "preference" | "event" | "conversation_insight" | "conversation_summary";
  /**
   * Tier of the fact: `profile` is for every context, `working` for every context until `expires_at`, and `archive` for contexts whose query finds the fact.
   */
  tier?: "profile" | "working" | "archive";
  /**
   * Importance, 1 to 10; 8 and above is high, 3 and below is low.
   */
  importance?: number;
  /**
   * Time from which the fact is not shown.
   */
  expires_at?: string;
  /**
   * Names of people, places and things that a model extracted with the fact, spelled as in the text. Search links facts that share a name.
   *
   * @maxItems 20
   */
  names?: string[];
}
/**
 * A stored message, with its conversation; `task_id` is never set.
 */
export interface ConversationMessage {
  /**
   * Role of the speaker.
   */
  role: "user" | "assistant" | "tool" | "system";
  /**
   * Text to show to the model.
   */
  content: string;
  /**
   * Name of the speaker.
   */
  name?: string;
  /**
   * Log position of the event.
   */
  seq: number;
  /**
   * Event id of the message.
   */
  id: string;
  /**
   * Time at which the message was sent.
   */
  sent_at: string;
  /**
   * Id of the bot's task that a tool result belongs to.
   */
  task_id?: string;
  /**
   * Conversation of the message.
   */
  conversation: string;
}
/**
 * A document with its text, or with a part of a long text.
 */
export interface DocumentText {
  /**
   * Id of the document.
   */
  document_id: string;
  /**
   * Title of the document.
   */
  title?: string;
  /**
   * Source of the document: a path or a URL.
   */
  source?: string;
  /**
   * Name of the document's collection, for example that of a folder or a repository.
   */
  collection?: string;
  /**
   * For a file of an indexed folder: whether that is a plain folder or a repository.
   */
  origin?: "folder" | "repository";
  /**
   * SHA-256 of the text in UTF-8, in hexadecimal; older documents have none.
   */
  digest?: string;
  /**
   * Text from `offset` on, at most 100,000 characters.
   */
  text: string;
  /**
   * Offset of `text` in the whole text, in characters.
   */
  offset?: number;
  /**
   * Length of the whole text, in characters.
   */
  length: number;
  /**
   * Value of `offset` for the next part of the text; absent at the end.
   */
  next_offset?: number;
}
/**
 * A summary, with the range of messages that it covers.
 */
export interface SummaryText {
  /**
   * Id of the summary.
   */
  id: string;
  /**
   * Conversation of the summary.
   */
  conversation: string;
  /**
   * First log position that the summary covers.
   */
  from_seq: number;
  /**
   * Last log position that the summary covers.
   */
  to_seq: number;
  /**
   * Text of the summary.
   */
  text: string;
  /**
   * Time at which the summary was written.
   */
  at: string;
}
/**
 * Return one whole fact, message, document or summary, such as one that a hit shows in part.
 *
 * A long document is returned in parts.
 */
export interface GetV1 {
  /**
   * Id of the fact, message, document or summary; for a hit, its `id`.
   */
  id: string;
  /**
   * Log position of an event that the reply should include, such as the one that a publish returned. The request waits for the event, at most as long as the setting `wait_for_log_ms`. If `seen_seq` of the reply is lower, the reply does not include the event.
   */
  min_seq?: number | null;
  /**
   * Scope of the id; for a hit, its `scope`. Default: the first of `memories`, `messages`, `documents` and `summaries` that has the id.
   */
  scope?: ("memories" | "messages" | "documents") | null;
  /**
   * For a document: offset of the first character to return, from 0.
   */
  offset?: number;
}
/**
 * Return one whole fact, message, document or summary, such as one that a hit shows in part.
 *
 * A long document is returned in parts.
 */
export interface GetV2 {
  /**
   * Id of the fact, message, document or summary; for a hit, its `id`.
   */
  id: string;
  /**
   * Log position of an event that the reply should include, such as the one that a publish returned. The request waits for the event, at most as long as the setting `wait_for_log_ms`. If `seen_seq` of the reply is lower, the reply does not include the event.
   */
  min_seq?: number | null;
  /**
   * Scope of the id; for a hit, its `scope`. Default: the first of `memories`, `messages`, `documents` and `summaries` that has the id.
   */
  scope?: ("memories" | "messages" | "documents" | "summaries") | null;
  /**
   * For a document: offset of the first character to return, from 0.
   */
  offset?: number;
}
/**
 * Messages of the conversation, oldest first.
 */
export interface HistoryReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Id of the conversation that is shown.
   */
  conversation?: string;
  /**
   * Messages, oldest first. After an answer that called tools, an entry of the role `system` with the same `seq` names these tools. The first entry is always a message.
   */
  messages: StoredMessage[];
  /**
   * Number of older entries within `limit` that are left out because the reply has no room for them: a reply is limited in bytes by `max_payload` of the NATS server. Absent if none are left out, and in replies of older versions, which refuse the request instead.
   */
  left_out?: number;
}
/**
 * A stored message, with its log position and event id.
 */
export interface StoredMessage {
  /**
   * Role of the speaker.
   */
  role: "user" | "assistant" | "tool" | "system";
  /**
   * Text to show to the model.
   */
  content: string;
  /**
   * Name of the speaker.
   */
  name?: string;
  /**
   * Log position of the event.
   */
  seq: number;
  /**
   * Event id of the message.
   */
  id: string;
  /**
   * Time at which the message was sent.
   */
  sent_at: string;
  /**
   * Id of the bot's task that a tool result belongs to.
   */
  task_id?: string;
}
/**
 * Return the last messages of a conversation, or with `before` the last ones before a log position.
 */
export interface HistoryV1 {
  /**
   * Maximum number of entries of `messages`, those of the role `system` included.
   */
  limit?: number;
  /**
   * Id of the conversation. Default: the current conversation.
   */
  conversation?: string | null;
  /**
   * Return only messages before this log position. To read a conversation page by page, newest first, give the `seq` of the first message of the previous reply, and the `conversation` of that reply, until a reply has no messages. Default: no restriction.
   */
  before?: number | null;
  /**
   * Log position of an event that the reply should include, such as the one that a publish returned. The request waits for the event, at most as long as the setting `wait_for_log_ms`. If `seen_seq` of the reply is lower, the reply does not include the event.
   */
  min_seq?: number | null;
  /**
   * Former time or log position as of which to answer. Requires a snapshot that `mnemon rebuild --until` has made; without one, the error is `not_found`. Default: now.
   */
  as_of?: string | Date | number | null;
}
/**
 * User's data, after the change if the request sets fields.
 */
export interface ProfileReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Fields with their values.
   */
  profile: {
    [k: string]: JsonValue;
  };
}
/**
 * Return the user's data, or set fields of it.
 */
export interface ProfileV1 {
  /**
   * Fields to set; the value `null` removes a field.
   */
  fields?: {
    [k: string]: JsonValue;
  } | null;
  /**
   * Log position of an event that the reply should include, such as the one that a publish returned. The request waits for the event, at most as long as the setting `wait_for_log_ms`. If `seen_seq` of the reply is lower, the reply does not include the event.
   */
  min_seq?: number | null;
}
/**
 * One page of facts.
 */
export interface FactsReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Facts in the order of the tiers `profile`, `working`, `archive`; in each tier the most important first, and of equally important facts the newest.
   */
  facts: StoredFact[];
  /**
   * Number of facts on all pages, of the requested tier or of all tiers.
   */
  total?: number;
  /**
   * Value of `after` for the next page; absent on the last page.
   */
  next?: string;
}
/**
 * Return a page of the facts that have not expired, in the order of the tiers.
 */
export interface ReadV1 {
  /**
   * Tier of the facts to return. Default: all tiers.
   */
  tier?: ("profile" | "working" | "archive") | null;
  /**
   * Maximum number of facts of one page.
   */
  limit?: number;
  /**
   * Log position of an event that the reply should include, such as the one that a publish returned. The request waits for the event, at most as long as the setting `wait_for_log_ms`. If `seen_seq` of the reply is lower, the reply does not include the event.
   */
  min_seq?: number | null;
  /**
   * `next` of the previous page. Default: the first page.
   */
  after?: string | null;
}
/**
 * Decision of `dedupe` on the proposed fact.
 */
export interface SaveReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * `saved`: the fact is new; `updated`: the fact changed a known fact; `confirmed`: a known fact says the same and keeps its text; `rejected`: the fact is not kept.
   */
  decision?: "saved" | "updated" | "confirmed" | "rejected";
  /**
   * Id of the fact that was saved, updated or confirmed; if the fact was rejected because of a known fact, the id of that fact.
   */
  id?: string;
  /**
   * Human-readable reason for a rejection.
   */
  reason?: string;
  /**
   * Rule that rejected the fact.
   */
  rule?:
    | "too_short"
    | "too_long"
    | "question"
    | "command"
    | "secret"
    | "duplicate"
    | "expired"
    | "limit"
    | "not_found"
    | "superseded"
    | "requested"
    | "other";
}
/**
 * Hits of a search, best first.
 */
export interface SearchReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Hits, best first.
   */
  hits: SearchHit[];
  /**
   * Scopes that could not be searched. `embedding`: the query could not be embedded, so the search used words only. `reranker`: the configured reranker did not order the hits.
   */
  degraded: string[];
}
/**
 * A fact, message or document that a search found.
 */
export interface SearchHit {
  /**
   * Id of the fact, message or document.
   */
  id: string;
  /**
   * Scope in which the hit was found.
   */
  scope: "memories" | "messages" | "documents";
  /**
   * Text of the hit; a message longer than 4,000 characters is cut and ends in ….
   */
  text: string;
  /**
   * Relevance to the query; higher is better.
   */
  score: number;
  /**
   * Time at which the message was sent, the fact was first saved, or the summary was written; absent for documents.
   */
  at?: string;
  /**
   * Components of the score by name, if `explain` is set.
   */
  parts?: {
    [k: string]: number;
  };
  /**
   * For a document: its title, source and collection, and the lines of the hit.
   */
  passage?: DocumentPassage;
}
/**
 * The lines of a document that a hit shows, and the title, source and collection of the document.
 */
export interface DocumentPassage {
  /**
   * Title of the document.
   */
  title?: string;
  /**
   * Source of the document: a path or a URL.
   */
  source?: string;
  /**
   * Name of the document's collection, for example that of a folder or a repository.
   */
  collection?: string;
  /**
   * Number of the first line of the hit in the document, from 1.
   */
  first_line: number;
  /**
   * Number of the last line of the hit in the document.
   */
  last_line: number;
}
/**
 * Search facts, messages or documents for a query.
 */
export interface SearchV1 {
  /**
   * Query, in any language; its first 10,000 characters count.
   */
  query: string;
  /**
   * Maximum number of hits. Default: the setting `retrieval.limit`, 5 unless changed.
   */
  limit?: number;
  /**
   * Minimum score of a hit, 0 to 1. Default: the setting `retrieval.threshold`. If neither is set, messages that probably do not answer a question are left out, and other items with less than a quarter of the best score of their scope, unless a reranker scored them; 0 keeps them.
   */
  threshold?: number | null;
  /**
   * Scopes to search: `memories` (facts), `messages` or `documents`.
   */
  scope?: ("memories" | "messages" | "documents")[];
  /**
   * Return for each hit the components of its score, in `parts`.
   */
  explain?: boolean;
  /**
   * Log position of an event that the reply should include, such as the one that a publish returned. The request waits for the event, at most as long as the setting `wait_for_log_ms`. If `seen_seq` of the reply is lower, the reply does not include the event.
   */
  min_seq?: number | null;
  /**
   * Former time or log position as of which to answer. Requires a snapshot that `mnemon rebuild --until` has made; without one, the error is `not_found`. Default: now.
   */
  as_of?: string | Date | number | null;
  /**
   * Time to which words of the query such as `yesterday` are relative. Default: the time of the request, or that of `as_of`. Whether facts have expired does not depend on it.
   */
  now?: string | Date | null;
  /**
   * Search only documents of this collection, such as a repository. A request with `collection` or `origin`, and without `scope`, searches only documents. Default: no restriction.
   */
  collection?: string | null;
  /**
   * Search only files of indexed plain folders (`folder`) or repositories (`repository`). Default: no restriction.
   */
  origin?: ("folder" | "repository") | null;
}
/**
 * Hits of a search, best first.
 */
export interface SearchReplyV2 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Hits, best first.
   */
  hits: SearchHitV2[];
  /**
   * Scopes that could not be searched. `embedding`: the query could not be embedded, so the search used words only. `reranker`: the configured reranker did not order the hits.
   */
  degraded: string[];
}
/**
 * A fact, message, document or summary that a search found.
 */
export interface SearchHitV2 {
  /**
   * Id of the fact, message, document or summary.
   */
  id: string;
  /**
   * Scope in which the hit was found.
   */
  scope: "memories" | "messages" | "documents" | "summaries";
  /**
   * Text of the hit; a message longer than 4,000 characters is cut and ends in ….
   */
  text: string;
  /**
   * Relevance to the query; higher is better.
   */
  score: number;
  /**
   * Time at which the message was sent, the fact was first saved, or the summary was written; absent for documents.
   */
  at?: string;
  /**
   * Components of the score by name, if `explain` is set.
   */
  parts?: {
    [k: string]: number;
  };
  /**
   * For a document: its title, source and collection, and the lines of the hit.
   */
  passage?: DocumentPassage;
}
/**
 * Search facts, messages, documents or summaries for a query.
 *
 * Version 2 also searches summaries and levels of memory, and resolves follow-up questions.
 */
export interface SearchV2 {
  /**
   * Query, in any language; its first 10,000 characters count.
   */
  query: string;
  /**
   * Maximum number of hits. Default: the setting `retrieval.limit`, 5 unless changed.
   */
  limit?: number;
  /**
   * Minimum score of a hit, 0 to 1. Default: the setting `retrieval.threshold`. If neither is set, messages that probably do not answer a question are left out, and other items with less than a quarter of the best score of their scope, unless a reranker scored them; 0 keeps them.
   */
  threshold?: number | null;
  /**
   * Scopes to search: `memories` (facts), `messages`, `documents`, `summaries`, or a level of memory. `short`: the newest messages of the conversation, as many as the setting `recent_messages`. `medium`: summaries and working facts. `long`: profile and archived facts, all other messages, and documents.
   */
  scope?: ("memories" | "messages" | "documents" | "summaries" | "short" | "medium" | "long")[];
  /**
   * Return for each hit the components of its score, in `parts`.
   */
  explain?: boolean;
  /**
   * Log position of an event that the reply should include, such as the one that a publish returned. The request waits for the event, at most as long as the setting `wait_for_log_ms`. If `seen_seq` of the reply is lower, the reply does not include the event.
   */
  min_seq?: number | null;
  /**
   * Former time or log position as of which to answer. Requires a snapshot that `mnemon rebuild --until` has made; without one, the error is `not_found`. Default: now.
   */
  as_of?: string | Date | number | null;
  /**
   * Time to which words of the query such as `yesterday` are relative. Default: the time of the request, or that of `as_of`. Whether facts have expired does not depend on it.
   */
  now?: string | Date | null;
  /**
   * Search only documents of this collection, such as a repository. A request with `collection` or `origin`, and without `scope`, searches only documents. Default: no restriction.
   */
  collection?: string | null;
  /**
   * Search only files of indexed plain folders (`folder`) or repositories (`repository`). Default: no restriction.
   */
  origin?: ("folder" | "repository") | null;
  /**
   * Conversation whose newest messages `short` searches and `long` leaves out. Default: the current conversation.
   */
  conversation?: string | null;
  /**
   * Last messages before the query, oldest first, at most four. A query that depends on them, such as `and when was that?`, is searched with their words too. Only the first 400 characters of each message are used.
   */
  preceding?: string[] | null;
}
/**
 * Counts of stored messages, the latest rejected events, and the outcome of the requested event.
 */
export interface StatusReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Id of the current conversation.
   */
  conversation?: string;
  /**
   * Number of conversations with messages.
   */
  conversations: number;
  /**
   * Number of messages in all conversations.
   */
  messages: number;
  /**
   * Earliest time of a stored message.
   */
  first_at?: string;
  /**
   * Latest time of a stored message.
   */
  last_at?: string;
  /**
   * Last position of the log; events after `seen_seq` are not reflected yet.
   */
  log_seq: number;
  /**
   * The user's latest events that `persist` rejected, newest first; at most ten.
   */
  rejected: RejectedEvent[];
  /**
   * Outcome of the event at `event_seq`; absent if the request has no `event_seq` above 0.
   */
  outcome?: EventOutcome;
}
/**
 * An event that was rejected: the event is a dead letter and changed nothing.
 */
export interface RejectedEvent {
  /**
   * Log position of the event.
   */
  seq: number;
  /**
   * Part of the subject after tenant and user, such as `-.message.v1`.
   */
  event: string;
  /**
   * Reason as a code, such as `invalid_body`.
   */
  reason: string;
  /**
   * Human-readable reason; for an invalid body, it names the invalid field.
   */
  error: string;
  /**
   * Time at which the event was rejected.
   */
  at: string;
}
/**
 * Outcome of an event: applied, rejected or waiting.
 */
export interface EventOutcome {
  /**
   * Log position of the event.
   */
  seq: number;
  /**
   * `applied`: the event was handled; a later event may have removed its effect, or the event was rejected and its dead letter was removed. `rejected`: the event is a dead letter. `waiting`: the event is in the log and not handled yet.
   */
  outcome: "applied" | "rejected" | "waiting";
  /**
   * Reason for the rejection, if the event was rejected.
   */
  rejected?: RejectedEvent;
}
/**
 * Return counts of the user's messages, the last log position, rejected events and an event's outcome.
 */
export interface StatusV1 {
  /**
   * Log position of an event that the reply should include, such as the one that a publish returned. The request waits for the event, at most as long as the setting `wait_for_log_ms`. If `seen_seq` of the reply is lower, the reply does not include the event.
   */
  min_seq?: number | null;
  /**
   * Return the outcome of the user's event at this log position, which a publish returned. The request waits for the event as for `min_seq`. A position beyond the end of the log, or with an event whose subject does not name the user, is an error; 0 returns no outcome.
   */
  event_seq?: number | null;
}
/**
 * All tasks of the user after the action, oldest first.
 */
export interface TasksReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Tasks, oldest first.
   */
  tasks: Task[];
  /**
   * Id of the task that was added, done or removed.
   */
  task_id?: string;
}
/**
 * Something that the user means to do.
 */
export interface Task {
  /**
   * Id of the task.
   */
  task_id: string;
  /**
   * Text of the task.
   */
  text: string;
  /**
   * Time at which the task is due.
   */
  due_at?: string;
  /**
   * True if the task is done.
   */
  done?: boolean;
}
/**
 * List, add, finish or remove tasks of the user.
 */
export interface TasksV1 {
  /**
   * `list` returns the tasks, `add` adds one, `done` marks one as done, and `remove` removes one.
   */
  action?: "list" | "add" | "done" | "remove";
  /**
   * Id of the task. Default for `add`: a new UUID; `done` and `remove` require the id.
   */
  task_id?: string | null;
  /**
   * Text of the task, for `add`.
   */
  text?: string | null;
  /**
   * Time at which the task is due, for `add`; a bare date is midnight UTC.
   */
  due_at?: string | Date | null;
  /**
   * Log position of an event that the reply should include, such as the one that a publish returned. The request waits for the event, at most as long as the setting `wait_for_log_ms`. If `seen_seq` of the reply is lower, the reply does not include the event.
   */
  min_seq?: number | null;
}
/**
 * One fact, with its former versions.
 */
export interface FactReplyV1 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Current version of the fact.
   */
  fact?: StoredFact;
  /**
   * Former versions of the fact, newest first, at most 99.
   */
  versions: Fact[];
}
/**
 * Change a fact; omitted fields stay, except `expires_at`, which a new text or tier may change.
 */
export interface UpdateV1 {
  /**
   * Text of the fact, one sentence.
   */
  text?: string | null;
  /**
   * Kind of the fact.
   */
  kind?: ("user_fact" | "preference" | "event" | "conversation_insight" | "conversation_summary") | null;
  /**
   * Tier of the fact. A fact that moves to `working` keeps its `expires_at`, or gets one by the setting `limits.working_days` if it has none and the setting is not `null`. A fact that moves to another tier loses its `expires_at`.
   */
  tier?: ("profile" | "working" | "archive") | null;
  /**
   * Importance: 1 to 10, or `high`, `normal`, `low`.
   */
  importance?: number | ("high" | "normal" | "low") | null;
  /**
   * Time from which the fact is not shown; a bare date is midnight UTC. Default: the former time, with these exceptions. In the tier `working`, a new text that names an end, such as `until Friday`, sets the time. Any other new text removes the time if the former text names an end. A new tier may change the time; see `tier`.
   */
  expires_at?: string | Date | null;
  /**
   * Id of the fact.
   */
  id: string;
}
/**
 * The fact after the change.
 *
 * If `fact` is absent, nothing was changed, and `candidates` lists the facts that may be meant.
 */
export interface UpdateReplyV2 {
  /**
   * Log position up to which the reply reflects the user's events.
   */
  seen_seq: number;
  /**
   * Error, if there is no result.
   */
  error?: AskError;
  /**
   * Warnings, for example about a field of the request that the verb does not know and ignores.
   */
  warnings?: string[];
  /**
   * Current version of the fact.
   */
  fact?: StoredFact;
  /**
   * Former versions of the fact, newest first, at most 99.
   */
  versions: Fact[];
  /**
   * Facts that the query may mean, best first, at most five; empty if a fact was changed.
   */
  candidates: FactCandidate[];
}
/**
 * Change the fact with an id, or the fact that a query clearly means.
 *
 * Omitted fields stay, except `expires_at`, which a new text or tier may change.
 */
export interface UpdateV2 {
  /**
   * Text of the fact, one sentence.
   */
  text?: string | null;
  /**
   * Kind of the fact.
   */
  kind?: ("user_fact" | "preference" | "event" | "conversation_insight" | "conversation_summary") | null;
  /**
   * Tier of the fact. A fact that moves to `working` keeps its `expires_at`, or gets one by the setting `limits.working_days` if it has none and the setting is not `null`. A fact that moves to another tier loses its `expires_at`.
   */
  tier?: ("profile" | "working" | "archive") | null;
  /**
   * Importance: 1 to 10, or `high`, `normal`, `low`.
   */
  importance?: number | ("high" | "normal" | "low") | null;
  /**
   * Time from which the fact is not shown; a bare date is midnight UTC. Default: the former time, with these exceptions. In the tier `working`, a new text that names an end, such as `until Friday`, sets the time. Any other new text removes the time if the former text names an end. A new tier may change the time; see `tier`.
   */
  expires_at?: string | Date | null;
  /**
   * Id of the fact; give either `id` or `query`.
   */
  id?: string | null;
  /**
   * Words that name the fact, instead of its id; the first 500 characters count. A fact is changed if it is the only one with exactly the words of the query. A fact is also changed if it has all content words of the query in the same sense, if no other fact fits almost as well, if these words are about a third of its words or more, and if each of its clauses, except those of only names, dates and numbers, has one of them. Common words alone, and a single adjective, number or date, change nothing, except in a question phrase such as `where I live`, which changes a fact that says only the answer. If nothing is changed, the reply has `candidates`, or the error `not_found` if no fact has a word of the query and a search finds none.
   */
  query?: string | null;
}
/**
 * The batch has ended, and its results were read, as far as the provider delivered them.
 */
export interface BatchCompletedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the batch in mnemon.
   */
  batch_id: string;
  /**
   * Number of the user's windows that were answered.
   */
  answered: number;
  /**
   * Number of the user's windows without an answer.
   */
  failed?: number;
}
/**
 * The batch failed or was given up; its unanswered windows are sent again.
 */
export interface BatchFailedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the batch in mnemon.
   */
  batch_id: string;
  /**
   * Error of the provider, or mnemon's reason for giving up the batch.
   */
  error: string;
}
/**
 * A batch is about to be submitted. The event precedes the call, so that a crash is detected.
 */
export interface BatchIntendedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the batch in mnemon.
   */
  batch_id: string;
  /**
   * Name of the provider.
   */
  provider: string;
  /**
   * Name of the model.
   */
  model: string;
  /**
   * Consumer whose requests the batch has.
   */
  purpose: "extract" | "compact";
  /**
   * Windows of this user in the batch, at most 40; further events list the other windows.
   */
  windows: Window[];
  /**
   * Estimated maximum cost of the windows, in US dollars; absent if the tenant has no budget.
   */
  usd?: number | null;
}
/**
 * A range of messages of one conversation that one extraction reads.
 */
export interface Window {
  /**
   * Tenant of the conversation.
   */
  tenant: string;
  /**
   * User of the conversation.
   */
  user: string;
  /**
   * Id of the conversation.
   */
  conversation: string;
  /**
   * First log position of the window.
   */
  from_seq: number;
  /**
   * Last log position of the window.
   */
  to_seq: number;
  /**
   * Line number of the window in the batch, from 0.
   */
  line?: number | null;
  /**
   * Undecided pairs of facts that the request of this window also compares.
   */
  pairs?: FactPair[];
}
/**
 * Two facts that may say the same, for comparison by a language model.
 */
export interface FactPair {
  /**
   * Id of the fact with the newer text.
   */
  fact_id: string;
  /**
   * Id of the event that wrote the compared text of the newer fact.
   */
  version: string;
  /**
   * Id of the fact with the older text.
   */
  other_id: string;
  /**
   * Id of the event that wrote the compared text of the older fact.
   */
  other_version: string;
}
/**
 * The provider accepted the batch.
 */
export interface BatchSubmittedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the batch in mnemon.
   */
  batch_id: string;
  /**
   * Id of the batch at the provider.
   */
  provider_batch_id: string;
}
/**
 * All earlier messages and summaries of the conversation are removed; the conversation stays.
 */
export interface ClearedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
}
/**
 * A document, or a new version of a document, is added for search.
 */
export interface DocumentAddedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the document.
   */
  document_id: string;
  /**
   * Whole text of the document.
   */
  text: string;
  /**
   * Title of the document.
   */
  title?: string | null;
  /**
   * Source of the document: a path or a URL.
   */
  source?: string | null;
  /**
   * Name of the document's collection, for example that of a folder or a repository.
   */
  collection?: string | null;
  /**
   * Arbitrary data of the sender.
   */
  metadata?: {
    [k: string]: JsonValue;
  } | null;
  /**
   * For a file of an indexed folder: whether that is a plain folder or a repository.
   */
  origin?: ("folder" | "repository") | null;
  /**
   * SHA-256 of the text in UTF-8, in hexadecimal, to compare two texts.
   */
  digest?: string | null;
}
/**
 * A document is removed from search.
 */
export interface DocumentRemovedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the document.
   */
  document_id: string;
}
/**
 * A language model has compared the facts of an undecided pair; dedupe decides whether to merge them.
 */
export interface FactComparedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the fact with the newer text.
   */
  fact_id: string;
  /**
   * Id of the event that wrote the compared text of the newer fact.
   */
  version: string;
  /**
   * Id of the fact with the older text.
   */
  other_id: string;
  /**
   * Id of the event that wrote the compared text of the older fact.
   */
  other_version: string;
  /**
   * `same`: both facts say the same; `update`: the newer fact replaces the older fact; `different`: both facts are kept. Absent: the model gave no usable answer, and the pair is compared again, unless this was the third comparison.
   */
  relation?: ("same" | "update" | "different") | null;
  /**
   * Model and prompt of the comparison.
   */
  lineage?: Lineage;
}
/**
 * Sources of a fact or summary, and the program or model that derived it.
 */
export interface Lineage {
  /**
   * Log positions of the messages that the fact or summary was derived from.
   */
  sources?: number[];
  /**
   * Conversation of the source messages.
   */
  conversation?: string | null;
  /**
   * Program that derived the text: `tool` for the verbs `save` and `update`, `import` for `mnemon import`, or a consumer, such as `extract`.
   */
  extractor?: string | null;
  /**
   * Version of the prompt, if a model or the provider `offline` was asked.
   */
  prompt_version?: string | null;
  /**
   * Provider and model that were asked, such as `openai/gpt-5-mini` or `offline/rules`.
   */
  model?: string | null;
  /**
   * Id of the batch with the model's answer.
   */
  batch_id?: string | null;
  /**
   * Id of the model's answer that contained the fact. Facts of one answer do not replace each other.
   */
  answer?: string | null;
  /**
   * Names, numbers and dates in the text that the source messages do not support.
   */
  unsupported?: string[] | null;
}
/**
 * A proposal repeated a known fact.
 */
export interface FactConfirmedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * `redecide`, if the decision was repeated with other settings or rules.
   */
  by?: string | null;
  /**
   * Time of the original event, if the event was imported.
   */
  at?: string | Date | null;
  /**
   * Id of the known fact.
   */
  fact_id: string;
  /**
   * Reasons for the decision.
   */
  decision: Decision;
  /**
   * Source messages of the proposal that repeats the fact, and the program or model that derived it.
   */
  lineage?: Lineage;
}
/**
 * Reasons for a decision by dedupe.
 */
export interface Decision {
  /**
   * Id of the `fact.proposed` event.
   */
  proposal_id: string;
  /**
   * Id of the known fact that matched the proposal best, or that the proposal replaces.
   */
  nearest?: string | null;
  /**
   * Cosine similarity of the proposal and the `nearest` fact, -1 to 1.
   */
  similarity?: number | null;
  /**
   * Similarity above which two facts say the same, if alignment leaves the pair undecided.
   */
  duplicate_threshold?: number | null;
  /**
   * Similarity above which a proposal updates a fact, if alignment leaves the pair undecided.
   */
  update_threshold?: number | null;
  /**
   * Embedding model whose vectors gave the similarity.
   */
  embedding_model?: string | null;
  /**
   * Relation of the proposal to the `nearest` fact.
   */
  relation?: ("same" | "update" | "undecided" | "different") | null;
  /**
   * Human-readable reason for the decision; never quotes a fact.
   */
  evidence?: string | null;
  /**
   * Ids of facts that may say the same as the proposal. All these facts are kept; a language model can decide later.
   */
  undecided?: string[];
}
/**
 * A fact is evicted because a limit on the user's facts was reached.
 */
export interface FactEvictedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the fact.
   */
  fact_id: string;
  /**
   * Tier of the fact.
   */
  tier: "profile" | "working" | "archive";
  /**
   * Limit that was reached: the maximum number of facts of the tier, or of the user.
   */
  limit: number;
}
/**
 * A fact is removed because its `expires_at` has passed.
 */
export interface FactExpiredV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the fact.
   */
  fact_id: string;
  /**
   * Time at which the fact expired.
   */
  expires_at: string | Date;
}
/**
 * A fact is removed on request, in favour of another fact, or together with its source messages.
 */
export interface FactForgottenV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * `redecide`, if the decision was repeated with other settings or rules.
   */
  by?: string | null;
  /**
   * Time of the original event, if the event was imported.
   */
  at?: string | Date | null;
  /**
   * Id of the fact.
   */
  fact_id: string;
  /**
   * Reason for the removal; `superseded`: another fact replaces the fact. A fact that is removed together with its source messages has the default.
   */
  reason?:
    | "too_short"
    | "too_long"
    | "question"
    | "command"
    | "secret"
    | "duplicate"
    | "expired"
    | "limit"
    | "not_found"
    | "superseded"
    | "requested"
    | "other";
}
/**
 * Two facts were merged after a language model compared them; `fact.forgotten` of `merged_id` follows.
 */
export interface FactMergedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * `redecide`, if the decision was repeated with other settings or rules.
   */
  by?: string | null;
  /**
   * Time of the original event, if the event was imported.
   */
  at?: string | Date | null;
  /**
   * Id of the fact that is kept: the fact with the older text.
   */
  fact_id: string;
  /**
   * Id of the fact that was merged into the kept fact.
   */
  merged_id: string;
  /**
   * Relation of the newer fact to the older fact.
   */
  relation: "same" | "update";
  /**
   * The kept fact after the merge.
   */
  fact: Fact;
  /**
   * The kept fact before the merge.
   */
  former: Fact;
  /**
   * Id of the `fact.compared` event that caused the merge.
   */
  compared_id: string;
  /**
   * Model that compared the facts; if both facts have sources, also the sources of both.
   */
  lineage?: Lineage;
}
/**
 * A fact is proposed; dedupe decides whether it is kept.
 */
export interface FactProposedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Text of the fact, one sentence.
   */
  text: string;
  /**
   * Kind of the fact. Default: derived from the words of the text.
   */
  kind?: ("user_fact" | "preference" | "event" | "conversation_insight" | "conversation_summary") | null;
  /**
   * Tier of the fact. Default: `working` if `expires_at` is given, or if the text names an end, such as `until Friday`, or a passing state, and nothing lasting, such as an allergy; otherwise derived from the kind and the words of the text.
   */
  tier?: ("profile" | "working" | "archive") | null;
  /**
   * Importance, 1 to 10. Default: derived from the words of the text.
   */
  importance?: number | null;
  /**
   * Time from which the fact is not shown. Default: for a working fact, the end that the text names, else the setting `limits.working_days`; for other facts, never.
   */
  expires_at?: string | Date | null;
  /**
   * Id of the fact that the proposal is meant to replace. `dedupe` keeps that fact if the proposal is about something else, or only repeats a part of the fact. `dedupe` ignores an id that no live fact has.
   */
  supersedes?: string | null;
  /**
   * Names of people, places and things that a model extracted with the fact, spelled as in the text. Search links facts that share a name.
   *
   * @maxItems 20
   */
  names?: string[];
  /**
   * Source messages of the fact, and the program or model that derived it.
   */
  lineage?: Lineage;
}
/**
 * `dedupe` rejected a proposal.
 */
export interface FactRejectedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the `fact.proposed` event.
   */
  proposal_id: string;
  /**
   * Rule that rejected the proposal.
   */
  reason:
    | "too_short"
    | "too_long"
    | "question"
    | "command"
    | "secret"
    | "duplicate"
    | "expired"
    | "limit"
    | "not_found"
    | "superseded"
    | "requested"
    | "other";
  /**
   * Human-readable reason; never contains a secret.
   */
  detail?: string | null;
  /**
   * Id of the known fact that the rejection concerns, if any.
   */
  fact_id?: string | null;
}
/**
 * A new fact is saved.
 */
export interface FactSavedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * `redecide`, if the decision was repeated with other settings or rules.
   */
  by?: string | null;
  /**
   * Time of the original event, if the event was imported.
   */
  at?: string | Date | null;
  /**
   * Short id, unique per user: `pf_001`, `wk_014`, `ar_120`.
   */
  fact_id: string;
  /**
   * Content of the fact.
   */
  fact: Fact;
  /**
   * Reasons for the decision.
   */
  decision: Decision;
  /**
   * Source messages of the fact, and the program or model that derived it.
   */
  lineage?: Lineage;
}
/**
 * A fact is updated; its former version is kept.
 */
export interface FactUpdatedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * `redecide`, if the decision was repeated with other settings or rules.
   */
  by?: string | null;
  /**
   * Time of the original event, if the event was imported.
   */
  at?: string | Date | null;
  /**
   * Id of the fact.
   */
  fact_id: string;
  /**
   * The fact after the change.
   */
  fact: Fact;
  /**
   * The fact before the change.
   */
  former: Fact;
  /**
   * Reasons for the decision; absent if the content comes from the verb `update` or from a merge.
   */
  decision?: Decision | null;
  /**
   * Source messages of the new text, and the program or model that derived it.
   */
  lineage?: Lineage;
}
/**
 * A message of a conversation.
 */
export interface MessageV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Role of the speaker.
   */
  role: "user" | "assistant" | "tool" | "system";
  /**
   * Text of the message; may be empty, for example if `tool_calls` is given.
   */
  content: string;
  /**
   * Time of the message. Default: the time at which the log received the message.
   */
  sent_at?: string | Date | null;
  /**
   * Name of the speaker, if several people speak.
   */
  name?: string | null;
  /**
   * Id of the bot's task that a tool result belongs to; `context` accepts the id as `task_id`. The verb `tasks` does not list this task.
   */
  task_id?: string | null;
  /**
   * Calls of tools that the assistant made in this message.
   */
  tool_calls?: ToolCall[] | null;
  /**
   * Arbitrary data of the bot, which mnemon stores. The value `true` of the field `from_memory` says that the text came from memory, so no facts are extracted from it. A repeated `mnemon import telegram` reads the field `telegram`, which the import writes.
   */
  metadata?: {
    [k: string]: JsonValue;
  } | null;
}
/**
 * One call of a tool by the assistant.
 */
export interface ToolCall {
  /**
   * Name of the tool.
   */
  name: string;
  /**
   * Id of the call, as the model gave it.
   */
  id?: string | null;
  /**
   * Arguments of the call.
   */
  arguments?: JsonValue;
}
/**
 * A language model was called; version 1 lacks the purpose `chat` of version 2.
 */
export interface ModelCalledV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Name of the provider.
   */
  provider: string;
  /**
   * Name of the model.
   */
  model: string;
  /**
   * Purpose of the call: the consumer that made it.
   */
  purpose: "extract" | "compact";
  /**
   * Tokens of the call.
   */
  tokens: Tokens;
  /**
   * Id of the batch, if the call was part of one.
   */
  batch_id?: string | null;
  /**
   * Cost in US dollars at the prices in force at the time of the call; absent if the model had no price.
   */
  usd?: number | null;
}
/**
 * Numbers of tokens of a language model's call.
 */
export interface Tokens {
  /**
   * Tokens of the request, cached ones included.
   */
  input?: number;
  /**
   * Tokens of the request that the provider had cached.
   */
  cached?: number;
  /**
   * Tokens of the answer.
   */
  output?: number;
}
/**
 * A language model was called; the event has the tokens and the cost of the call.
 */
export interface ModelCalledV2 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Name of the provider.
   */
  provider: string;
  /**
   * Name of the model.
   */
  model: string;
  /**
   * Purpose of the call: the consumer that made it; `chat`: a chat through the proxy.
   */
  purpose: "extract" | "compact" | "chat";
  /**
   * Tokens of the call.
   */
  tokens: Tokens;
  /**
   * Id of the batch, if the call was part of one.
   */
  batch_id?: string | null;
  /**
   * Cost in US dollars at the prices in force at the time of the call; absent if the model had no price.
   */
  usd?: number | null;
}
/**
 * Fields of the user's data are set; other fields stay. `null` removes a field.
 */
export interface ProfileSetV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Fields with their values; a value can be any JSON value.
   */
  fields: {
    [k: string]: JsonValue;
  };
}
/**
 * A new conversation starts (`/new`).
 *
 * With `-` in the subject, the id of the conversation is a UUID that derives from the event's id.
 */
export interface StartedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Discard all earlier messages and summaries of the user, in every conversation, tool results included.
   */
  discard_previous?: boolean;
}
/**
 * Several summaries were merged into one.
 */
export interface SummaryMergedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the new summary.
   */
  summary_id: string;
  /**
   * Id of the conversation.
   */
  conversation: string;
  /**
   * Ids of the summaries that the new summary replaces.
   */
  merged: string[];
  /**
   * First log position that the summary covers.
   */
  from_seq: number;
  /**
   * Last log position that the summary covers.
   */
  to_seq: number;
  /**
   * Text of the summary.
   */
  text: string;
  /**
   * Model and prompt of the summary; `sources` is empty, because `merged` names the former summaries.
   */
  lineage?: Lineage;
}
/**
 * A summary of a range of messages was written.
 */
export interface SummaryWrittenV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the summary.
   */
  summary_id: string;
  /**
   * Id of the conversation.
   */
  conversation: string;
  /**
   * First log position that the summary covers.
   */
  from_seq: number;
  /**
   * Last log position that the summary covers.
   */
  to_seq: number;
  /**
   * Text of the summary.
   */
  text: string;
  /**
   * Source messages of the summary, and the program or model that wrote it.
   */
  lineage?: Lineage;
}
/**
 * A task of the user is added.
 */
export interface TaskAddedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the task.
   */
  task_id: string;
  /**
   * Text of the task.
   */
  text: string;
  /**
   * Time at which the task is due.
   */
  due_at?: string | Date | null;
}
/**
 * A task of the user is marked as done.
 */
export interface TaskDoneV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the task.
   */
  task_id: string;
}
/**
 * A task is removed from the user's list.
 */
export interface TaskRemovedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the task.
   */
  task_id: string;
}
/**
 * A user, or one conversation, was erased for good. The event has no content.
 */
export interface UserErasedV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Log position below which the content is erased; 9,007,199,254,740,991: all content before this event. Events after the erasure stay.
   */
  up_to_seq: number;
  /**
   * Conversation that was erased. Default: all content of the user.
   */
  conversation?: string | null;
  /**
   * If one conversation is erased: ranges of the log in which `-` referred to the erased conversation.
   */
  spans?: Span[];
  /**
   * For one conversation: log position of its last `started` event with `discard_previous`.
   */
  discarded_seq?: number | null;
  /**
   * For one conversation: log positions of facts and proposals that were derived from this conversation alone.
   */
  derived?: number[];
}
/**
 * A range of log positions.
 */
export interface Span {
  /**
   * First position of the range.
   */
  from_seq: number;
  /**
   * First position after the range.
   */
  to_seq: number;
}
/**
 * A window of a conversation is finished: read for facts, found to have nothing to read, or given up.
 *
 * Only a window that was given up can be read again, by a redrive of its dead letter.
 */
export interface WindowAnsweredV1 {
  /**
   * Identity of the event: a second event of the user with the same id is a copy and changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is `LOG:<sequence>`.
   */
  id?: string | null;
  /**
   * Id of the conversation.
   */
  conversation: string;
  /**
   * First log position of the window.
   */
  from_seq: number;
  /**
   * Last log position of the window.
   */
  to_seq: number;
  /**
   * `proposed`: facts were proposed; `nothing`: no facts were proposed; `gone`: the messages were removed, or none of them is worth reading; `dead`: the window could not be read and is a dead letter.
   */
  outcome: "proposed" | "nothing" | "gone" | "dead";
  /**
   * Number of facts that were proposed.
   */
  proposed?: number;
  /**
   * True if the answer was invalid JSON that was repaired.
   */
  repaired?: boolean;
  /**
   * Number of facts in the answer that cannot be used.
   */
  unusable?: number | null;
  /**
   * Number of usable facts beyond the limit of 50. A dead letter keeps their texts, except those with secrets.
   */
  beyond_limit?: number | null;
  /**
   * Reason in the dead letter, if the outcome is `dead`.
   */
  reason?: string | null;
  /**
   * Provider and model of the last request, if the outcome is `dead`.
   */
  model?: string | null;
  /**
   * Number of failed attempts before the last one, if the outcome is `dead`.
   */
  attempts?: number | null;
  /**
   * Id of the batch with the model's answer.
   */
  batch_id?: string | null;
}

/** The verbs, with the newest request of each. */
export interface Requests {
  context: ContextV1;
  document: DocumentV1;
  erase: EraseV1;
  forget: ForgetV1;
  get: GetV2;
  history: HistoryV1;
  profile: ProfileV1;
  read: ReadV1;
  save: SaveV1;
  search: SearchV2;
  status: StatusV1;
  tasks: TasksV1;
  update: UpdateV2;
}

/** The newest reply of each verb. */
export interface Replies {
  context: ContextReplyV1;
  document: DocumentReplyV1;
  erase: EraseReplyV1;
  forget: ForgetReplyV1;
  get: GetReplyV1;
  history: HistoryReplyV1;
  profile: ProfileReplyV1;
  read: FactsReplyV1;
  save: SaveReplyV1;
  search: SearchReplyV2;
  status: StatusReplyV1;
  tasks: TasksReplyV1;
  update: UpdateReplyV2;
}

/** The events that bots publish. */
export interface ChatEvents {
  message: MessageV1;
  started: StartedV1;
  cleared: ClearedV1;
}

/** Schemas of the versions of each event, from version 1 on; they refuse unknown fields. */
export const EVENT_SCHEMAS: Record<keyof ChatEvents, object[]> = {
  message: [
    { "$defs": { "JsonValue": {}, "ToolCall": { "properties": { "name": { "type": "string" }, "id": { "anyOf": [ { "type": "string" }, { "type": "null" } ] }, "arguments": { "$ref": "#/$defs/JsonValue" } }, "required": [ "name" ], "type": "object", "additionalProperties": false } }, "properties": { "id": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] }, "role": { "enum": [ "user", "assistant", "tool", "system" ], "type": "string" }, "content": { "type": "string" }, "sent_at": { "anyOf": [ { "format": "date-time", "type": "string" }, { "type": "null" } ] }, "name": { "anyOf": [ { "type": "string" }, { "type": "null" } ] }, "task_id": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] }, "tool_calls": { "anyOf": [ { "items": { "$ref": "#/$defs/ToolCall" }, "type": "array" }, { "type": "null" } ] }, "metadata": { "anyOf": [ { "additionalProperties": { "$ref": "#/$defs/JsonValue" }, "type": "object" }, { "type": "null" } ] } }, "required": [ "role", "content" ], "type": "object", "additionalProperties": false },
  ],
  started: [
    { "properties": { "id": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] }, "discard_previous": { "type": "boolean" } }, "type": "object", "additionalProperties": false },
  ],
  cleared: [
    { "properties": { "id": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] } }, "type": "object", "additionalProperties": false },
  ],
};

/** Schemas of the versions of each request, from version 1 on; they refuse unknown fields. */
export const REQUEST_SCHEMAS: Record<keyof Requests, object[]> = {
  context: [
    { "properties": { "query": { "anyOf": [ { "type": "string" }, { "type": "null" } ] }, "format": { "enum": [ "messages", "xml", "blocks", "markdown" ], "type": "string" }, "budget": { "anyOf": [ { "minimum": 1, "type": "integer" }, { "type": "null" } ] }, "min_seq": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "as_of": { "anyOf": [ { "format": "date-time", "type": "string" }, { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "task_id": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] }, "conversation": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] }, "preceding": { "anyOf": [ { "items": { "type": "string" }, "maxItems": 4, "type": "array" }, { "type": "null" } ] }, "now": { "anyOf": [ { "format": "date-time", "type": "string" }, { "type": "null" } ] } }, "type": "object", "additionalProperties": false },
  ],
  document: [
    { "properties": { "action": { "enum": [ "list", "add", "remove" ], "type": "string" }, "document_id": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] }, "title": { "anyOf": [ { "type": "string" }, { "type": "null" } ] }, "text": { "anyOf": [ { "type": "string" }, { "type": "null" } ] }, "source": { "anyOf": [ { "type": "string" }, { "type": "null" } ] }, "collection": { "anyOf": [ { "type": "string" }, { "type": "null" } ] }, "min_seq": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "origin": { "anyOf": [ { "enum": [ "folder", "repository" ], "type": "string" }, { "type": "null" } ] }, "limit": { "maximum": 1000, "minimum": 0, "type": "integer" }, "after": { "anyOf": [ { "type": "string" }, { "type": "null" } ] } }, "type": "object", "additionalProperties": false },
  ],
  erase: [
    { "properties": { "conversation": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] }, "verify": { "type": "boolean" }, "text": { "anyOf": [ { "type": "string" }, { "type": "null" } ] } }, "type": "object", "additionalProperties": false },
  ],
  forget: [
    { "properties": { "id": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] }, "query": { "anyOf": [ { "type": "string" }, { "type": "null" } ] } }, "type": "object", "additionalProperties": false },
  ],
  get: [
    { "properties": { "id": { "maxLength": 255, "minLength": 1, "type": "string" }, "min_seq": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "scope": { "anyOf": [ { "enum": [ "memories", "messages", "documents" ], "type": "string" }, { "type": "null" } ] }, "offset": { "minimum": 0, "type": "integer" } }, "required": [ "id" ], "type": "object", "additionalProperties": false },
    { "properties": { "id": { "maxLength": 255, "minLength": 1, "type": "string" }, "min_seq": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "scope": { "anyOf": [ { "enum": [ "memories", "messages", "documents", "summaries" ], "type": "string" }, { "type": "null" } ] }, "offset": { "minimum": 0, "type": "integer" } }, "required": [ "id" ], "type": "object", "additionalProperties": false },
  ],
  history: [
    { "properties": { "limit": { "maximum": 1000, "minimum": 1, "type": "integer" }, "conversation": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] }, "before": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "min_seq": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "as_of": { "anyOf": [ { "format": "date-time", "type": "string" }, { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] } }, "type": "object", "additionalProperties": false },
  ],
  profile: [
    { "$defs": { "JsonValue": {} }, "properties": { "fields": { "anyOf": [ { "additionalProperties": { "$ref": "#/$defs/JsonValue" }, "type": "object" }, { "type": "null" } ] }, "min_seq": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] } }, "type": "object", "additionalProperties": false },
  ],
  read: [
    { "properties": { "tier": { "anyOf": [ { "enum": [ "profile", "working", "archive" ], "type": "string" }, { "type": "null" } ] }, "limit": { "maximum": 1000, "minimum": 1, "type": "integer" }, "min_seq": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "after": { "anyOf": [ { "type": "string" }, { "type": "null" } ] } }, "type": "object", "additionalProperties": false },
  ],
  save: [
    { "properties": { "text": { "type": "string" }, "kind": { "anyOf": [ { "enum": [ "user_fact", "preference", "event", "conversation_insight", "conversation_summary" ], "type": "string" }, { "type": "null" } ] }, "tier": { "anyOf": [ { "enum": [ "profile", "working", "archive" ], "type": "string" }, { "type": "null" } ] }, "importance": { "anyOf": [ { "type": "integer" }, { "enum": [ "high", "normal", "low" ], "type": "string" }, { "type": "null" } ] }, "expires_at": { "anyOf": [ { "format": "date-time", "type": "string" }, { "type": "null" }, { "type": "string", "format": "date" } ] } }, "required": [ "text" ], "type": "object", "additionalProperties": false },
  ],
  search: [
    { "properties": { "query": { "type": "string" }, "limit": { "maximum": 100, "minimum": 1, "type": "integer" }, "threshold": { "anyOf": [ { "maximum": 1, "minimum": 0, "type": "number" }, { "type": "null" } ] }, "scope": { "items": { "enum": [ "memories", "messages", "documents" ], "type": "string" }, "type": "array" }, "explain": { "type": "boolean" }, "min_seq": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "as_of": { "anyOf": [ { "format": "date-time", "type": "string" }, { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "now": { "anyOf": [ { "format": "date-time", "type": "string" }, { "type": "null" } ] }, "collection": { "anyOf": [ { "type": "string" }, { "type": "null" } ] }, "origin": { "anyOf": [ { "enum": [ "folder", "repository" ], "type": "string" }, { "type": "null" } ] } }, "required": [ "query" ], "type": "object", "additionalProperties": false },
    { "properties": { "query": { "type": "string" }, "limit": { "maximum": 100, "minimum": 1, "type": "integer" }, "threshold": { "anyOf": [ { "maximum": 1, "minimum": 0, "type": "number" }, { "type": "null" } ] }, "scope": { "items": { "enum": [ "memories", "messages", "documents", "summaries", "short", "medium", "long" ], "type": "string" }, "type": "array" }, "explain": { "type": "boolean" }, "min_seq": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "as_of": { "anyOf": [ { "format": "date-time", "type": "string" }, { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "now": { "anyOf": [ { "format": "date-time", "type": "string" }, { "type": "null" } ] }, "collection": { "anyOf": [ { "type": "string" }, { "type": "null" } ] }, "origin": { "anyOf": [ { "enum": [ "folder", "repository" ], "type": "string" }, { "type": "null" } ] }, "conversation": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] }, "preceding": { "anyOf": [ { "items": { "type": "string" }, "maxItems": 4, "type": "array" }, { "type": "null" } ] } }, "required": [ "query" ], "type": "object", "additionalProperties": false },
  ],
  status: [
    { "properties": { "min_seq": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] }, "event_seq": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] } }, "type": "object", "additionalProperties": false },
  ],
  tasks: [
    { "properties": { "action": { "enum": [ "list", "add", "done", "remove" ], "type": "string" }, "task_id": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] }, "text": { "anyOf": [ { "type": "string" }, { "type": "null" } ] }, "due_at": { "anyOf": [ { "format": "date-time", "type": "string" }, { "type": "null" }, { "type": "string", "format": "date" } ] }, "min_seq": { "anyOf": [ { "maximum": 9223372036854776000, "minimum": 0, "type": "integer" }, { "type": "null" } ] } }, "type": "object", "additionalProperties": false },
  ],
  update: [
    { "properties": { "text": { "anyOf": [ { "type": "string" }, { "type": "null" } ] }, "kind": { "anyOf": [ { "enum": [ "user_fact", "preference", "event", "conversation_insight", "conversation_summary" ], "type": "string" }, { "type": "null" } ] }, "tier": { "anyOf": [ { "enum": [ "profile", "working", "archive" ], "type": "string" }, { "type": "null" } ] }, "importance": { "anyOf": [ { "type": "integer" }, { "enum": [ "high", "normal", "low" ], "type": "string" }, { "type": "null" } ] }, "expires_at": { "anyOf": [ { "format": "date-time", "type": "string" }, { "type": "null" }, { "type": "string", "format": "date" } ] }, "id": { "maxLength": 255, "minLength": 1, "type": "string" } }, "required": [ "id" ], "type": "object", "additionalProperties": false },
    { "properties": { "text": { "anyOf": [ { "type": "string" }, { "type": "null" } ] }, "kind": { "anyOf": [ { "enum": [ "user_fact", "preference", "event", "conversation_insight", "conversation_summary" ], "type": "string" }, { "type": "null" } ] }, "tier": { "anyOf": [ { "enum": [ "profile", "working", "archive" ], "type": "string" }, { "type": "null" } ] }, "importance": { "anyOf": [ { "type": "integer" }, { "enum": [ "high", "normal", "low" ], "type": "string" }, { "type": "null" } ] }, "expires_at": { "anyOf": [ { "format": "date-time", "type": "string" }, { "type": "null" }, { "type": "string", "format": "date" } ] }, "id": { "anyOf": [ { "maxLength": 255, "minLength": 1, "type": "string" }, { "type": "null" } ] }, "query": { "anyOf": [ { "type": "string" }, { "type": "null" } ] } }, "type": "object", "additionalProperties": false },
  ],
};

/** Fields that a reply may leave out, with their values. */
export const REPLY_DEFAULTS: Record<keyof Replies, object> = {
  context: { "seen_seq": 0, "messages": [], "sections": {}, "profile": {}, "degraded": [], "metadata": {} },
  document: { "seen_seq": 0, "documents": [] },
  erase: { "seen_seq": 0, "removed": {}, "pending": [], "provider_batches": [], "generations": [] },
  forget: { "seen_seq": 0, "candidates": [] },
  get: { "seen_seq": 0, "versions": [] },
  history: { "seen_seq": 0, "messages": [] },
  profile: { "seen_seq": 0, "profile": {} },
  read: { "seen_seq": 0, "facts": [] },
  save: { "seen_seq": 0 },
  search: { "seen_seq": 0, "hits": [], "degraded": [] },
  status: { "seen_seq": 0, "conversations": 0, "messages": 0, "log_seq": 0, "rejected": [] },
  tasks: { "seen_seq": 0, "tasks": [] },
  update: { "seen_seq": 0, "versions": [], "candidates": [] },
};
