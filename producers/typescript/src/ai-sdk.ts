/** Memory for models of the Vercel AI SDK, versions 5 to 7: `wrapLanguageModel({ model, middleware })`. */

import type { MemoryClient } from "./client.js";
import { placeContext, readText, splitContext, type PromptMessage } from "./placement.js";

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
  /** The prompt of each call of the model, and whether its last message of the user is stored. */
  const calls = new WeakMap<object, { prompt: PromptMessage[]; isStored: Promise<boolean> }>();
  /** Whether the latest publish stored its message: the next one waits for it, so that messages keep their order. */
  let last = Promise.resolve(true);
  let seen = 0;

  const publish = (role: "user" | "assistant", history: PromptMessage[]) =>
    (last = last.then(() => storeLast(role, history)));

  async function storeLast(role: "user" | "assistant", history: PromptMessage[]): Promise<boolean> {
    try {
      const fields = { ...inConversation, id: await identifyLast(history, conversation) };
      seen = Math.max(seen, await memory.publish(user, role, readText(history.at(-1)!), fields));
      return true;
    } catch (error) {
      onError(error);
      return false;
    }
  }

  /** Stores the answer after the user's message; if that message was not stored, the answer is not stored either. */
  async function publishAnswer(params: object, text: string): Promise<void> {
    const { prompt, isStored } = calls.get(params) ?? { ...(params as { prompt: PromptMessage[] }), isStored: last };
    const answer = { role: "assistant", content: text };
    const publishAfter = async () => (await isStored) && text && (await publish("assistant", [...prompt, answer]));
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
      // Published after the request of the context, which must not have this message, and while the model answers.
      const begin = prompt.findLastIndex(({ role }, index) => index < at && role !== "user") + 1;
      let isStored = last;
      if (at === prompt.length - 1)
        for (let end = begin; end <= at; end++) if (texts[end]) isStored = publish("user", prompt.slice(0, end + 1));
      const placed = { ...params, prompt: placeContext(prompt, at, splitContext(context, texts)) };
      calls.set(placed, { prompt, isStored });
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

/**
 * Returns the last message's id: a digest of its conversation, of its content and that of the message before it, and of
 * the number of times that these two occur in succession.
 */
async function identifyLast(history: PromptMessage[], conversation = ""): Promise<string> {
  const contents = await Promise.all(history.filter(({ role }) => role !== "system").map(describeContent));
  const pairs = contents.map((content, at) => `${contents[at - 1] ?? ""}\n${content}`);
  const pair = pairs.at(-1);
  const place = JSON.stringify([conversation, pair, pairs.filter((each) => each === pair).length]);
  return `ai-sdk-${await digest(new TextEncoder().encode(place))}`;
}

/** Returns the content that identifies a message. Reasoning parts do not count, because clients leave them out. */
async function describeContent({ role, content }: PromptMessage): Promise<string> {
  const others = typeof content === "string" ? [] : content.filter(({ type }) => !/^(text|reasoning)$/.test(type));
  const shorten = (data: unknown) => (data instanceof Uint8Array ? digest(data) : data);
  const parts = others.map(async ({ type, toolCallId, data }) => [type, toolCallId, await shorten(data)]);
  return JSON.stringify([role, readText({ role, content }).trim(), await Promise.all(parts)]);
}

async function digest(bytes: Uint8Array): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>));
  return [...hash.slice(0, 20)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
