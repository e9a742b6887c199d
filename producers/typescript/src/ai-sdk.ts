/** Memory for models of the Vercel AI SDK, versions 5 to 7: `wrapLanguageModel({ model, middleware })`. */

import type { MemoryClient } from "./client.js";
import { splitContext, type ContextParts } from "./placement.js";

export interface MemoryMiddlewareOptions {
  /** The user whose memory the model has. */
  user: string;
  /** Default: the user's current conversation. */
  conversation?: string;
  /** Maximum tokens of a context. Default: the budget of the settings. */
  budget?: number;
  /** Called with each error of the memory; the model answers all the same. Default: `console.warn`. */
  onError?: (error: unknown) => void;
}

/** The middleware: an object that every version of the AI SDK takes. */
export interface MemoryMiddleware {
  specificationVersion: any;
  transformParams<Params extends { prompt: unknown }>(options: { params: Params }): Promise<Params>;
  wrapGenerate<Result extends { content: unknown }>(options: {
    doGenerate: () => PromiseLike<Result>;
    params: object;
  }): Promise<Result>;
  wrapStream<Part, Result extends { stream: ReadableStream<Part> }>(options: {
    doStream: () => PromiseLike<Result>;
    params: object;
  }): Promise<Result>;
}

interface PromptMessage {
  role: string;
  content: string | { type: string; text?: string }[];
}

/** Maximum milliseconds that an answer waits for its messages to be stored. Storing continues afterwards. */
const STORE_TIMEOUT = 3_000;

/**
 * Returns a middleware that stores the messages of user and model, and shows the model what the memory knows.
 *
 * Parts that change seldom follow the system prompt, and parts that were found for this turn go into the user's last
 * message, so that the provider's prefix cache still serves the prompt. While the memory does not answer, the model
 * gets the prompt unchanged.
 */
export function memoryMiddleware(memory: MemoryClient, options: MemoryMiddlewareOptions): MemoryMiddleware {
  const { user, conversation, budget, onError = (error) => console.warn(error) } = options;
  const inConversation = conversation === undefined ? {} : { conversation };
  /** The user's message of each prompt: a repeated call of the model has the same prompt. */
  const asked = new WeakMap<object, Promise<boolean>>();
  /** Whether the latest publish stored its message: the next one waits for it, so that messages keep their order. */
  let last = Promise.resolve(true);
  let seen = 0;

  const publish = (role: "user" | "assistant", text: string) => (last = last.then(() => store(role, text)));

  async function store(role: "user" | "assistant", text: string): Promise<boolean> {
    try {
      seen = Math.max(seen, await memory.publish(user, role, text, inConversation));
      return true;
    } catch (error) {
      onError(error);
      return false;
    }
  }

  /** Stores the answer after the user's message; if that message was not stored, the answer is not stored either. */
  async function publishAnswer(params: object, text: string): Promise<void> {
    const publishAfter = async () => (await (asked.get(params) ?? last)) && text && (await publish("assistant", text));
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([publishAfter(), new Promise((resolve) => (timer = setTimeout(resolve, STORE_TIMEOUT)))]);
    clearTimeout(timer);
  }

  return {
    specificationVersion: "v3",

    async transformParams({ params }) {
      const prompt = params.prompt as PromptMessage[];
      const texts = prompt.map(readText);
      const at = prompt.findLastIndex(({ role }) => role === "user");
      const query = texts[at] ?? "";
      const request = {
        query,
        format: "xml",
        ...inConversation,
        ...(budget && { budget }),
        ...(seen && { min_seq: seen }),
      } as const;
      const context = await memory.context(user, request);
      if (context.error) onError(context.error);
      // Published behind the context, so that it does not have this message, and while the model answers.
      if (at === prompt.length - 1 && query && !asked.has(prompt)) asked.set(prompt, publish("user", query));
      const placed = { ...params, prompt: placeContext(prompt, at, splitContext(context, texts)) };
      if (asked.has(prompt)) asked.set(placed, asked.get(prompt)!);
      return placed;
    },

    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      await publishAnswer(params, readText(result as unknown as PromptMessage));
      return result;
    },

    async wrapStream<Part, Result extends { stream: ReadableStream<Part> }>({
      doStream,
      params,
    }: {
      doStream: () => PromiseLike<Result>;
      params: object;
    }) {
      const result = await doStream();
      let text = "";
      let hasEnded = false;
      const record = new TransformStream<Part, Part>({
        transform(part, controller) {
          const { type, delta } = part as { type: string; delta?: string };
          if (type === "text-delta") text += delta;
          if (type === "finish") hasEnded = true;
          controller.enqueue(part);
        },
        flush: () => publishAnswer(params, hasEnded ? text : ""),
      });
      return { ...result, stream: result.stream.pipeThrough(record) };
    },
  };
}

function readText({ content }: PromptMessage): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" && part.text ? [part.text] : [])).join("\n");
}

/** Puts the stable part after the system prompt, and the part found for this turn before the user's message. */
function placeContext(prompt: PromptMessage[], at: number, { stable, found }: ContextParts): PromptMessage[] {
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
