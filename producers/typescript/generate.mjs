// Writes src/contracts.ts from the JSON Schemas of the contracts: `node generate.mjs`, or `--check` to compare only.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";

const SCHEMAS = new URL("../../contracts/schemas/", import.meta.url);
const OUTPUT = new URL("src/contracts.ts", import.meta.url);
const CHAT_EVENTS = ["message", "started", "cleared"];
/** Times for which a day is enough. */
const DAYS = ["expires_at", "due_at"];

const schemas = Object.fromEntries(
  readdirSync(SCHEMAS)
    .sort()
    .map((file) => [file.replace(/\.json$/, ""), JSON.parse(readFileSync(new URL(file, SCHEMAS), "utf-8"))]),
);
const isReply = (name) => name.endsWith(".reply");

/** Keywords whose values are schemas by name. */
const MAPS = new Set(["properties", "$defs"]);

/** Returns a copy of a schema in which `change` has replaced every part, the innermost first. */
function mapSchema(schema, change) {
  if (Array.isArray(schema)) return schema.map((part) => mapSchema(part, change));
  if (typeof schema !== "object" || schema === null) return schema;
  const parts = mapValues(schema, (part, key) =>
    MAPS.has(key) ? mapValues(part, (inner) => mapSchema(inner, change)) : mapSchema(part, change),
  );
  return change(parts);
}

const mapValues = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]));

/** A time in a request may be a `Date`, which JSON writes as text. */
function describeRequest(schema) {
  if (schema.$ref) return wrapReference(schema);
  return schema.format === "date-time" ? { ...schema, tsType: "string | Date" } : schema;
}

/** Beside a description, the compiler takes a reference for a type of its own. */
const wrapReference = ({ $ref, ...schema }) =>
  Object.keys(schema).length ? { ...schema, anyOf: [{ $ref }] } : { $ref };

/** A reply leaves out fields without a value, and the client sets the defaults of the others. */
function describeReply(schema) {
  if (schema.$ref) return wrapReference(schema);
  const described = { ...schema };
  if (schema.format === "date-time") described.tsType = "string";
  if (schema.anyOf) {
    described.anyOf = schema.anyOf.filter((part) => part.type !== "null");
  }
  return described;
}

const withoutDefinitions = ({ $defs, $id, $schema, ...schema }) => schema;

function defaultsOf(schema) {
  const entries = Object.entries(schema.properties).map(([name, { default: value }]) => [name, value]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined && value !== null));
}

async function writeTypes() {
  const definitions = {};
  const properties = {};
  for (const [name, { $defs = {}, ...schema }] of Object.entries(schemas)) {
    const describe = isReply(name) ? describeReply : describeRequest;
    const whole = mapSchema(withoutDefinitions(schema), describe);
    if (isReply(name)) whole.required = [...new Set([...(whole.required ?? []), ...Object.keys(defaultsOf(schema))])];
    definitions[schema.title] = whole;
    properties[name] = { $ref: `#/$defs/${schema.title}` };
    for (const [title, part] of Object.entries($defs)) {
      definitions[title] ??= title === "JsonValue" ? { tsType: "unknown" } : mapSchema(part, describe);
    }
  }
  const description = "All published contracts, by name.";
  const contracts = {
    title: "Contracts",
    description,
    type: "object",
    properties,
    required: Object.keys(properties),
    $defs: definitions,
  };
  return compile(contracts, "Contracts", {
    additionalProperties: false,
    bannerComment: "",
    ignoreMinAndMaxItems: true,
    style: { printWidth: 120 },
  });
}

/** A schema for checks before sending: it refuses unknown fields, and has no descriptions. */
function strict(schema) {
  return mapSchema(schema, ({ title, description, default: _, $schema, $id, ...part }) => {
    if (part.properties) part.additionalProperties = false;
    for (const name of DAYS.filter((day) => part.properties?.[day])) {
      part.properties[name] = { anyOf: [...part.properties[name].anyOf, { type: "string", format: "date" }] };
    }
    return part;
  });
}

function versionsOf(pattern) {
  const found = Object.keys(schemas).filter((name) => pattern.test(name));
  return found.sort((one, other) => versionIn(one) - versionIn(other));
}
const versionIn = (name) => Number(/\.v(\d+)/.exec(name)[1]);

const verbs = [...new Set(Object.keys(schemas).flatMap((name) => /^ask\.(\w+)\./.exec(name)?.[1] ?? []))];
const requests = Object.fromEntries(verbs.map((verb) => [verb, versionsOf(RegExp(`^ask\\.${verb}\\..*request$`))]));
const replies = Object.fromEntries(verbs.map((verb) => [verb, versionsOf(RegExp(`^ask\\.${verb}\\..*reply$`)).at(-1)]));
const events = Object.fromEntries(CHAT_EVENTS.map((event) => [event, versionsOf(RegExp(`^${event}\\.v`))]));

const titleOf = (name) => schemas[name].title;
const writeJson = (value) => JSON.stringify(value, null, 1).replace(/\n */g, " ");
const writeEntries = (object, write, end) =>
  Object.entries(object)
    .map(([key, value]) => `  ${key}: ${write(value)}${end}`)
    .join("\n");
const writeInterface = (name, object, write) => `export interface ${name} {\n${writeEntries(object, write, ";")}\n}`;
const writeRecord = (name, key, type, object, write) =>
  `export const ${name}: Record<keyof ${key}, ${type}> = {\n${writeEntries(object, write, ",")}\n};`;
const writeSchemas = (names) => `[\n${names.map((name) => `    ${writeJson(strict(schemas[name]))},`).join("\n")}\n  ]`;

const text = `// Generated from contracts/schemas by generate.mjs. Do not edit.

${(await writeTypes()).trim()}

/** The verbs, with the newest request of each. */
${writeInterface("Requests", requests, (names) => titleOf(names.at(-1)))}

/** The newest reply of each verb. */
${writeInterface("Replies", replies, titleOf)}

/** The events that bots publish. */
${writeInterface("ChatEvents", events, (names) => titleOf(names.at(-1)))}

/** Schemas of the versions of each event, from version 1 on; they refuse unknown fields. */
${writeRecord("EVENT_SCHEMAS", "ChatEvents", "object[]", events, writeSchemas)}

/** Schemas of the versions of each request, from version 1 on; they refuse unknown fields. */
${writeRecord("REQUEST_SCHEMAS", "Requests", "object[]", requests, writeSchemas)}

/** Fields that a reply may leave out, with their values. */
${writeRecord("REPLY_DEFAULTS", "Replies", "object", replies, (name) => writeJson(defaultsOf(schemas[name])))}
`;

if (!process.argv.includes("--check")) {
  writeFileSync(OUTPUT, text);
} else if (readFileSync(OUTPUT, "utf-8") !== text) {
  console.error("src/contracts.ts is not up to date: run `npm run generate` in producers/typescript");
  process.exitCode = 1;
}
