// A bot with memory in the terminal: a stock NATS client, and any OpenAI-compatible model.
// npm install @nats-io/transport-node && MNEMON_MODEL=qwen3:8b node bot.mjs anna
import { createInterface } from "node:readline/promises";
import { connect } from "@nats-io/transport-node";

// Spells an id for a subject; docs/contracts.md has the whole rule.
const encode = (id) => id.replace(/[.*>% ]/g, (one) => `%${one.charCodeAt().toString(16).toUpperCase()}`);
const [tenant, user] = ["node", encode(process.argv[2] ?? "me")];
const { MNEMON_NATS_URL, MNEMON_MODEL_URL, MNEMON_MODEL, OPENAI_API_KEY } = process.env;
const nats = await connect({ servers: MNEMON_NATS_URL ?? "nats://127.0.0.1:4222" });

const request = async (subject, body) =>
  (await nats.request(subject, JSON.stringify(body), { timeout: 5_000 })).json();
const publish = (role, content) => request(`chat.${tenant}.${user}.-.message.v1`, { role, content });
const away = () => ({}); // without its memory a bot goes on

async function answer(query) {
  const { seq } = await publish("user", query).catch(away);
  const context = await request(`ask.${tenant}.${user}.context.v1`, { query, min_seq: seq }).catch(away);
  const messages = context.messages ?? [{ role: "user", content: query }];
  const response = await fetch(`${MNEMON_MODEL_URL ?? "http://127.0.0.1:11434/v1"}/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${OPENAI_API_KEY ?? "none"}` },
    body: JSON.stringify({ model: MNEMON_MODEL ?? "qwen3:8b", messages }),
  });
  const { content } = (await response.json()).choices[0].message;
  await publish("assistant", content).catch(away);
  return content;
}

for await (const line of createInterface({ input: process.stdin })) console.log(await answer(line));
await nats.close();
