/** A context as a prompt of a provider. Parts that change seldom stay in front, for the provider's prefix cache. */

import type { RenderedMessage } from "./contracts.js";
import { consistsOf } from "./placement.js";

/** The messages of a context: a reply of `context` in the format `messages`. */
export interface ContextMessages {
  messages: RenderedMessage[];
}

/** A message of the user or the assistant, as providers take it. */
export interface DialogueMessage {
  role: "user" | "assistant";
  content: string;
}

/** Messages in OpenAI's wire format. */
export interface OpenAIMessage {
  role: "system" | "user" | "assistant";
  content: string;
  name?: string;
}

/** A system prompt and messages, as Anthropic and the AI SDK take them. */
export interface SystemPrompt {
  /** Absent where there is no text for it, because providers refuse an empty one. */
  system?: string;
  messages: DialogueMessage[];
}

/**
 * Returns the messages of a context for OpenAI's chat completions, and for servers with its wire format.
 *
 * @param question the user's message: it is added if the context lacks it, as when the memory does not answer.
 */
export function toOpenAIMessages(context: ContextMessages, question?: string): OpenAIMessage[] {
  const messages = context.messages.map(({ role, content, name }) => ({
    role: role === "tool" ? ("system" as const) : role,
    content,
    ...(name && { name }),
  }));
  const asked = findMissing(messages.filter(isDialogueMessage), question);
  return [...messages, ...asked];
}

/**
 * Returns the parameters `system` and `messages` of a request to Anthropic.
 *
 * Sections after the conversation were found for this turn. They begin the user's last message, because everything
 * after them misses the cache.
 *
 * @param question the user's message: it is added if the context lacks it, as when the memory does not answer.
 */
export function toAnthropicPrompt(context: ContextMessages, question?: string): SystemPrompt {
  const first = context.messages.findIndex(isDialogueMessage);
  const stable = first < 0 ? context.messages : context.messages.slice(0, first);
  const later = first < 0 ? [] : context.messages.slice(first);
  const turns: DialogueMessage[] = later.filter(isDialogueMessage).map(({ role, content }) => ({ role, content }));
  turns.push(...findMissing(turns, question));
  const asked = turns.findLastIndex(({ role }) => role === "user");
  const found = later.filter((message) => !isDialogueMessage(message));
  const system = asked < 0 ? [...stable, ...found] : stable;
  if (asked >= 0 && found.length) {
    turns[asked] = { role: "user", content: joinTexts([...found, turns[asked]!]) };
  }
  // A conversation begins with the user.
  if (turns[0]?.role === "assistant") turns.unshift({ role: "user", content: "…" });
  return { ...(system.length && { system: joinTexts(system) }), messages: turns };
}

/** Returns the options `system` and `messages` of `generateText` and `streamText` of the AI SDK. */
export function toVercelPrompt(context: ContextMessages, question?: string): SystemPrompt {
  return toAnthropicPrompt(context, question);
}

function isDialogueMessage<Message extends { role: string }>(message: Message): message is Message & { role: DialogueMessage["role"] } {
  return message.role === "user" || message.role === "assistant";
}

/** Returns the question as a turn, unless the last turn is the question, which a context shows with its time. */
function findMissing(turns: { role: string; content: string }[], question: string | undefined): DialogueMessage[] {
  const last = turns.at(-1);
  if (!question || (last?.role === "user" && consistsOf(last.content, question.trim()))) return [];
  return [{ role: "user", content: question }];
}

function joinTexts(messages: { content: string }[]): string {
  return messages.map(({ content }) => content).join("\n\n");
}
