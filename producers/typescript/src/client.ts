/** Client of a bot for the memory of its users, over any transport. */

import {
  REPLY_DEFAULTS,
  type ChatEvents,
  type ContextReplyV1,
  type ContextV1,
  type DocumentReplyV1,
  type DocumentV1,
  type EraseV1,
  type EventOutcome,
  type FactsReplyV1,
  type ForgetReplyV1,
  type GetV2,
  type HistoryV1,
  type MessageV1,
  type ReadV1,
  type Replies,
  type Requests,
  type SaveV1,
  type SearchReplyV2,
  type SearchV2,
  type StartedV1,
  type TasksV1,
} from "./contracts.js";
import {
  AskFailed,
  EventRejected,
  InvalidBody,
  MnemonError,
  PublishFailed,
  TenantMoved,
  type RequestError,
} from "./errors.js";
import { checkId } from "./subjects.js";
import { AttemptFailed, buildInvalidReply, type OutgoingEvent, type Transport } from "./transport.js";
import { checkEvent, checkRequest } from "./validation.js";

/** Timeouts of a bot's requests, in milliseconds. */
export interface Timeouts {
  /** Timeout of one attempt at publishing. Default: 5,000. */
  publish: number;
  /** Time for further attempts at publishing, from the first failure on. Default: 30,000. */
  retry: number;
  /** Timeout of a request, except those with the timeout `save`. Default: 3,000. */
  ask: number;
  /**
   * Timeout of `save`, `update`, `forget` and `erase`. `retrieve` itself waits up to 5 s for the decision on a saved
   * fact, and up to 6 s for the stores of an erasure. Also the time for which `publish` with `wait` asks whether the
   * message is applied. Default: 7,000.
   */
  save: number;
}

/** The conversation of an event. Default: the user's current one, which was started last. */
export interface ConversationOption {
  conversation?: string | undefined;
}

/** A reply of the memory or, if the request got no result, an empty one of the client. */
export type DegradableReply<Reply> = Omit<Reply, "error"> & {
  /** The reason, if the request got no result; `degraded` is `["memory"]` then. */
  error?: RequestError;
};

type Options<Request, Given extends keyof Request = never> = Omit<Request, Given>;

const DEFAULTS: Timeouts = { publish: 5_000, retry: 30_000, ask: 3_000, save: 7_000 };
const CLOSED: RequestError = { code: "unavailable", message: "the client was closed; connect again", retryable: false };

/** Milliseconds before the second attempt at publishing; each further pause is twice as long, up to the maximum. */
const FIRST_PAUSE = 100;
/** Maximum milliseconds between two attempts, unless the HTTP gateway asks for a longer pause. */
const LONGEST_PAUSE = 2_000;

/** Number of facts per page of `readAll`. */
const PAGE_SIZE = 500;

/** Verbs with the timeout `save`: each waits for a decision, an erasure, or the first load of the lexicon. */
const SLOW_VERBS: ReadonlySet<keyof Requests> = new Set(["save", "update", "forget", "erase"]);

/** Codes of errors for which `search` returns an empty reply. */
const UNAVAILABLE_CODES: ReadonlySet<string> = new Set(["unavailable", "timeout", "internal", "too_many_requests"]);

/**
 * Client of a bot for the users of one tenant. `connectHttp` and `connectNats` make one.
 *
 * The client retries a publish with the same event id, so an event is stored once even if an answer was lost. A publish
 * returns the event's log position. A request with this position as `min_seq` waits for the event; `seen_seq` of the
 * reply shows whether the reply reflects it.
 *
 * An invalid id or field throws `InvalidId` or `InvalidBody`, which names the field. A request without a result throws
 * `AskFailed`, and a publish without a confirmation `PublishFailed`. `context` throws none of these errors, and
 * `search` throws no `AskFailed` while the memory does not answer: their replies then name `"memory"` in `degraded`.
 */
export class MemoryClient implements AsyncDisposable {
  readonly #transport: Transport;
  readonly #timeouts: Timeouts;
  readonly #pending = new Set<Promise<unknown>>();
  /** Functions that end the pauses between two attempts. */
  readonly #wakeUps = new Set<() => void>();
  #isClosed = false;

