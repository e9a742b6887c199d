/** Port of the client: a transport makes one attempt at a time, and the client repeats attempts to publish. */

import type { ChatEvents, Requests } from "./contracts.js";
import type { RequestError } from "./errors.js";

/** An event to publish, checked. */
export interface OutgoingEvent {
  user: string;
  /** Absent: the user's current conversation. */
  conversation: string | undefined;
  name: keyof ChatEvents;
  version: number;
  /** The event's id: the same in every attempt. */
  id: string;
  /** Whether the body has the id, because the bot gave one. */
  hasOwnId: boolean;
  json: string;
}

/** A request to send, checked. */
export interface OutgoingRequest {
  user: string;
  verb: keyof Requests;
  version: number;
  json: string;
  /** Whether the request, if it took effect, has no further effect when it is repeated. */
  isRepeatable: boolean;
}

/** Connection to the memory, over HTTP or NATS. A method makes one attempt, and throws `AttemptFailed` on failure. */
export interface Transport {
  /** Publishes an event; returns its log position. */
  publish(event: OutgoingEvent, timeout: number): Promise<number>;
  /** Sends a request; returns the reply as it arrived. */
  request(request: OutgoingRequest, timeout: number): Promise<unknown>;
  /** Sends what is pending, and closes the connection. */
  close(): Promise<void>;
}

/** An attempt got no result. */
export class AttemptFailed extends Error {
  constructor(
    readonly error: RequestError,
    /** The first invalid field, if the server refused the body. */
    readonly field?: string,
  ) {
    super(error.message);
  }
}

/** Returns an attempt that failed because the reply to a request breaks its contract. */
export function buildInvalidReply(verb: keyof Requests, problem: string): AttemptFailed {
  const nextStep = "Check that the client and the deployment have the same version of mnemon";
  return buildFailure("internal", `the reply to ${verb} is invalid: ${problem}. ${nextStep}`);
}

/** Returns an attempt whose answer did not arrive in time; `problem` names the answer and the timeout. */
export function buildTimeout(problem: string, isRepeatable: boolean): AttemptFailed {
  if (isRepeatable) return buildFailure("timeout", `${problem}; repeat the request`);
  const nextStep = "read the memory before you repeat the request, which may make another change";
  return buildFailure("timeout", `${problem}, but the change may take effect; ${nextStep}`, false);
}

/** Returns an attempt that failed for another reason than an invalid field. */
export function buildFailure(code: RequestError["code"], message: string, retryable = true): AttemptFailed {
  return new AttemptFailed({ code, message, retryable });
}
