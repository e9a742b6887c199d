/** The HTTP gateway as a transport: for browsers, edge runtimes and every other program with `fetch`. */

import { MemoryClient, type Timeouts } from "./client.js";
import { InvalidId } from "./errors.js";
import {
  AttemptFailed,
  buildFailure,
  buildTimeout,
  type OutgoingEvent,
  type OutgoingRequest,
  type Transport,
} from "./transport.js";

/** Options of `connectHttp`. */
export interface HttpOptions {
  /** An API key, which decides the tenant. `mnemon up` writes the first one to `gateway/key` in its data folder. */
  key: string;
  timeouts?: Partial<Timeouts>;
  /** Function in the place of the global `fetch`. */
  fetch?: typeof fetch;
}

/**
 * Returns a client over the HTTP gateway.
 *
 * @param url address of the gateway, such as `http://127.0.0.1:8080`.
 * @throws {InvalidId} the key cannot be sent.
 * @throws {TypeError} the address is not a URL.
 */
export function connectHttp(url: string, { key, timeouts = {}, fetch: send = fetch }: HttpOptions): MemoryClient {
  // An environment variable that is not set is undefined.
  const word = (key as string | undefined)?.trim() ?? "";
  // `Headers` would show the key in its error.
  if (!/^[\x21-\x7e]+$/.test(word))
    throw new InvalidId("key", "must be one word of ASCII characters; create one with `mnemon auth key create`");
  return new MemoryClient(new HttpTransport(url, word, send), timeouts);
}

// `fetch` takes `.` and `..` in a path for folders, in every spelling, and the gateway has no path with a line break.
const UNFIT_FOR_PATH = /^\.\.?$|\n/;

class HttpTransport implements Transport {
  readonly #url: string;
  readonly #headers: Headers;
  readonly #send: typeof fetch;

  constructor(url: string, key: string, send: typeof fetch) {
    this.#url = new URL(url).href.replace(/\/+$/, "");
    this.#headers = new Headers({ Authorization: `Bearer ${key}`, "Content-Type": "application/json" });
    this.#send = send;
  }

  async publish(event: OutgoingEvent, timeout: number): Promise<number> {
    const where = event.conversation === undefined ? "" : `?conversation=${encodeURIComponent(event.conversation)}`;
    const headers: Record<string, string> = event.hasOwnId ? {} : { "Idempotency-Key": event.id };
    const stored = await this.#post(event.user, `events/${event.name}${where}`, event.json, timeout, headers);
    const { seq } = stored as { seq?: unknown };
    if (typeof seq === "number") return seq;
    throw buildFailure("internal", `the answer of ${this.#url} has no position; check that it is a gateway of mnemon`);
  }

  async request({ user, verb, json, isRepeatable }: OutgoingRequest, timeout: number): Promise<unknown> {
    try {
      return await this.#post(user, verb, json, timeout, {}, isRepeatable);
    } catch (failure) {
      throw failure instanceof AttemptFailed ? new AttemptFailed(failure.error) : failure;
    }
  }

  async close(): Promise<void> {}

  async #post(
    user: string,
    path: string,
    body: string,
    timeout: number,
    extra: Record<string, string> = {},
    isRepeatable = true,
  ): Promise<unknown> {
    const unfit = UNFIT_FOR_PATH.exec(user);
    if (unfit)
      throw new InvalidId("user", `cannot be part of a URL's path with ${JSON.stringify(unfit[0])}; connect over NATS`);
    const address = `${this.#url}/v1/users/${encodeURIComponent(user)}/${path}`;
    const headers = new Headers(this.#headers);
    for (const [name, value] of Object.entries(extra)) headers.set(name, value);
    try {
      const send = this.#send;
      const response = await send(address, { method: "POST", headers, body, signal: AbortSignal.timeout(timeout) });
      if (response.ok) return await readJson(response);
      throw await readProblem(response);
    } catch (failure) {
      if (failure instanceof AttemptFailed) throw failure;
      if (failure instanceof DOMException && failure.name === "TimeoutError") {
        throw buildTimeout(`no answer of ${this.#url} within ${timeout / 1_000} s`, isRepeatable);
      }
      const { cause } = failure as Error;
      throw buildFailure(
        "unavailable",
        `${this.#url} cannot be reached: check that \`mnemon up\` or \`mnemon gateway\` runs ` +
          `(${String(cause instanceof Error ? cause.message : failure)})`,
      );
    }
  }
}

async function readJson(response: Response): Promise<unknown> {
  try {
    return JSON.parse(await response.text());
  } catch (failure) {
    if (!(failure instanceof SyntaxError)) throw failure;
    throw buildFailure("internal", `the answer of ${response.url} is not JSON; check the address`, false);
  }
}

interface ProblemDetails {
  code?: string;
  detail?: string;
  retryable?: boolean;
  field?: string;
  moved_to?: string;
}

/**
 * Returns the problem details (RFC 9457) of an answer. Without these details, the answer is from another server, such
 * as a proxy in front of the gateway.
 */
async function readProblem(response: Response): Promise<AttemptFailed> {
  const problem: ProblemDetails | null = await response.json().catch(() => null);
  const retryAfter = readRetryAfter(response.headers.get("Retry-After"));
  const when = retryAfter === undefined ? {} : { retryAfter };
  if (typeof problem?.code !== "string") {
    const retryable = response.status >= 500 || response.status === 429;
    const code = retryable ? "unavailable" : "refused";
    const message = `${response.url} answered with status ${response.status} and no details: check the address and any proxy`;
    return new AttemptFailed({ code, message, retryable, ...when });
  }
  const { code, detail = "", retryable = false, field, moved_to } = problem;
  const error = { code, message: detail, retryable, ...when, ...(field && { field }), ...(moved_to && { moved_to }) };
  return new AttemptFailed(error, code === "bad_request" ? (field ?? "body") : undefined);
}

/** Returns the seconds of a header `Retry-After`, which has seconds or a date; undefined without them. */
function readRetryAfter(written: string | null): number | undefined {
  if (!written) return undefined;
  const seconds = /^\d+$/.test(written) ? Number(written) : (Date.parse(written) - Date.now()) / 1_000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