  constructor(transport: Transport, timeouts: Partial<Timeouts> = {}) {
    this.#transport = transport;
    this.#timeouts = { ...DEFAULTS, ...timeouts };
  }

  /**
   * Adds a message to a conversation; returns its log position.
   *
   * @param options.id the event's identity among the user's events, such as the message's id on the chat platform.
   *   Publishing the same id again changes nothing. Default: an id for this call only.
   * @param options.wait whether to return only when the message is applied, for up to `timeouts.save`. Default: when
   *   the log has the message.
   * @throws {PublishFailed} the message is not known to be stored.
   * @throws {EventRejected} with `wait`: the message is stored but cannot be used.
   * @throws {AskFailed} with `wait`: the message is stored, but its outcome is not known yet.
   */
  async publish(
    user: string,
    role: MessageV1["role"],
    content: string,
    {
      conversation,
      wait = false,
      ...fields
    }: Options<MessageV1, "role" | "content"> & ConversationOption & { wait?: boolean } = {},
  ): Promise<number> {
    const seq = await this.#publishEvent("message", user, conversation, { role, content, ...fields });
    if (wait) await this.#awaitApplied(user, seq);
    return seq;
  }

  /**
   * Starts a conversation, which becomes the user's current one; returns the log position.
   *
   * @throws {PublishFailed} the event is not known to be stored.
   */
  async start(user: string, { conversation, ...fields }: StartedV1 & ConversationOption = {}): Promise<number> {
    return this.#publishEvent("started", user, conversation, fields);
  }

  /**
   * Removes all messages and summaries of a conversation so far, and keeps the conversation; returns the log position.
   *
   * @throws {PublishFailed} the event is not known to be stored.
   */
  async clear(
    user: string,
    { conversation, ...fields }: ChatEvents["cleared"] & ConversationOption = {},
  ): Promise<number> {
    return this.#publishEvent("cleared", user, conversation, fields);
  }

  /**
   * Returns the outcome of the user's event at a log position: `applied`, `rejected` or `waiting`.
   *
   * @throws {InvalidBody} `seq` is not the position of an event, which is 1 or higher.
   * @throws {AskFailed} the request got no result, or `retrieve` is too old to return an outcome.
   */
  async outcome(user: string, seq: number): Promise<EventOutcome> {
    if (!seq) throw new InvalidBody("seq", "must be 1 or higher; give the log position that a publish returned");
    const { outcome } = await this.ask(user, "status", { event_seq: seq });
    if (outcome) return outcome;
    const message = "`retrieve` is too old to return the outcome of an event; upgrade mnemon on the server";
    throw new AskFailed({ code: "not_implemented", message, retryable: false });
  }

  /** Returns the context to put before a model for its next answer; on a failure, an empty one with `error`. */
  async context(user: string, request: ContextV1 = {}): Promise<DegradableReply<ContextReplyV1>> {
    try {
      return await this.ask(user, "context", request);
    } catch (failure) {
      return degrade("context", failure);
    }
  }

  /**
   * Searches facts, or the scopes of `options.scope`, best hit first. With `collection` or `origin`, and without
   * `scope`, searches documents.
   *
   * @throws {AskFailed} the memory refused the request.
   */
  async search(
    user: string,
    query: string,
    options: Options<SearchV2, "query"> = {},
  ): Promise<DegradableReply<SearchReplyV2>> {
    const scope = options.scope ?? (options.collection || options.origin ? (["documents"] as const) : undefined);
    try {
      return await this.ask(user, "search", { query, ...options, ...(scope && { scope: [...scope] }) });
    } catch (failure) {
      if (failure instanceof AskFailed && UNAVAILABLE_CODES.has(failure.code)) return degrade("search", failure);
      throw failure;
    }
  }

