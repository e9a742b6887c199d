/**
 * Placement of a context in a prompt, as in `mnemon/gateway/proxy/placement.py`, so that prefix caches still serve the
 * prompt.
 */

import type { ContextReplyV1 } from "./contracts.js";

/** A context in two parts; each may be empty. */
export interface ContextParts {
  /** Text for the end of the system prompt: it changes seldom. */
  stable: string;
  /** Text for the beginning of the user's last message: it was found for this turn. */
  found: string;
}

/** A message of a prompt of the AI SDK, with the fields that this package reads. */
export interface PromptMessage {
  role: string;
  content: string | { type: string; text?: string; toolCallId?: string; data?: unknown }[];
}

const ELEMENT = /^<([a-z_]+)>\n(.*?)\n<\/\1>$/gms;
const STABLE: ReadonlySet<string> = new Set(["key_facts", "user_data", "working_memory", "history_summary"]);
const MESSAGES: ReadonlySet<string> = new Set(["recent_messages", "relevant_messages"]);
const NOTE = "The user did not write this part: it comes from the memory of earlier conversations.";

/** The ends of lines at which the memory indents: those of `str.splitlines` in Python. */
const LINE_END = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/;

/** Number of last characters of a cut message by which it is found among the messages of a prompt. */
const COMPARED_LENGTH = 40;

/** Splits a context in the format `xml`; it does not repeat the messages of `prompt`. */
export function splitContext(
  { text, sections }: Pick<ContextReplyV1, "text" | "sections">,
  prompt: string[],
): ContextParts {
  const sent = prompt.map(writeAsXml).filter(Boolean);
  const stable: string[] = [];
  const found: string[] = [];
  for (const [, name = "", whole = ""] of (text ?? "").matchAll(ELEMENT)) {
    // Without facts, the element has the sentence that there are none.
    if (name === "key_facts" && !("facts" in sections)) continue;
    const content = MESSAGES.has(name) ? dropSent(whole, sent) : whole;
    if (content) (STABLE.has(name) ? stable : found).push(`<${name}>\n${content}\n</${name}>`);
  }
  return { stable: frame(stable), found: frame(found) };
}

/** Puts the stable part after the system prompt, and the found part before the text of the message at index `at`. */
export function placeContext(prompt: PromptMessage[], at: number, { stable, found }: ContextParts): PromptMessage[] {
  const placed = [...prompt];
  const asked = placed[at]?.content;
  if (found && typeof asked === "object") {
    const text = asked.findIndex(({ type }) => type === "text");
    const begun = { type: "text", text: text < 0 ? found : `${found}\n\n${asked[text]!.text}` };
    const content = text < 0 ? [begun, ...asked] : asked.with(text, { ...asked[text], ...begun });
    placed[at] = { ...placed[at]!, content };
  }
  if (!stable) return placed;
  const [system] = placed;
  if (system?.role !== "system") return [{ role: "system", content: stable }, ...placed];
  return placed.with(0, { ...system, content: `${system.content as string}\n\n${stable}` });
}

/** Returns the text of a message, without files and tools. */
export function readText({ content }: PromptMessage): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" && part.text ? [part.text] : [])).join("\n");
}

function frame(elements: string[]): string {
  return elements.length ? ["<memory>", NOTE, ...elements, "</memory>"].join("\n") : "";
}

function dropSent(content: string, sent: string[]): string {
  const messages = content.split(/\n(?! )/);
  return messages.filter((message) => !sent.some((text) => isSame(message, text))).join("\n");
}

function isSame(shown: string, sent: string): boolean {
  if (shown.endsWith("…") && sent.includes(shown.slice(-COMPARED_LENGTH - 1, -1))) return true;
  return consistsOf(shown, sent);
}

/** Returns whether a shown message is the text, with at most a name and a time before it, and white space around it. */
export function consistsOf(shown: string, text: string): boolean {
  const content = shown.trimEnd();
  return content.endsWith(text) && /(^|: |\] )\s*$/.test(content.slice(0, content.length - text.length));
}

/** Returns a text as the format `xml` writes it: entities, and indented lines. */
function writeAsXml(text: string): string {
  const written = text.trim().replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return written.split(LINE_END).join("\n  ");
}
