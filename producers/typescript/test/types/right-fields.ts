// What compiles, the middleware with the types of the AI SDK among it.
import { wrapLanguageModel, type LanguageModelMiddleware } from "ai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { connectHttp, type AskError, type Contracts, type MemoryClient } from "mnemon";
import { connectNats } from "mnemon/nats";
import { memoryMiddleware } from "mnemon/ai-sdk";

const clients: MemoryClient[] = [
  connectHttp("http://127.0.0.1:8080", { key: "k", timeouts: { ask: 500 } }),
  await connectNats("nats://127.0.0.1:4222", { tenant: "acme", connection: { token: "t" } }),
];
for (const memory of clients) {
  const seq: number = await memory.publish("u42", "user", "hi", {
    sent_at: new Date(),
    metadata: { any: ["thing", null] },
  });
  const { hits, degraded } = await memory.search("u42", "tea", {
    min_seq: seq,
    scope: ["memories", "medium"],
    as_of: "2026-11-20T00:00:00Z",
  });
  const texts: string[] = [...degraded, ...hits.map(({ text, score }) => `${text} ${score.toFixed(2)}`)];
  const { error, tokens } = await memory.context("u42", { query: texts[0] ?? null });
  const code: string | undefined = error?.code;
  const updated = await memory.ask("u42", "update", { id: "pf_001", importance: 7 });
  console.log(code, tokens?.toFixed(), updated.fact?.text);
}

export const fact: Contracts["fact.saved.v1"]["fact"]["text"] = "Likes tea";
export const refusal: AskError = { code: "refused", message: "no", retryable: false };
const middleware: LanguageModelMiddleware = memoryMiddleware(clients[0]!, { user: "u42", budget: 800 });
export const model = wrapLanguageModel({
  model: createOpenAICompatible({ name: "l", baseURL: "http://l" })("m"),
  middleware,
});