  /**
   * Returns the last messages of a conversation, oldest first. With `before`, a log position, returns the last
   * messages before it. To read page by page, give the `seq` of the first message of the previous reply, and the
   * `conversation` of that reply, until a reply has no messages.
   *
   * @throws {AskFailed} the request got no result, or `retrieve` is too old for `before`.
   */
  async history(user: string, request: HistoryV1 = {}): Promise<Replies["history"]> {
    const reply = await this.ask(user, "history", request);
    const newest = reply.messages.at(-1);
    if (newest && request.before != null && newest.seq >= request.before) {
      const message = "`retrieve` is too old for `before` in `history`; upgrade mnemon on the server";
      throw new AskFailed({ code: "not_implemented", message, retryable: false });
    }
    return reply;
  }

  /** Returns counts and times of the user's messages, the last log position, and the user's rejected events. */
  async status(user: string, request: Requests["status"] = {}): Promise<Replies["status"]> {
    return this.ask(user, "status", request);
  }

  /** Proposes a fact; returns the decision on it. Saving the same fact again is harmless. */
  async save(user: string, text: string, options: Options<SaveV1, "text"> = {}): Promise<Replies["save"]> {
    return this.ask(user, "save", { text, ...options });
  }

  /** Reads a page of the facts that have not expired, by tier: profile, working, archive. */
  async read(user: string, request: ReadV1 = {}): Promise<FactsReplyV1> {
    return this.ask(user, "read", { limit: 100, ...request });
  }

  /** Reads all facts that have not expired, in pages of 500. A fact that changes between two pages may be missing. */
  async readAll(user: string, request: Options<ReadV1, "limit" | "after"> = {}): Promise<FactsReplyV1> {
    let page = await this.read(user, { ...request, limit: PAGE_SIZE });
    const facts = new Map(page.facts.map((fact) => [fact.id, fact]));
    while (page.next) {
      page = await this.read(user, { ...request, limit: PAGE_SIZE, after: page.next });
      for (const fact of page.facts) facts.set(fact.id, fact);
    }
    return { ...page, facts: [...facts.values()], total: facts.size };
  }

  /**
   * Returns one whole fact, message, document or summary by its id, such as `pf_007` or the id of a hit. A document of
   * more than 100,000 characters comes in parts, from `offset` on.
   */
  async get(user: string, id: string, options: Options<GetV2, "id"> = {}): Promise<Replies["get"]> {
    return this.ask(user, "get", { id, ...options });
  }

  /**
   * Changes a fact, by its id or by a query that clearly means one fact. If the reply has no `fact`, nothing was
   * changed, and `candidates` has the facts that the query may mean.
   */
  async update(user: string, change: Requests["update"]): Promise<Replies["update"]> {
    return this.ask(user, "update", change);
  }

  /**
   * Removes one fact, by its id or by a query that clearly means one fact. If the reply has no `id`, nothing was
   * removed, and `candidates` has the facts that the query may mean.
   */
  async forget(user: string, fact: Requests["forget"]): Promise<ForgetReplyV1> {
    return this.ask(user, "forget", fact);
  }

  /**
   * Saves a removed fact again, from the reply of `forget`.
   *
   * @throws {InvalidBody} no fact was removed, or the fact had expired.
   */
  async restore(user: string, forgotten: ForgetReplyV1): Promise<Replies["save"]> {
    if (forgotten.restore) return this.ask(user, "save", forgotten.restore);
    throw new InvalidBody(
      "restore",
      forgotten.id == null
        ? "no fact was removed, so there is none to restore; give a reply to `forget` that has an `id`"
        : `the fact ${forgotten.id} had expired; save its text again with \`save\` and a later \`expires_at\``,
    );
  }

  /** Returns the user's data, field by field. */
  async profile(user: string, request: Options<Requests["profile"], "fields"> = {}): Promise<Replies["profile"]> {
    return this.ask(user, "profile", request);
  }

  /** Sets fields of the user's data; null removes a field. Other fields do not change. */
  async setProfile(user: string, fields: Record<string, unknown>): Promise<Replies["profile"]> {
    // A request without `fields` would only read.
    if (!fields) throw new InvalidBody("fields", "Input should be an object");
    return this.ask(user, "profile", { fields });
  }

