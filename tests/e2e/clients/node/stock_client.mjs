// A bot that knows subjects and JSON only: says one thing to nobody in particular, one that it wants
// acknowledged, and asks for the conversation back.
// Usage: node stock_client.mjs URL

import { connect } from "@nats-io/transport-node";

const connection = await connect({ servers: process.argv[2] });
const subject = "chat.acme.node.-.message.v1";

connection.publish(subject, JSON.stringify({ role: "user", content: "hi" }));
const acknowledged = await connection.request(
  subject,
  JSON.stringify({ role: "assistant", content: "Привет, Node" }),
  { timeout: 10_000 },
);
const reply = await connection.request(
  "ask.acme.node.history.v1",
  JSON.stringify({ min_seq: acknowledged.json().seq }),
  { timeout: 10_000 },
);
process.stdout.write(reply.string());
await connection.close();
