// A bot with memory in the terminal: the Vercel AI SDK, and any OpenAI-compatible model.
// MNEMON_KEY=$(cat ./memory/gateway/key) MNEMON_MODEL=qwen3:8b node ai_sdk_bot.mjs anna
import { createInterface } from "node:readline/promises";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText, wrapLanguageModel } from "ai";
import { connectHttp } from "mnemon";
import { memoryMiddleware } from "mnemon/ai-sdk";

const { MNEMON_GATEWAY_URL, MNEMON_KEY, MNEMON_MODEL_URL, MNEMON_MODEL, OPENAI_API_KEY } = process.env;
const memory = connectHttp(MNEMON_GATEWAY_URL ?? "http://127.0.0.1:8080", { key: MNEMON_KEY });
const baseURL = MNEMON_MODEL_URL ?? "http://127.0.0.1:11434/v1";
const provider = createOpenAICompatible({ name: "local", baseURL, apiKey: OPENAI_API_KEY });
const model = wrapLanguageModel({
  model: provider(MNEMON_MODEL ?? "qwen3:8b"),
  // Each run begins with an empty history, and therefore a new conversation; the memory has the earlier ones.
  middleware: memoryMiddleware(memory, { user: process.argv[2] ?? "me", conversation: crypto.randomUUID() }),
});

const messages = [];
for await (const content of createInterface({ input: process.stdin })) {
  messages.push({ role: "user", content });
  let answer = "";
  for await (const text of streamText({ model, system: "Answer briefly.", messages }).textStream) {
    process.stdout.write(text);
    answer += text;
  }
  process.stdout.write("\n");
  messages.push({ role: "assistant", content: answer });
}
await memory.close();
