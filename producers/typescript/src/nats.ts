/** NATS as a transport, for Node. */

import { createHash } from "node:crypto";

import {
  connect,
  errors,
  headers,
  type ConnectionOptions,
  type Msg,
  type NatsConnection,
} from "@nats-io/transport-node";

import { MemoryClient, type Timeouts } from "./client.js";
import { NotConnected } from "./errors.js";
import { askSubject, chatSubject, checkId, inboxPrefix } from "./subjects.js";
import {
  AttemptFailed,
  buildFailure,
  buildInvalidReply,
  buildTimeout,
  type OutgoingEvent,
  type OutgoingRequest,
  type Transport,
} from "./transport.js";

/** Options of `connectNats`. */
export interface NatsOptions {
  /** The tenant of the users. */
  tenant: string;
  timeouts?: Partial<Timeouts>;
  /** Options of `connect` of `@nats-io/transport-node`, such as `authenticator` and `tls`. */
  connection?: ConnectionOptions;
}

/** The name of the stream of all events. */
const LOG = "LOG";

/** Next step after an acknowledgement that JetStream did not write. */
const CHECK_RESPONDER = "check that no other program answers there";

/** Maximum milliseconds that closing waits for what is pending, for example on a lost connection. */
const CLOSE_TIMEOUT = 2_000;

/**
 * Connects to NATS; a lost connection is restored, without a limit of attempts.
 *
 * @param url NATS servers, comma-separated; a login may stand in the address.
 * @throws {InvalidId} the tenant cannot be an id.
 * @throws {NotConnected} `url` is not a string or has no address, no server answered, or no server accepted the
 *   credentials.
 */
export async function connectNats(
  url: string,
  { tenant, timeouts = {}, connection = {} }: NatsOptions,
): Promise<MemoryClient> {
  checkId("tenant", tenant);
  const example = "Give one, such as nats://127.0.0.1:4222";
  if (typeof url !== "string") {
    throw new NotConnected(`url: must be a string, not ${url === null ? "null" : typeof url}. ${example}`);
  }
  const servers = url.split(",").flatMap((server) => server.trim() || []);
  if (!servers.length) throw new NotConnected(`no address of a NATS server is given. ${example}`);
  try {
    const opened = await connect({
      name: "mnemon-client",
      maxReconnectAttempts: -1,
      reconnectTimeWait: 500,
      pingInterval: 10_000,
      timeout: 3_000,
      inboxPrefix: inboxPrefix(tenant),
      ...readAddress(servers),
      ...connection,
    });
    return new MemoryClient(new NatsTransport(opened, tenant), timeouts);
  } catch (failure) {
    const shown = url.replace(/(^|,)(\s*[a-z]+:\/\/)?(?:(?!,\s*[a-z]+:\/\/).)*@/g, "$1$2***@");
    throw new NotConnected(
      `no connection to NATS at ${shown}: ${(failure as Error).message}. Check the address, the login and the server`,
      { cause: failure },
    );
  }
}

class NatsTransport implements Transport {
  constructor(
    private readonly connection: NatsConnection,
    private readonly tenant: string,
  ) {}

  async publish(event: OutgoingEvent, timeout: number): Promise<number> {
    const subject = chatSubject(this.tenant, event.user, event.conversation, event.name, event.version);
    const given = headers();
    given.set("Nats-Msg-Id", event.hasOwnId ? scopeEventId(this.tenant, event.user, event.id) : event.id);
    given.set("Nats-Expected-Stream", LOG);
    const reply = await this.#request(subject, event.json, timeout, PUBLISH_PROBLEMS, given);
    const stored = readJson<Acknowledgement>(reply);
    if (!stored) throw buildFailure("internal", `the acknowledgement on ${subject} is not JSON; ${CHECK_RESPONDER}`);
    if (typeof stored.seq === "number") return stored.seq;
    if (!stored.error) {
      throw buildFailure("internal", `the acknowledgement on ${subject} has no position; ${CHECK_RESPONDER}`);
    }
    const { code, description } = stored.error;
    if (code < 500) throw buildFailure("refused", description, false);
    throw buildFailure("unavailable", `the server said: ${description}; publish again with the same id`);
  }

