// The official client, with the address and the key of a gateway of mnemon.
// Usage: node proxy_client.mjs URL KEY QUESTION

import OpenAI from "openai";

const [baseURL, apiKey, content] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey });

const stream = await client.chat.completions.create({
  model: "a-model",
  messages: [{ role: "user", content }],
  user: "anna",
  stream: true,
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
}
