/** Checks of events and requests before they are sent, by the schemas of the contracts. */

import { type OutputUnit, Validator } from "@cfworker/json-schema";

import { EVENT_SCHEMAS, REQUEST_SCHEMAS, type ChatEvents, type MessageV1, type Requests } from "./contracts.js";
import { InvalidBody } from "./errors.js";
import { ID_LIMIT, findUnstorable } from "./subjects.js";

/** Maximum size of a body, in bytes. */
const BODY_LIMIT = 1_048_576;

/** Maximum number of objects and arrays around a value of a body, the body included. The memory cannot parse more. */
const NESTING_LIMIT = 200;

/** First and last year of a time that can be stored. */
const FIRST_YEAR = 2;
const LAST_YEAR = 9_998;

/** Keywords whose errors only repeat the error of a part of the value. */
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
 * @throws {InvalidBody} no verb has this name, a field is unknown, missing or wrong, or the body is too large or too deep.
 */
export function checkRequest(verb: keyof Requests, request: object): CheckedBody {
  if (!Object.hasOwn(REQUEST_SCHEMAS, verb)) {
    const known = Object.keys(REQUEST_SCHEMAS).join(", ");
    throw new InvalidBody("verb", `${JSON.stringify(verb)} is not a verb; use one of ${known}`);
  }
  return check(REQUEST_SCHEMAS[verb], request);
}

/**
 * Checks an event.
 *
 * @throws {InvalidBody} a field is unknown, missing or wrong, or the body is too large or too deep.
 */
export function checkEvent(event: keyof ChatEvents, body: ChatEvents[keyof ChatEvents]): CheckedBody {
  const checked = check(EVENT_SCHEMAS[event], body);
  if (body.id && UNFIT_FOR_HEADER.test(body.id)) {
    throw new InvalidBody("id", `${JSON.stringify(body.id)} begins or ends with white space, or contains a control character; remove it`);
  }
  // These ids are not in the subject, and a schema cannot count bytes.
  for (const field of ["id", "task_id"] as const) {
    const size = utf8.encode((body as Partial<MessageV1>)[field] ?? "").length;
    if (size > ID_LIMIT) {
      throw new InvalidBody(field, `has ${size} bytes, and the limit is ${ID_LIMIT}; send a shorter id`);
    }
  }
  checkYear((body as Partial<MessageV1>).sent_at);
  return checked;
}

/** Checks the year of a time, as written and in UTC: a schema cannot bound a time. */
function checkYear(sentAt: MessageV1["sent_at"]): void {
  if (sentAt == null) return;
  const written = sentAt instanceof Date ? sentAt.toISOString() : sentAt;
  const years = [Number(written.slice(0, 4)), new Date(written).getUTCFullYear()];
  if (years.some((year) => year < FIRST_YEAR || year > LAST_YEAR)) {
    throw new InvalidBody("sent_at", `must be in the years ${FIRST_YEAR} to ${LAST_YEAR}`);
  }
}

function check(schemas: object[], body: object): CheckedBody {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new InvalidBody("body", "Input should be an object");
  }
  const given = Object.entries(body).filter(([, value]) => value !== null);
  const invalid = given.find(([, value]) => value instanceof Date && Number.isNaN(value.getTime()));
  if (invalid) throw new InvalidBody(invalid[0], "is an invalid date");
  const parts = given.flatMap(([field, value]) => {
    const json = writeJson(field, value);
    return json === undefined ? [] : [`${JSON.stringify(field)}:${json}`];
  });
  const json = `{${parts.join(",")}}`;
  const size = utf8.encode(json).length;
  if (size > BODY_LIMIT) {
    const [has, limit] = [size, BODY_LIMIT].map((bytes) => bytes.toLocaleString("en"));
    throw new InvalidBody("body", `has ${has} bytes, and the limit is ${limit}; send a smaller body`);
  }
  const value: unknown = JSON.parse(json);
  checkTexts(value, []);
  const failures = schemas.map((schema) => findFailures(schema, value));
  const version = failures.findIndex(({ length }) => length === 0) + 1;
  if (!version) throw describeFailures(failures.at(-1)!);
  return { version, json };
}

