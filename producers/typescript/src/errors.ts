/** Errors that a bot can get from its memory. */

import type { AskError, RejectedEvent } from "./contracts.js";

/** Code of an error. `unauthorized`, `forbidden` and `too_many_requests` come from the HTTP gateway only. */
export type ErrorCode =
  AskError["code"] | "moved" | "unknown_verb" | "unauthorized" | "forbidden" | "too_many_requests" | (string & {});

/** The reason for which a request has no result. `retryable` tells whether the same request may succeed later. */
export interface RequestError extends Omit<AskError, "code"> {
  code: ErrorCode;
  /** Seconds to wait before the same request, where the HTTP gateway names them. */
  retryAfter?: number;
}

/** Base of all errors of this package. */
export class MnemonError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** No connection to NATS: the address is missing or not a string, or no server answered or accepted the credentials. */
export class NotConnected extends MnemonError {}

/** An id, or the API key of `connectHttp`, that cannot be stored or sent. Nothing was sent. */
export class InvalidId extends MnemonError {
  constructor(
    readonly field: string,
    readonly problem: string,
  ) {
    super(`${field}: ${problem}`);
  }
}

/** A field of an event or a request is unknown, missing or wrong. Nothing was stored. */
export class InvalidBody extends MnemonError {
  constructor(
    readonly field: string,
    readonly problem: string,
  ) {
    super(`${field}: ${problem}`);
  }
}

/**
 * An event is not known to be stored.
 *
 * The event may be stored, because the answer can be lost. Publishing the event again with `eventId` as its `id` is
 * harmless in both cases.
 */
export class PublishFailed extends MnemonError {
  readonly code: ErrorCode;
  readonly retryable: boolean;
  /** Seconds to wait before the next attempt, where the HTTP gateway names them. */
  readonly retryAfter: number | undefined;

  constructor(
    readonly eventId: string,
    error: RequestError,
  ) {
    super(`event ${JSON.stringify(eventId)} is not known to be stored: ${error.message}`);
    this.code = error.code;
    this.retryable = error.retryable;
    this.retryAfter = error.retryAfter;
  }
}

/** An event is in the log but cannot be used: it became a dead letter and changed nothing. */
export class EventRejected extends MnemonError {
  readonly seq: number;
  /** The cause, as a code. */
  readonly reason: string;
  /** The cause, in words. */
  readonly problem: string;

  constructor(rejected: RejectedEvent) {
    super(
      `event ${rejected.seq} was rejected (${rejected.reason}): ${rejected.error}. Publish a corrected event with a ` +
        "new id",
    );
    this.seq = rejected.seq;
    this.reason = rejected.reason;
    this.problem = rejected.error;
  }
}

/** A request got no result. `retryable` tells whether the same request may succeed later. */
export class AskFailed extends MnemonError {
  readonly code: ErrorCode;
  readonly retryable: boolean;
  /** Seconds to wait before the next attempt, where the HTTP gateway names them. */
  readonly retryAfter: number | undefined;

  constructor(readonly error: RequestError) {
    super(`${error.code}: ${error.message}`);
    this.code = error.code;
    this.retryable = error.retryable;
    this.retryAfter = error.retryAfter;
  }
}

/** The tenant has moved to another deployment: connect there, and publish and ask there. */
export class TenantMoved extends AskFailed {
  /** Address of the NATS servers there, if the server named it. */
  readonly movedTo: string | undefined;

  constructor(error: RequestError) {
    super(error);
    this.movedTo = error.moved_to ?? undefined;
  }
}
