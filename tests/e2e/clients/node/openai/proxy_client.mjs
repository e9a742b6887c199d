// The official client, with the address and the key of a gateway of mnemon.
// Usage: node proxy_client.mjs URL KEY MESSAGES [TIMES]; the messages are JSON

import OpenAI from "openai";

const [baseURL, apiKey, messages, times = "1"] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey });

for (let time = 0; time < Number(times); time += 1) {
  const stream = await client.chat.completions.create({
    model: "a-model",
    messages: JSON.parse(messages),
    user: "anna",
    stream: true,
  });
  for await (const chunk of stream) {
    process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
  }
  process.stdout.write("\n");
}