  /** Returns all tasks of the user, including done tasks, oldest first. */
  async tasks(user: string, request: Pick<TasksV1, "min_seq"> = {}): Promise<Replies["tasks"]> {
    return this.ask(user, "tasks", { ...request, action: "list" });
  }

  /**
   * Adds a task; returns all tasks, and the id of the new one as `task_id`. After a timeout, a repeated call without
   * `task_id` may add a second task.
   */
  async addTask(
    user: string,
    text: string,
    options: Pick<TasksV1, "due_at" | "task_id"> = {},
  ): Promise<Replies["tasks"]> {
    return this.ask(user, "tasks", { ...options, action: "add", text });
  }

  /** Marks a task as done; returns all tasks. */
  async finishTask(user: string, task_id: string): Promise<Replies["tasks"]> {
    return this.ask(user, "tasks", { action: "done", task_id });
  }

  /** Removes a task from the list; returns the remaining tasks. */
  async removeTask(user: string, task_id: string): Promise<Replies["tasks"]> {
    return this.ask(user, "tasks", { action: "remove", task_id });
  }

  /** Returns the user's documents without their texts, in the order of their ids. */
  async documents(user: string, request: Pick<DocumentV1, "collection" | "min_seq"> = {}): Promise<DocumentReplyV1> {
    let page = await this.ask(user, "document", { ...request, action: "list" });
    const documents = [...page.documents];
    while (page.next) {
      page = await this.ask(user, "document", { ...request, action: "list", after: page.next });
      documents.push(...page.documents);
    }
    return { ...page, documents };
  }

  /**
   * Makes a text searchable, in the scope `documents`; replaces the text of a document with the same `document_id`.
   * After a timeout, a repeated call without `document_id` may add a second document.
   */
  async addDocument(
    user: string,
    text: string,
    options: Options<DocumentV1, "action" | "text" | "min_seq" | "after"> = {},
  ): Promise<DocumentReplyV1> {
    return this.ask(user, "document", { ...options, action: "add", text });
  }

  /** Removes a document from all searches; returns at most `limit` of the remaining documents. */
  async removeDocument(
    user: string,
    document_id: string,
    options: Pick<DocumentV1, "limit"> = {},
  ): Promise<DocumentReplyV1> {
    return this.ask(user, "document", { ...options, action: "remove", document_id });
  }

  /** Erases a user, or one conversation, for good; with `verify`, erases nothing and counts the remaining items. */
  async erase(user: string, request: EraseV1 = {}): Promise<Replies["erase"]> {
    return this.ask(user, "erase", request);
  }

  /**
   * Sends a request by the name of its verb.
   *
   * @throws {InvalidId | InvalidBody} the request cannot be sent.
   * @throws {AskFailed} the request got no result.
   */
  async ask<Verb extends keyof Requests>(user: string, verb: Verb, request: Requests[Verb]): Promise<Replies[Verb]> {
    checkId("user", user);
    const { version, json } = checkRequest(verb, request);
    if (this.#isClosed) throw new AskFailed(CLOSED);
    const timeout = SLOW_VERBS.has(verb) ? this.#timeouts.save : this.#timeouts.ask;
    return this.#run(async () => {
      try {
        const isRepeatable = isRepeatableRequest(verb, request);
        return readReply(verb, await this.#transport.request({ user, verb, version, json, isRepeatable }, timeout));
      } catch (failure) {
        if (!(failure instanceof AttemptFailed)) throw failure;
        throw failure.error.code === "moved" ? new TenantMoved(failure.error) : new AskFailed(failure.error);
      }
    });
  }

