/** Checks of events and requests before they are sent, by the schemas of the contracts. */

import { type OutputUnit, Validator } from "@cfworker/json-schema";

import { EVENT_SCHEMAS, REQUEST_SCHEMAS, type ChatEvents, type MessageV1, type Requests } from "./contracts.js";
import { InvalidBody } from "./errors.js";
import { ID_LIMIT, findUnstorable } from "./subjects.js";

/** Maximum size of a body, in bytes. */
const BODY_LIMIT = 1_048_576;

/** Keywords whose errors repeat that something below them is wrong. */
const WRAPPERS = new Set(["properties", "anyOf", "items", "$ref", "additionalProperties"]);

// NATS clients strip or fold these characters in a header, which would silently change the id.
const UNFIT_FOR_HEADER = /^\s|\s$|[\x00-\x1f\x7f]/;

const utf8 = new TextEncoder();
const validators = new Map<object, Validator>();

/** A body that satisfies its contract. */
export interface CheckedBody {
  /** The oldest version with all fields of the body, because an older mnemon may know this version too. */
  version: number;
  json: string;
}

/**
 * Checks a request, and finds its version.
 *
 * @throws {InvalidBody} a field is unknown, missing or wrong, or the body is too large.
 */
export function checkRequest(verb: keyof Requests, request: object): CheckedBody {
  return check(REQUEST_SCHEMAS[verb], request);
}

/**
 * Checks an event.
 *
 * @throws {InvalidBody} a field is unknown, missing or wrong, or the body is too large.
 */
export function checkEvent(event: keyof ChatEvents, body: ChatEvents[keyof ChatEvents]): CheckedBody {
  const checked = check(EVENT_SCHEMAS[event], body);
  if (body.id && UNFIT_FOR_HEADER.test(body.id)) {
    throw new InvalidBody("id", "must not begin or end with white space, or contain control characters");
  }
  // These ids are not in the subject, and a schema cannot count bytes.
  for (const field of ["id", "task_id"] as const) {
    const size = utf8.encode((body as Partial<MessageV1>)[field] ?? "").length;
    if (size > ID_LIMIT) throw new InvalidBody(field, `has ${size} bytes, and the limit is ${ID_LIMIT}`);
  }
  return checked;
}

function check(schemas: object[], body: object): CheckedBody {
  const given = Object.entries(body).filter(([, value]) => value !== null);
  const invalid = given.find(([, value]) => value instanceof Date && Number.isNaN(value.getTime()));
  if (invalid) throw new InvalidBody(invalid[0], "is an invalid date");
  // JSON has no such number: it would be written as null, which means the default.
  const nonFinite = given.find(([, value]) => hasNonFiniteNumber(value));
  if (nonFinite) {
    const problem = "holds NaN or an infinity, which JSON cannot write; send a finite number or leave the field out";
    throw new InvalidBody(nonFinite[0], problem);
  }
  const json = JSON.stringify(Object.fromEntries(given));
  const size = utf8.encode(json).length;
  if (size > BODY_LIMIT) throw new InvalidBody("body", `has ${size} bytes, and the limit is ${BODY_LIMIT}`);
  const value: unknown = JSON.parse(json);
  checkTexts(value, []);
  const failures = schemas.map((schema) => findFailure(schema, value));
  const version = failures.indexOf(undefined) + 1;
  if (!version) throw describeFailure(failures.at(-1)!);
  return { version, json };
}

function findFailure(schema: object, value: unknown): OutputUnit | undefined {
  let validator = validators.get(schema);
  if (!validator) validators.set(schema, (validator = new Validator(schema, "2020-12")));
  const { valid, errors } = validator.validate(value);
  if (valid) return undefined;
  return errors.find((error) => !WRAPPERS.has(error.keyword) && !error.error.endsWith('Expected "null".')) ?? errors[0];
}

function describeFailure({ keyword, instanceLocation, error }: OutputUnit): InvalidBody {
  const path = instanceLocation.split("/").slice(1);
  if (keyword === "required") {
    return new InvalidBody([...path, /"(.*)"/.exec(error)?.[1]].join("."), "is required");
  }
  return new InvalidBody(path.join(".") || "body", keyword === "false" ? "is not a field of this contract" : error);
}

function hasNonFiniteNumber(value: unknown): boolean {
  if (typeof value === "number") return !Number.isFinite(value);
  return typeof value === "object" && value !== null && Object.values(value).some(hasNonFiniteNumber);
}

function checkTexts(value: unknown, path: string[]): void {
  const problem = typeof value === "string" ? findUnstorable(value) : findUnstorable(path.at(-1) ?? "");
  if (problem) throw new InvalidBody(path[0] ?? "body", problem);
  if (typeof value !== "object" || value === null) return;
  for (const [key, part] of Object.entries(value)) checkTexts(part, [...path, key]);
}