  async request({ user, verb, version, json, isRepeatable }: OutgoingRequest, timeout: number): Promise<unknown> {
    const upgrade = version > 1 ? `, and upgrade it if it is too old for version ${version} of ${verb}` : "";
    const problems: Problems = {
      noResponders: `no process answers ${verb}; check with \`mnemon status\` that \`retrieve\` runs${upgrade}`,
      buildTimeout: () => buildTimeout(`no reply to ${verb} within ${timeout / 1_000} s`, isRepeatable),
      describeOther: (message) =>
        `the request ${verb} cannot be sent: ${message}; check the connection to the NATS server`,
    };
    const reply = await this.#request(askSubject(this.tenant, user, verb, version), json, timeout, problems);
    const body = readJson(reply);
    if (body === undefined) throw buildInvalidReply(verb, "it is not JSON");
    return body;
  }

  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_TIMEOUT)));
    await Promise.race([this.connection.drain().catch(() => undefined), late]);
    clearTimeout(timer);
    await this.connection.close();
  }

  async #request(
    subject: string,
    body: string,
    timeout: number,
    problems: Problems,
    given?: ReturnType<typeof headers>,
  ): Promise<Msg> {
    try {
      return await this.connection.request(subject, body, { timeout, ...(given && { headers: given }) });
    } catch (failure) {
      throw describeFailure(failure as Error, problems);
    }
  }
}

/** Descriptions of the failures that differ between events and requests. */
interface Problems {
  noResponders: string;
  /** Returns the failure of an attempt whose answer did not arrive in time. */
  buildTimeout: () => AttemptFailed;
  /** Describes any other failure by the message of the client of NATS. */
  describeOther: (message: string) => string;
}

const PUBLISH_PROBLEMS: Problems = {
  noResponders: `the stream ${LOG} does not exist; run \`mnemon provision\``,
  buildTimeout: () => buildFailure("timeout", "the server did not answer in time; publish again with the same id"),
  describeOther: (message) => message,
};

/** The answer of JetStream to a publish. */
interface Acknowledgement {
  seq: number;
  error?: { code: number; description: string };
}

/** Returns the body of a reply; undefined if it is not JSON. */
function readJson<Body = unknown>(reply: Msg): Body | undefined {
  try {
    return reply.json<Body>();
  } catch {
    return undefined;
  }
}

function describeFailure(failure: Error, problems: Problems): AttemptFailed {
  const cause = failure instanceof errors.RequestError && failure.cause instanceof Error ? failure.cause : failure;
  if (cause instanceof errors.NoRespondersError) return buildFailure("unavailable", problems.noResponders);
  if (cause instanceof errors.TimeoutError) return problems.buildTimeout();
  if (cause instanceof errors.InvalidArgumentError) {
    return buildFailure("refused", `${cause.message}; send a shorter text`, false);
  }
  if (cause instanceof errors.PermissionViolationError) {
    const nextStep = "connect with the tenant of this login, or allow the subject in the permissions of this NATS user";
    return buildFailure("refused", `${cause.message}; ${nextStep}`, false);
  }
  const isClosed = cause instanceof errors.ClosedConnectionError || cause instanceof errors.DrainingConnectionError;
  if (isClosed) return buildFailure("unavailable", "the connection is closed; connect again", false);
  return buildFailure("unavailable", problems.describeOther(cause.message));
}

/** Returns servers and the first login in an address, as options; the client of NATS reads no login in an address. */
function readAddress(servers: string[]): ConnectionOptions {
  const [, login] = /\/\/([^/]*)@/.exec(servers.find((server) => server.includes("@")) ?? "") ?? [];
  const [user, pass] = (login ?? "").split(/:(.*)/s).map(decodeURIComponent);
  return {
    servers: servers.map((server) => server.replace(/\/\/[^/]*@/, "//")),
    ...(user && (pass === undefined ? { token: user } : { user, pass })),
    ...(servers.some((server) => server.startsWith("tls://")) && { tls: {} }),
  };
}

/** Returns the `Nats-Msg-Id` of an event that has an id of its own: JetStream looks for it among all users' events. */
function scopeEventId(tenant: string, user: string, id: string): string {
  return `${createHash("sha256").update(`${tenant}\0${user}`).digest("hex").slice(0, 12)}:${id}`;
}