  /** Waits for the requests and events that are under way, without further retries, and closes the connection. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const wakeUp of this.#wakeUps) wakeUp();
    await Promise.allSettled(this.#pending);
    await this.#transport.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #publishEvent<Name extends keyof ChatEvents>(
    name: Name,
    user: string,
    conversation: string | undefined,
    body: ChatEvents[Name],
  ): Promise<number> {
    checkId("user", user);
    if (conversation !== undefined) checkId("conversation", conversation);
    const { version, json } = checkEvent(name, body);
    const id = body.id ?? crypto.randomUUID();
    const event = { user, conversation, name, version, id, hasOwnId: Boolean(body.id), json };
    return this.#run(() => this.#retryPublish(event));
  }

  async #retryPublish(event: OutgoingEvent): Promise<number> {
    let deadline: number | undefined;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      if (this.#isClosed) throw new PublishFailed(event.id, CLOSED);
      try {
        return await this.#transport.publish(event, this.#timeouts.publish);
      } catch (failure) {
        if (!(failure instanceof AttemptFailed)) throw failure;
        if (failure.field) throw new InvalidBody(failure.field, failure.message.replace(`${failure.field}: `, ""));
        deadline ??= Date.now() + this.#timeouts.retry;
        pause = Math.max(pause, 1_000 * (failure.error.retryAfter ?? 0));
        const isLast = !failure.error.retryable || Date.now() + pause > deadline;
        if (isLast) throw new PublishFailed(event.id, failure.error);
      }
      if (!this.#isClosed) await this.#sleep(pause);
    }
  }

  async #awaitApplied(user: string, seq: number): Promise<void> {
    const deadline = Date.now() + this.#timeouts.save;
    // A request waits for the event only for the time of the setting `wait_for_log_ms`.
    while (!(await this.#isApplied(user, seq))) {
      if (Date.now() >= deadline) {
        const message = `event ${seq} is stored, but not known to be applied; request its outcome later`;
        throw new AskFailed({ code: "timeout", message, retryable: true });
      }
      await this.#sleep(FIRST_PAUSE);
    }
  }

  /** Returns whether an event is known to be applied. It is not if the request gets no reply in time. */
  async #isApplied(user: string, seq: number): Promise<boolean> {
    try {
      const { outcome, rejected } = await this.outcome(user, seq);
      if (rejected) throw new EventRejected(rejected);
      return outcome === "applied";
    } catch (failure) {
      if (failure instanceof AskFailed && failure.code === "timeout") return false;
      throw failure;
    }
  }

  /** Waits until the time is over or the client closes. */
  #sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#wakeUps.delete(end);
        resolve();
      };
      const timer = setTimeout(end, milliseconds);
      this.#wakeUps.add(end);
    });
  }

  async #run<Result>(work: () => Promise<Result>): Promise<Result> {
    const task = work();
    this.#pending.add(task);
    try {
      return await task;
    } finally {
      this.#pending.delete(task);
    }
  }
}

/** Returns whether a request that took effect has no further effect if it is repeated. */
function isRepeatableRequest(verb: keyof Requests, request: object): boolean {
  const { action, task_id, document_id, query } = request as Partial<TasksV1 & DocumentV1 & Requests["forget"]>;
  switch (verb) {
    case "tasks":
      return action !== "add" || task_id != null;
    case "document":
      return action !== "add" || document_id != null;
    case "update":
    case "forget":
      return query == null;
    default:
      return true;
  }
}

function readReply<Verb extends keyof Replies>(verb: Verb, body: unknown): Replies[Verb] {
  const reply = body as Replies[Verb] | null;
  if (reply?.error) throw new AttemptFailed(reply.error);
  if (typeof reply?.seen_seq === "number") return { ...structuredClone(REPLY_DEFAULTS[verb]), ...reply };
  throw buildInvalidReply(verb, "`seen_seq` is missing");
}

function degrade<Verb extends "context" | "search">(verb: Verb, failure: unknown): DegradableReply<Replies[Verb]> {
  if (!(failure instanceof MnemonError)) throw failure;
  const error: RequestError =
    failure instanceof AskFailed
      ? failure.error
      : {
          code: "bad_request",
          message: failure.message,
          retryable: false,
          ...(failure instanceof InvalidBody && { field: failure.field }),
        };
  return { ...(structuredClone(REPLY_DEFAULTS[verb]) as Replies[Verb]), degraded: ["memory"], error };
}