/** Returns the JSON of a field; undefined if JSON has no such value, such as a function. */
function writeJson(field: string, value: unknown): string | undefined {
  try {
    return JSON.stringify(value, (_, part: unknown) => {
      // JSON has no such number: it would be written as null, which means the default.
      if (typeof part === "number" && !Number.isFinite(part)) {
        throw new InvalidBody(field, "Input should be a finite number");
      }
      return part;
    });
  } catch (failure) {
    if (failure instanceof InvalidBody) throw failure;
    const [problem] = String(failure).split("\n");
    throw new InvalidBody(field, `cannot be written as JSON (${problem}); give a value that JSON has`);
  }
}

/** Returns the first failure, with all others at the same place: one for each type that the value may have. */
function findFailures(schema: object, value: unknown): OutputUnit[] {
  let validator = validators.get(schema);
  if (!validator) validators.set(schema, (validator = new Validator(schema, "2020-12")));
  const { valid, errors } = validator.validate(value);
  if (valid) return [];
  const found = errors.filter((each) => !WRAPPERS.has(each.keyword) && !each.error.endsWith('Expected "null".'));
  const first = found[0] ?? errors[0]!;
  return [first, ...found.slice(1).filter((each) => each.instanceLocation === first.instanceLocation)];
}

function describeFailures(failures: OutputUnit[]): InvalidBody {
  const [{ keyword, instanceLocation, error }] = failures as [OutputUnit];
  const day = failures.find((each) => each.error.includes('"date"'));
  const path = instanceLocation.split("/").slice(1);
  if (keyword === "required") path.push(/"(.*)"/.exec(error)![1]!);
  let problem = [...new Set((day ? [day] : failures).map(describeProblem))].join(", or ");
  if (/^\d+$/.test(path.at(-1) ?? "")) problem += ` (index ${path.pop()})`;
  return new InvalidBody(path.join(".") || "body", problem);
}

/** Types of JSON, as the memory names them in errors. */
const TYPES: Record<string, string> = {
  array: "a valid array",
  boolean: "a valid boolean",
  integer: "a valid integer",
  number: "a valid number",
  object: "an object",
  string: "a valid string",
};

/** Describes a failure in the words of the memory: an error reads the same before and after a request is sent. */
function describeProblem({ keyword, error }: OutputUnit): string {
  const [limit = "", size = ""] = (error.match(/-?\d+(\.\d+)?/g) ?? []).reverse();
  const characters = limit === "1" ? "1 character" : `${limit} characters`;
  switch (keyword) {
    case "required":
      return "Field required";
    case "false":
      return "Extra inputs are not permitted";
    case "type":
      return `Input should be ${TYPES[/Expected "(.*)"/.exec(error)?.[1] ?? ""] ?? "of another type"}`;
    case "format":
      return error.includes('"date"')
        ? "Input should be a date or a time, such as 2026-12-01 or 2026-12-01T18:00:00Z"
        : "Input should be a valid datetime";
    case "enum": {
      const values = (JSON.parse(/\[.*\]/.exec(error)![0]) as unknown[]).map((each) => `'${each}'`);
      return `Input should be ${values.join(", ").replace(/, (?=[^,]*$)/, " or ")}`;
    }
    case "minimum":
      return `Input should be greater than or equal to ${limit}`;
    case "maximum":
      return `Input should be less than or equal to ${limit}`;
    case "minLength":
      return `String should have at least ${characters}`;
    case "maxLength":
      return `String should have at most ${characters}`;
    case "maxItems":
      return `Array should have at most ${limit} items, not ${size}`;
    default:
      return error;
  }
}

function checkTexts(value: unknown, path: string[]): void {
  const problem = typeof value === "string" ? findUnstorable(value) : findUnstorable(path.at(-1) ?? "");
  if (problem) throw new InvalidBody(path[0] ?? "body", problem);
  if (typeof value !== "object" || value === null) return;
  if (path.length >= NESTING_LIMIT) {
    const limit = `${NESTING_LIMIT} levels in a body`;
    throw new InvalidBody(path[0]!, `is nested too deeply, and the limit is ${limit}; send a flatter value`);
  }
  for (const [key, part] of Object.entries(value)) checkTexts(part, [...path, key]);
}
