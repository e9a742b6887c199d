/** Ids in subjects, spelled as in `contracts/mnemon_contracts/subjects.py`. */

import { InvalidId } from "./errors.js";

/** Maximum length of an id, in UTF-8 bytes. */
export const ID_LIMIT = 255;

/** Token of the user's current conversation. */
const CURRENT = "-";

// NATS splits on ".", matches "*" and ">", and ends a token at white space; "%" starts an escape. White space is
// listed, because "\s" differs between languages.
const UNSAFE = /[.*>%\x01-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/g;
const PLAIN = /^[A-Za-z0-9_-]+$/;
const LONE_SURROGATE = /\p{Surrogate}/u;
const utf8 = new TextEncoder();

/** Returns why a text cannot be stored; undefined if it can. */
export function findUnstorable(text: string): string | undefined {
  if (text.includes("\0")) return "contains U+0000, which PostgreSQL cannot store; remove the character";
  if (LONE_SURROGATE.test(text)) return "contains a lone surrogate, which is not valid Unicode; remove the character";
  return undefined;
}

/**
 * Checks that a value can be an id.
 *
 * @throws {InvalidId} naming the field.
 */
export function checkId(field: string, id: unknown): asserts id is string {
  if (typeof id !== "string") {
    const shown = typeof id === "object" && id !== null ? "an object" : String(id);
    throw new InvalidId(field, `must be a string, not ${shown}`);
  }
  if (!id) throw new InvalidId(field, `an id must not be empty; use an id of 1 to ${ID_LIMIT} bytes`);
  const problem = findUnstorable(id);
  if (problem) throw new InvalidId(field, `the id ${problem}`);
  const size = utf8.encode(id).length;
  if (size > ID_LIMIT) {
    throw new InvalidId(field, `the id has ${size} bytes, and the limit is ${ID_LIMIT}; use a shorter id`);
  }
}

/** Encodes an id as one NATS token. Every id has exactly one spelling. */
export function encodeToken(id: string): string {
  checkId("id", id);
  return id === CURRENT ? "%2D" : id.replace(UNSAFE, escapeCharacter);
}

/** Returns the subject of a bot's event; without a conversation, that of the user's current one. */
export function chatSubject(
  tenant: string,
  user: string,
  conversation: string | undefined,
  event: string,
  version: number,
): string {
  const place = conversation === undefined ? CURRENT : encodeToken(conversation);
  return `chat.${encodeToken(tenant)}.${encodeToken(user)}.${place}.${event}.v${version}`;
}

/** Returns the subject of a request. */
export function askSubject(tenant: string, user: string, verb: string, version: number): string {
  return `ask.${encodeToken(tenant)}.${encodeToken(user)}.${verb}.v${version}`;
}

/** Returns the prefix of a tenant's inboxes, to which no other tenant may subscribe. */
export function inboxPrefix(tenant: string): string {
  return `_INBOX_${PLAIN.test(tenant) ? tenant : `~${hex(utf8.encode(encodeToken(tenant)))}`}`;
}

function escapeCharacter(character: string): string {
  return [...utf8.encode(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}

function hex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
